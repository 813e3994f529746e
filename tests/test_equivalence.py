"""The checker's own judgements, where no faulty file would show them."""

from __future__ import annotations

import pytest
from attrs import evolve

from ahp_compile import target
from ahp_compile.engine import (
    Behaviour,
    Evidence,
    EvidenceKind,
    Fact,
    Hole,
    Lifted,
    LiftedHook,
    Limit,
    NativeAnswer,
    Obligation,
    ProcessAnswer,
    Ruling,
)
from ahp_compile.equivalence import check
from ahp_compile.judgement import Judgement, Stance
from ahp_compile.placement import Placement
from ahp_compile.plan import Plan
from ahp_compile.registration import FailurePolicy
from ahp_compile.target import BridgeFiles, LiftError, Purpose, Request, Target
from tests.support import PLACEMENT, compiled, files_of, one_interceptor

RUN = Fact("run", "seen", Evidence(EvidenceKind.RUN, "1", "2026-12-01"))
DOCS = Fact("docs", "read", Evidence(EvidenceKind.DOCS, "1", "2026-12-01"))


def judged(changed: Target, *, stance: Stance | None = None, policy: FailurePolicy = FailurePolicy.FAIL_CLOSED) -> Judgement:
    """Check a right emission of claude-code's, with a target that was changed."""
    compilation = compiled(one_interceptor(policy), "claude-code")
    places = {one.purpose: one.destination for one in compilation.artifacts}
    digest = places[Purpose.PLAN].rpartition("-")[2].removesuffix(".json")
    request = Request(compilation.plan, PLACEMENT, BridgeFiles(places[Purpose.CLIENT], places[Purpose.PLAN], digest))
    return check(request, files_of(compilation), changed, stance or Stance())


def ruling_otherwise(behaviour: Behaviour, ruling: Ruling) -> Target:
    """The target, but its harness does something else when the bridge behaves so."""
    right = target.load("claude-code")

    def lift(files: object, placement: Placement) -> Lifted:
        lifted = right.lift(files, placement)  # type: ignore[arg-type]
        marked = ProcessAnswer(99)
        hooks = tuple(evolve(one, answers={**one.answers, behaviour: marked}) for one in lifted.hooks)
        return evolve(lifted, hooks=hooks)

    def rules(hook: LiftedHook, answer: NativeAnswer) -> Ruling:
        return ruling if answer == ProcessAnswer(99) else right.engine.rules(hook, answer)

    return evolve(right, lift=lift, engine=evolve(right.engine, rules=rules))


REASON = "Deleting the archive is not allowed."


@pytest.mark.parametrize(
    ("behaviour", "ruling", "obligation"),
    [
        (Behaviour.PROCEEDS, Ruling(True, (RUN,), "no"), Obligation.NO_ESCALATION),
        (Behaviour.PROCEEDS, Ruling(False, (RUN,), escalates=True), Obligation.NO_ESCALATION),
        (Behaviour.PROCEEDS, Ruling(False, (RUN,), disturbs=True), Obligation.NO_ESCALATION),
        (Behaviour.DENIES, Ruling(False, (RUN,), REASON), Obligation.DENY),
        (Behaviour.DENIES, Ruling(True, (RUN,), "no"), Obligation.DENY),
        (Behaviour.DENIES_IN_BLANKS, Ruling(False, (RUN,)), Obligation.DENY),
        (Behaviour.EXITS_1, Ruling(False, (RUN,)), Obligation.GUARD),
        (Behaviour.EXITS_1, Ruling(False, (RUN,), escalates=True), Obligation.GUARD),
        (Behaviour.EXITS_1, Ruling(True, (RUN,), "x", escalates=True), Obligation.NO_ESCALATION),
        (Behaviour.EXITS_1, Ruling(True, (RUN,), "x", discloses=True), Obligation.GUARD),
        (Behaviour.EXITS_1, Ruling(True, (RUN,), "sh: /opt/ahp/bin/python3: not found"), Obligation.GUARD),
        (Behaviour.EXITS_1, Ruling(True, (RUN,), " "), Obligation.GUARD),
    ],
)
def test_a_harness_that_does_something_else_is_refused(behaviour: Behaviour, ruling: Ruling, obligation: Obligation) -> None:
    judgement = judged(ruling_otherwise(behaviour, ruling))
    assert not judgement.equivalent
    assert [one.obligation for one in judgement.defects] == [obligation]


def test_a_harness_that_does_the_right_thing_is_not() -> None:
    assert judged(ruling_otherwise(Behaviour.EXITS_1, Ruling(True, (RUN,), "unavailable"))).equivalent
    assert judged(ruling_otherwise(Behaviour.EXITS_1, Ruling(False, (RUN,))), policy=FailurePolicy.FAIL_OPEN).equivalent


def test_a_fact_known_from_documents_is_unproven_until_that_is_accepted() -> None:
    documented = ruling_otherwise(Behaviour.EXITS_1, Ruling(True, (DOCS,), "unavailable"))
    judgement = judged(documented)
    assert not judgement.equivalent
    assert judgement.unproven == (DOCS,)
    assert judged(documented, stance=Stance(accept_documented=True)).equivalent


@pytest.mark.parametrize(("timeout_ms", "equivalent"), [(None, True), (3750, False), (3751, True), (8750, True), (8751, False)])
def test_the_native_timeout_is_later_than_the_guard_and_not_much_later(timeout_ms: int | None, equivalent: bool) -> None:
    right = target.load("claude-code")
    engine = evolve(right.engine, limits=lambda hook: Limit(timeout_ms, (RUN,)))
    # 750 ms deadline, 2000 ms to start and 500 ms to kill make the budget; the guard's own kill may take 500 ms more.
    judgement = judged(evolve(right, engine=engine))
    assert judgement.equivalent is equivalent


def test_a_lift_that_fails_or_raises_is_a_refusal() -> None:
    right = target.load("claude-code")

    def fails(files: object, placement: Placement) -> Lifted:
        raise LiftError("no")

    def raises(files: object, placement: Placement) -> Lifted:
        raise ZeroDivisionError

    for lift in (fails, raises, lambda files, placement: Lifted(())):
        judgement = judged(evolve(right, lift=lift))
        assert not judgement.equivalent
        assert judgement.defects


def test_a_hole_is_open_until_its_code_is_accepted_and_no_other() -> None:
    right = target.load("claude-code")

    def remainder(plan: Plan, placement: Placement, lifted: Lifted) -> tuple[Hole, ...]:
        return (Hole("enforcement.one", Obligation.SUBSCRIPTION, "One.", RUN),)

    holed = evolve(right, engine=evolve(right.engine, remainder=remainder))
    assert not judged(holed).equivalent
    assert not judged(holed, stance=Stance(accepted=frozenset({"observation.one"}))).equivalent
    judgement = judged(holed, stance=Stance(accepted=frozenset({"enforcement.one"})))
    assert judgement.equivalent
    assert [one.code for one in judgement.accepted] == ["enforcement.one"]
    assert [one.code for one in judgement.open_holes] == []


def test_a_variable_that_the_harness_strips_is_a_hole() -> None:
    right = target.load("claude-code")
    assert right.engine.strips("OTEL_TOKEN") is not None
    assert right.engine.strips("ACME_TOKEN") is None
