"""The equivalence check: is what the files make the harness do the same as what the document says?

The plan lowered from the document is compared, step by step, with the plan that the emitted files lead to, run on the engine
of the target. Each obligation is discharged with its reason and evidence, or the judgement holds what is against it: a defect
(our files are wrong), or a hole (the harness cannot keep it).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from importlib import resources

from ahp_compile import plan_file
from ahp_compile.discharges import discharges
from ahp_compile.engine import (
    TOKEN_READABLE,
    EvidenceKind,
    Hole,
    Invocation,
    Lifted,
    LiftedHook,
    Obligation,
    Party,
    Premise,
    Remainder,
    each_kind,
)
from ahp_compile.formats import env
from ahp_compile.hook_check import check_backstop, check_guard
from ahp_compile.judgement import Findings, Judgement, Stance
from ahp_compile.placement import Placement, Scope
from ahp_compile.plan import EventPlan, Plan
from ahp_compile.plan_comparison import compare_event, compare_plans
from ahp_compile.registration import Event
from ahp_compile.target import LiftError, Request, Target


def check(request: Request, files: Mapping[str, bytes], target: Target, stance: Stance) -> Judgement:
    """Check emitted files (destination → bytes) against the plan that was to be emitted. Never raises for what is in them."""
    findings = Findings()
    try:
        lifted = target.lift(files, request.placement)
    except LiftError as error:
        findings.against(Obligation.SUBSCRIPTION, f"The emitted files cannot be read back: {error}.")
        lifted = Lifted(())
    except Exception as error:
        findings.against(Obligation.SUBSCRIPTION, f"Reading the emitted files back failed ({type(error).__name__}).")
        lifted = Lifted(())
    remainder = (
        *target.engine.remainder(request.plan, request.placement, lifted),
        *_common_premises(request, target, lifted),
    )
    if not findings.defects:
        remainder = (*remainder, *_check_files(request, files, target, lifted, remainder, findings))
    return _judge(request, target, stance, lifted, findings, remainder)


def _check_files(
    request: Request,
    files: Mapping[str, bytes],
    target: Target,
    lifted: Lifted,
    remainder: tuple[Remainder, ...],
    findings: Findings,
) -> tuple[Remainder, ...]:
    findings.rest_on(Obligation.ORDER, (target.engine.several_hooks,))
    findings.rest_on(Obligation.EVENT, target.engine.event_facts)
    findings.rest_on(Obligation.NO_ESCALATION, target.engine.no_escalation_facts)
    for fault in lifted.faults:
        findings.against(Obligation.SUBSCRIPTION, f"In the native files {fault}.")
    _check_switches(request, lifted, remainder, findings)
    _check_environment(request, files, target, findings)
    hooks = _hooks_by_event(request.plan, target, lifted, remainder, findings)
    holes: dict[str, Remainder] = {}
    for event, hook in hooks.items():
        _check_invocation(request, event, hook.invocation, files, findings)
        holes |= {one.code: one for one in check_guard(request, event, hook, target, findings)}
        check_backstop(request, event, hook, target, findings)
    return tuple(holes.values())


def _check_switches(request: Request, lifted: Lifted, remainder: tuple[Remainder, ...], findings: Findings) -> None:
    closed = set(lifted.closed)
    if set(request.plan.token_variables()) <= lifted.hidden:
        closed.add(TOKEN_READABLE)
    for name in sorted(request.close - closed):
        findings.against(Obligation.SUBSCRIPTION, f"The native switch that was to close {name} is not in the files.")
    if request.trust_our_hook and lifted.trusted is False:
        findings.against(Obligation.SUBSCRIPTION, "The trust entries do not match our hooks, so the harness would skip them.")


def _check_environment(request: Request, files: Mapping[str, bytes], target: Target, findings: Findings) -> None:
    findings.rest_on(Obligation.CREDENTIAL, target.engine.credential_facts)
    templates = [content for path, content in files.items() if env.is_template(path)]
    for template in templates:
        assigned = env.assigned_names(template)
        findings.require(
            not assigned,
            Obligation.CREDENTIAL,
            "The environment template assigns a variable: it would override or hold a real token.",
        )
    for variable in request.plan.token_variables():
        findings.require(
            any(variable in env.mentioned_names(template) for template in templates),
            Obligation.CREDENTIAL,
            f"The environment template does not name {variable}.",
        )


def _hooks_by_event(
    plan: Plan, target: Target, lifted: Lifted, remainder: tuple[Remainder, ...], findings: Findings
) -> dict[EventPlan, LiftedHook]:
    """Pair each planned event with the one native hook that is fired for it."""
    found: dict[Event, list[LiftedHook]] = defaultdict(list)
    for hook in lifted.hooks:
        delivery = target.engine.delivers(hook)
        findings.rest_on(Obligation.SUBSCRIPTION, delivery.facts)
        for event in delivery.events:
            found[event].append(hook)
        findings.require(
            {hook.invocation.event} == delivery.events,
            Obligation.SUBSCRIPTION,
            f"The native hook {hook.native_event} calls the bridge for {hook.invocation.event}, which it is not fired for.",
        )
        findings.require(
            delivery.all_tools,
            Obligation.SUBSCRIPTION,
            f"The native hook {hook.native_event} is not fired for every tool.",
        )
    for event in found:
        findings.require(
            plan.event(event) is not None,
            Obligation.SUBSCRIPTION,
            f"A native hook is fired for {event}, which nobody subscribed to.",
        )
    missing = {one.missing for one in remainder if isinstance(one, Hole)}
    pairs = {}
    for planned in plan.events:
        hooks = found[planned.event]
        if len(hooks) == 1:
            pairs[planned] = hooks[0]
            findings.notes[Obligation.SUBSCRIPTION].append(planned.event)
        elif hooks or planned.event not in missing:
            count = "no native hook" if not hooks else f"{len(hooks)} native hooks"
            findings.against(Obligation.SUBSCRIPTION, f"For {planned.event} there is {count} instead of one.")
    return pairs


def _check_invocation(
    request: Request, event: EventPlan, invocation: Invocation, files: Mapping[str, bytes], findings: Findings
) -> None:
    name = event.event
    findings.require(
        invocation.interpreter == request.placement.bridge,
        Obligation.TRANSPORT,
        f"The hook of {name} does not start the bridge's interpreter byte for byte.",
    )
    findings.require(
        files.get(invocation.client) == resources.files("ahp_compile.bridge").joinpath("client.py").read_bytes(),
        Obligation.GUARD,
        f"The hook of {name} starts a client that is not among the files, or not the bridge's own.",
    )
    findings.require(
        invocation.budget_ms == event.budget_ms,
        Obligation.BACKSTOP,
        f"The hook of {name} gives the bridge {invocation.budget_ms} ms instead of {event.budget_ms} ms.",
    )
    findings.require(
        invocation.guard == ("deny" if event.guard.denies else "proceed"),
        Obligation.GUARD,
        f"The hook of {name} tells the bridge the wrong guard verdict.",
    )
    content = files.get(invocation.plan)
    if content is None:
        findings.against(Obligation.FAILURE, f"The plan that the hook of {name} names is not among the files.")
        return
    if hashlib.sha256(content).hexdigest() != invocation.digest:
        findings.against(Obligation.FAILURE, f"The plan that the hook of {name} names is not the one whose digest it carries.")
    try:
        lifted = plan_file.read(content)
    except plan_file.PlanFileError as error:
        findings.against(Obligation.FAILURE, f"The plan of the hook of {name} is unusable: {error}.")
        return
    compare_plans(request.plan, lifted, findings)
    compare_event(event, lifted.event(event.event), findings)


def _common_premises(request: Request, target: Target, lifted: Lifted) -> tuple[Remainder, ...]:
    """What every target's proof rests on, whatever the harness."""
    plan, placement = request.plan, request.placement
    premises: list[Remainder] = [
        *each_kind(
            plan,
            Premise(
                "files",
                Obligation.TRANSPORT,
                "The emitted files, the bridge's interpreter and its package stay as installed, and the harness loads them.",
                _file_breaker(placement),
            ),
        ),
        *each_kind(
            plan,
            Premise(
                "same-user",
                Obligation.GUARD,
                "The agent does not stop, trace or impersonate the bridge, which runs as the agent's own user.",
                Party.AGENT,
            ),
        ),
    ]
    variables = plan.token_variables()
    if variables:
        premises += each_kind(
            plan,
            Premise(
                "token-replaced",
                Obligation.CREDENTIAL,
                f"The value of {', '.join(variables)} is the one meant: no file that the harness reads replaces it.",
                Party.REPOSITORY,
            ),
        )
        if not set(variables) <= lifted.hidden:
            premises += each_kind(
                plan,
                Premise(
                    TOKEN_READABLE,
                    Obligation.CREDENTIAL,
                    f"The agent's own tools do not read {', '.join(variables)} from their environment.",
                    Party.AGENT,
                    target.engine.hides_tokens,
                ),
            )
    for variable in variables:
        fact = target.engine.strips(variable)
        if fact is not None:
            sentence = f"The harness keeps {variable} from hooks, so its backend cannot be authenticated."
            premises += each_kind(plan, Hole("variable-stripped", Obligation.CREDENTIAL, sentence, fact))
    return tuple(premises)


def _file_breaker(placement: Placement) -> Party:
    """The weakest party that may write our files: with managed scope only an administrator, unless they lie in the home."""
    in_home = any(path.startswith(placement.home.rstrip("/") + "/") for path in (placement.plan_dir, placement.bridge))
    if placement.scope is Scope.MANAGED and not in_home:
        return Party.ADMINISTRATOR
    return Party.REPOSITORY if placement.scope is Scope.PROJECT else Party.AGENT


def _judge(
    request: Request,
    target: Target,
    stance: Stance,
    lifted: Lifted,
    findings: Findings,
    remainder: tuple[Remainder, ...],
) -> Judgement:
    must_hold = [one for one in remainder if isinstance(one, Hole) or one.breaker <= stance.against]
    facts = {fact for used in findings.facts.values() for fact in used}
    facts |= {one.fact for one in must_hold if isinstance(one, Hole)}
    return Judgement(
        target=target.name,
        harness=target.engine.harness,
        version=target.engine.version,
        stance=stance,
        discharges=tuple(discharges(request, findings)),
        defects=tuple(findings.defects),
        open_holes=tuple(one for one in must_hold if one.code not in stance.accepted),
        accepted=tuple(one for one in must_hold if one.code in stance.accepted),
        premises=tuple(one for one in remainder if isinstance(one, Premise) and one not in must_hold),
        unproven=tuple(sorted((one for one in facts if one.evidence.kind is not EvidenceKind.RUN), key=lambda one: one.id)),
        trusted=lifted.trusted,
        out_of_scope=target.engine.out_of_scope,
    )
