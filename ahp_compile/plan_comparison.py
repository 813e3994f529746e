"""Comparing the plan of the document with the plan that the emitted files lead to, step by step."""

from __future__ import annotations

from ahp_compile import semantics
from ahp_compile.engine import Obligation
from ahp_compile.judgement import Findings
from ahp_compile.plan import EventPlan, Interceptor, Plan
from ahp_compile.registration import Http


def compare_plans(plan: Plan, lifted: Plan, findings: Findings) -> None:
    """Compare everything but the chains: version, backends and their transports, allowances, the set of events."""
    findings.require(
        (lifted.protocol_version, lifted.target) == (plan.protocol_version, plan.target),
        Obligation.EVENT,
        "The plan file is for another protocol version or target.",
    )
    findings.require(
        lifted.search_path == plan.search_path,
        Obligation.TRANSPORT,
        "The plan file looks bare commands up on another path.",
    )
    findings.require(lifted.state_dir == plan.state_dir, Obligation.EVENT, "The plan file has the audit kept in another place.")
    findings.require(lifted.timing == plan.timing, Obligation.BACKSTOP, "The plan file has other allowances around deadlines.")
    findings.require(
        [one.event for one in lifted.events] == [one.event for one in plan.events],
        Obligation.SUBSCRIPTION,
        "The plan file has other events than the document.",
    )
    found = {one.id: one.transport for one in lifted.backends}
    for backend in plan.backends:
        transport = found.pop(backend.id, None)
        if isinstance(transport, Http) and isinstance(backend.transport, Http):
            findings.require(
                transport.token_env == backend.transport.token_env,
                Obligation.CREDENTIAL,
                f"{backend.id} gets its credential from another variable than the document says.",
            )
            same = transport.url == backend.transport.url
        else:
            same = transport == backend.transport
        findings.require(same, Obligation.TRANSPORT, f"{backend.id} is not reached as the document says.")
    findings.require(not found, Obligation.SUBSCRIPTION, "The plan file has backends that the document has not.")


def compare_event(event: EventPlan, lifted: EventPlan | None, findings: Findings) -> None:
    """Compare one event step by step: the order and each step of its chain, and its observers."""
    if lifted is None:
        findings.against(Obligation.SUBSCRIPTION, f"The plan file has no {event.event}.")
        return
    findings.require(
        [one.backend for one in lifted.interceptors] == [one.backend for one in event.interceptors],
        Obligation.ORDER,
        f"The interceptors of {event.event} are not those of the document in its order.",
    )
    findings.require(
        lifted.budget_ms == event.budget_ms,
        Obligation.BACKSTOP,
        f"The plan file's budget for {event.event} is not the sum it must be.",
    )
    for wanted, found in zip(event.interceptors, lifted.interceptors, strict=False):
        _compare_interceptor(wanted, found, findings)
    findings.require(
        {one.backend for one in lifted.observers} == {one.backend for one in event.observers},
        Obligation.SUBSCRIPTION,
        f"The observers of {event.event} are not those of the document.",
    )
    findings.require(
        len(lifted.observers) == len(event.observers),
        Obligation.OBSERVER,
        f"{event.event} is observed twice by one backend.",
    )
    native = {one.backend: one.include_native for one in lifted.observers}
    for observer in event.observers:
        findings.require(
            native.get(observer.backend, observer.include_native) == observer.include_native,
            Obligation.NATIVE_PAYLOAD,
            f"{observer.backend} gets the native payload of {event.event} against the document, or does not get it.",
        )


_EVERY_ANSWER: tuple[semantics.Answer, ...] = (
    semantics.NoEffect(),
    semantics.Denial("no"),
    *(semantics.Failure(kind) for kind in semantics.FailureClass),
)


def _compare_interceptor(wanted: Interceptor, found: Interceptor, findings: Findings) -> None:
    findings.require(
        found.deadline_ms == wanted.deadline_ms,
        Obligation.DEADLINE,
        f"{wanted.backend} gets {found.deadline_ms} ms instead of {wanted.deadline_ms} ms.",
    )
    findings.require(
        found.wait_ms == wanted.wait_ms,
        Obligation.BACKSTOP,
        f"{wanted.backend} is waited for {found.wait_ms} ms while busy.",
    )
    # A chain has two states, so equal steps at every position make equal chains.
    findings.require(
        all(semantics.step(found.on_failure, one) == semantics.step(wanted.on_failure, one) for one in _EVERY_ANSWER),
        Obligation.FAILURE,
        f"A failure of {wanted.backend} does not mean what the document says.",
    )
    findings.require(
        found.include_native == wanted.include_native,
        Obligation.NATIVE_PAYLOAD,
        f"{wanted.backend} gets the native payload against the document, or does not get it.",
    )
