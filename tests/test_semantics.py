"""The reference semantics against the protocol's table, written out again here."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from ahp_compile import semantics
from ahp_compile.registration import FailurePolicy
from ahp_compile.semantics import Answer, Cause, Denial, Failure, FailureClass, NoEffect, Verdict

policies = st.sampled_from(FailurePolicy)
answers = st.one_of(
    st.just(NoEffect()), st.builds(Denial, st.text(min_size=1)), st.builds(Failure, st.sampled_from(FailureClass))
)
chains = st.lists(st.tuples(policies, answers), max_size=12)


def expected(chain: list[tuple[FailurePolicy, Answer]]) -> Verdict:
    """Section 13 and 14 as prose: the first deny or fail-closed failure stops, everything before it does not."""
    for policy, answer in chain:
        if isinstance(answer, Denial):
            return Verdict(Cause.EXPLICIT_DENIAL, answer.reason)
        if isinstance(answer, Failure) and policy == "fail-closed":
            return Verdict(Cause.SYNTHETIC_DENIAL)
    return Verdict(Cause.NO_OBJECTION)


@given(chains)
def test_a_chain_ends_as_the_protocol_says(chain: list[tuple[FailurePolicy, Answer]]) -> None:
    assert semantics.run(chain) == expected(chain)


@given(chains, st.tuples(policies, answers))
def test_nobody_is_asked_after_the_chain_stopped(
    chain: list[tuple[FailurePolicy, Answer]], later: tuple[FailurePolicy, Answer]
) -> None:
    asked = 0

    def counted() -> Iterator[tuple[FailurePolicy, Answer]]:
        nonlocal asked
        for one in [*chain, later]:
            asked += 1
            yield one

    verdict = semantics.run(counted())
    stops = [n for n, (policy, answer) in enumerate([*chain, later], 1) if semantics.step(policy, answer) is not None]
    assert asked == (stops[0] if stops else len(chain) + 1)
    assert verdict.denies == bool(stops)


def test_each_failure_class_follows_the_policy() -> None:
    for kind in FailureClass:
        assert semantics.step(FailurePolicy.FAIL_OPEN, Failure(kind)) is None
        assert semantics.step(FailurePolicy.FAIL_CLOSED, Failure(kind)) == semantics.SYNTHETIC_DENIAL


def test_an_explicit_denial_denies_under_either_policy_with_its_reason() -> None:
    for policy in FailurePolicy:
        verdict = semantics.step(policy, Denial("no"))
        assert verdict == Verdict(Cause.EXPLICIT_DENIAL, "no")
        assert verdict is not None
        assert verdict.denies


@given(st.lists(policies, max_size=6))
def test_the_guard_denies_as_soon_as_one_interceptor_is_fail_closed(chain: list[FailurePolicy]) -> None:
    assert semantics.guard_verdict(chain).denies == (FailurePolicy.FAIL_CLOSED in chain)
