"""Checking one native hook: what the harness does with each behaviour of the bridge, and when it stops waiting."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from ahp_compile.engine import (
    Behaviour,
    Hole,
    Invocation,
    LiftedHook,
    NativeAnswer,
    Obligation,
    ProcessAnswer,
    Remainder,
    Ruling,
)
from ahp_compile.judgement import Findings
from ahp_compile.lifting import REASONS
from ahp_compile.placement import Os
from ahp_compile.plan import EventPlan
from ahp_compile.shell import OWN_WORDS
from ahp_compile.target import Request, Target

_SLACK_MS = 1000
"""How much later than its own arithmetic a guard may be."""

_NATIVE_SLACK_MS = 5000
"""How much later than the guard the native timeout may be; more is a wrong unit or a wrong field."""


def check_guard(
    request: Request, event: EventPlan, hook: LiftedHook, target: Target, findings: Findings
) -> Iterator[Remainder]:
    """Run the engine on every behaviour of the bridge: defects go to the findings, what the system cannot bound is yielded."""
    for behaviour in Behaviour:
        answer = hook.answers[behaviour]
        if not _ends(answer) and behaviour is Behaviour.HANGS and request.placement.os is not Os.LINUX:
            # Nothing bounds it from outside, so the client's own kernel timer makes a dead bridge of it.
            answer = hook.answers[Behaviour.ALARMED]
        ruling = target.engine.rules(hook, answer)
        if not event.interceptors:
            _check_observing(event, behaviour, ruling, findings)
            continue
        if not _ends(answer):
            # The harness ends it itself, in words of its own; only whether the call runs is ours to hold it to.
            ruling = evolve(ruling, discloses=False)
        wrong = _wrong_ruling(event, behaviour, ruling, hook.invocation)
        if wrong is None:
            findings.rest_on(_obligation_of(behaviour), ruling.facts)
        elif not _ends(answer) and request.placement.os is not Os.LINUX:
            yield Hole(
                "enforcement.frozen-bridge",
                Obligation.GUARD,
                "Nothing bounds a frozen bridge from outside on this system, and at the native timeout the call proceeds.",
                ruling.facts[0],
            )
        else:
            findings.against(*wrong)


def _obligation_of(behaviour: Behaviour) -> Obligation:
    if behaviour is Behaviour.PROCEEDS:
        return Obligation.NO_ESCALATION
    return Obligation.DENY if behaviour in REASONS else Obligation.GUARD


def _check_observing(event: EventPlan, behaviour: Behaviour, ruling: Ruling, findings: Findings) -> None:
    findings.rest_on(Obligation.OBSERVER, ruling.facts)
    findings.require(
        not (ruling.blocks or ruling.disturbs or ruling.escalates),
        Obligation.OBSERVER,
        f"On {event.event}, which is only observed, the harness is disturbed when the bridge {behaviour}.",
    )


def _wrong_ruling(
    event: EventPlan, behaviour: Behaviour, ruling: Ruling, invocation: Invocation
) -> tuple[Obligation, str] | None:
    """What is wrong with what the harness does when the bridge behaves so; None when it is right."""
    when = f"when the bridge {behaviour}"
    if behaviour is Behaviour.PROCEEDS:
        if ruling.escalates or ruling.disturbs:
            return Obligation.NO_ESCALATION, f"The harness takes an answer for more than no objection {when}."
        return (Obligation.NO_ESCALATION, f"The call is blocked {when}.") if ruling.blocks else None
    if behaviour in REASONS:
        if not ruling.blocks:
            return Obligation.DENY, f"The call runs {when}."
        reason = REASONS[behaviour].strip()
        return None if reason in ruling.reason else (Obligation.DENY, f"The model is not told the reason {when}.")
    if behaviour is Behaviour.DENIES_IN_BLANKS:
        return None if ruling.blocks else (Obligation.DENY, f"The call runs {when}.")
    if ruling.blocks != event.guard.denies:
        does = (
            "is blocked although every interceptor is fail-open"
            if ruling.blocks
            else "runs although an interceptor is fail-closed"
        )
        return Obligation.GUARD, f"The call {does} {when}."
    if ruling.escalates:
        return Obligation.NO_ESCALATION, f"The harness's own permission prompt is skipped {when}."
    if ruling.blocks and (ruling.discloses or _shows_words(ruling.reason, invocation)):
        return Obligation.GUARD, f"The model is shown our command line or the shell's words {when}."
    if ruling.blocks and not ruling.reason.strip():
        return Obligation.GUARD, f"The model is told nothing {when}."
    return None


def _shows_words(reason: str, invocation: Invocation) -> bool:
    words = (invocation.interpreter, invocation.client, invocation.plan, OWN_WORDS.decode().strip())
    return any(word in reason for word in words)


def _ends(answer: NativeAnswer) -> bool:
    return answer.exit_status is not None if isinstance(answer, ProcessAnswer) else answer.ends


def check_backstop(request: Request, event: EventPlan, hook: LiftedHook, target: Target, findings: Findings) -> None:
    """Hold the guard\'s bound and the harness\'s own timeout against the budget of the plan (obligation backstop)."""
    limit = target.engine.limits(hook)
    findings.rest_on(Obligation.BACKSTOP, limit.facts)
    longest_ms = event.budget_ms + request.plan.timing.kill_ms
    for behaviour in (Behaviour.HANGS, Behaviour.FROZEN):
        answer = hook.answers[behaviour]
        if not _ends(answer):
            bounded = request.placement.os is not Os.LINUX and limit.effective_ms is not None
            findings.require(bounded, Obligation.BACKSTOP, f"Nothing ends the bridge of {event.event} when it {behaviour}.")
            continue
        findings.require(
            event.budget_ms <= answer.bound_ms <= longest_ms + _SLACK_MS,
            Obligation.BACKSTOP,
            f"The guard of {event.event} ends the bridge after {answer.bound_ms} ms; its budget is {event.budget_ms} ms.",
        )
    if limit.effective_ms is not None:
        findings.require(
            longest_ms < limit.effective_ms <= longest_ms + _NATIVE_SLACK_MS,
            Obligation.BACKSTOP,
            f"The native timeout of {event.event} is {limit.effective_ms} ms; the guard may take {longest_ms} ms.",
        )
    native = "has no timeout of its own" if limit.effective_ms is None else f"waits {limit.effective_ms} ms"
    findings.notes[Obligation.BACKSTOP].append(f"{event.event}: budget {event.budget_ms} ms, the harness {native}")
