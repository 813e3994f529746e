"""How each obligation of a plan is kept, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from ahp_compile.engine import Behaviour, Obligation
from ahp_compile.judgement import By, Discharge, Findings
from ahp_compile.lifting import REASONS
from ahp_compile.plan import EventPlan
from ahp_compile.target import Request


def discharges(request: Request, findings: Findings) -> Iterator[Discharge]:
    """The kept obligations of this plan, in their order; one with a defect is not among them."""
    failed = {one.obligation for one in findings.defects}
    reasons = _reasons(request, findings)
    for obligation in Obligation:
        if obligation in reasons and obligation not in failed:
            by, reason = reasons[obligation]
            yield Discharge(obligation, by, reason, tuple(findings.facts[obligation]))


def _reasons(request: Request, findings: Findings) -> dict[Obligation, tuple[By, str]]:
    plan = request.plan
    chain = next((event for event in plan.events if event.interceptors), None)
    reasons = {
        Obligation.SUBSCRIPTION: (
            By.HARNESS,
            f"one native hook for each of {', '.join(findings.notes[Obligation.SUBSCRIPTION])}, for all tools; none for others",
        ),
        Obligation.BACKSTOP: (By.HARNESS, "; ".join(findings.notes[Obligation.BACKSTOP])),
        Obligation.TRANSPORT: (
            By.BRIDGE,
            "command, args, cwd, lifecycle and URL of the plan are the document's; no shell sees them",
        ),
        Obligation.NATIVE_PAYLOAD: (By.BRIDGE, "the plan asks for native payloads exactly where the document does"),
        Obligation.EVENT: (By.BRIDGE, "the target's codec reads the required fields from the native payload"),
    }
    if any(event.observers for event in plan.events):
        reasons[Obligation.OBSERVER] = (
            By.BRIDGE,
            "observers are handed over, never waited for; whatever the bridge does on observed events leaves the harness alone",
        )
    if plan.token_variables():
        reasons[Obligation.CREDENTIAL] = (
            By.BRIDGE,
            f"{', '.join(plan.token_variables())} is read from the hook's environment at call time; no file holds a value",
        )
    if chain is not None:
        reasons |= _chain_reasons(chain)
    return reasons


def _chain_reasons(chain: EventPlan) -> dict[Obligation, tuple[By, str]]:
    names = " → ".join(one.backend for one in chain.interceptors)
    deadlines = ", ".join(f"{one.backend} {one.deadline_ms} ms" for one in chain.interceptors)
    policies = ", ".join(f"{one.backend} {one.on_failure}" for one in chain.interceptors)
    ends = "denied" if chain.guard.denies else "let through"
    return {
        Obligation.ORDER: (By.BRIDGE, f"one native hook, whose chain is asked one by one: {names}"),
        Obligation.DEADLINE: (By.BRIDGE, deadlines),
        Obligation.FAILURE: (By.BRIDGE, policies),
        Obligation.GUARD: (
            By.GUARD,
            f"{len(Behaviour) - len(REASONS) - 1} ways in which the bridge can fail all end with the call {ends}",
        ),
        Obligation.DENY: (
            By.HARNESS,
            "an explicit denial blocks the call and the model is told the backend's own reason",
        ),
        Obligation.NO_ESCALATION: (
            By.HARNESS,
            "no objection is the harness's own neutral answer: its prompts and rules stay",
        ),
    }
