"""Claude Code's hook engine: what it does with command hooks, and how each claim is known."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from ahp_compile.engine import (
    Delivery,
    Engine,
    Evidence,
    EvidenceKind,
    Fact,
    Lifted,
    LiftedHook,
    Limit,
    NativeAnswer,
    Obligation,
    Party,
    Premise,
    ProcessAnswer,
    Remainder,
    Ruling,
    each_kind,
)
from ahp_compile.placement import Os, Placement, Scope
from ahp_compile.plan import Plan
from ahp_compile.registration import Event

VERSION = "2.1.332"


def _ran(fact: str, claim: str, version: str = VERSION) -> Fact:
    return Fact(fact, claim, Evidence(EvidenceKind.RUN, version, "2026-12-01"))


EVENTS_FIRE = _ran(
    "events",
    "PreToolUse fires before the permission decision, PostToolUse after success, PostToolUseFailure after failure (nonzero "
    "exit, timeout, missing file, MCP isError), SessionStart and SessionEnd once per session",
)
MATCH_ALL = _ran(
    "match-all", 'matcher "*", "", ".*" or none fires for every tool, MCP tools and all kinds of subagents included'
)
START_SOURCES = _ran(
    "start-sources",
    "SessionStart's matcher names its source; compact comes in the middle of a session with the same id",
)
SEVERAL = _ran("several-hooks", "hooks of one event, from all scopes together, run in parallel in no stable order")
DENY_JSON = _ran(
    "deny-json",
    "deny JSON on stdout with exit 0, 1 or 2 blocks in every permission mode, bypassPermissions included, and the model "
    "is told the reason in it",
)
ASYNC = _ran("async", 'stdout {"async":true} with exit 0 or 2 proceeds, and is blocked with exit 2 by onFailure block')
EXIT_2 = _ran("exit-2", "exit 2 blocks with or without stderr; without deny JSON the model is shown the command line")
NEUTRAL = _ran(
    "neutral", "exit 0 with empty stdout or {} is no decision: rules, modes and prompts of the harness stay in force"
)
UNPARSEABLE = _ran("unparseable", "exit 0 with stdout that is not JSON proceeds, onFailure block or not")
BAD_OBJECT = _ran("bad-object", "exit 0 with a JSON object of another shape proceeds, and is blocked by onFailure block")
ALLOW = _ran("allow", "permissionDecision allow skips the permission prompt")
OTHER_STATUS = _ran("other-status", "any other exit status, a signal, 126 and 127 proceed, and are blocked by onFailure block")
FAILURE_TEXT = _ran("failure-text", "a call blocked by onFailure shows the model the hook's command line and its stderr")
TIMEOUT = _ran("timeout", "at the native timeout the call proceeds, and is blocked by onFailure block, printed deny or not")
SECONDS = _ran("seconds", "timeout is in seconds, fractions are kept, there is no maximum")
DEFAULT_TIMEOUT = Fact(
    "default-timeout", "a command hook without timeout gets 600 s", Evidence(EvidenceKind.DOCS, VERSION, "2026-12-01")
)
END_TIMEOUT = _ran("session-end-timeout", "SessionEnd without timeout gets 1.5 s; a hook's own timeout extends it")
AFTER = _ran(
    "after-events",
    "on PostToolUse and PostToolUseFailure only exit 2, a decision or onFailure block reach the model; exit 0 without stdout "
    "changes nothing, and SessionEnd cannot block",
)
START_STDOUT = _ran("start-stdout", "plain stdout of SessionStart is put into the model's context; nothing blocks it")
ENVIRONMENT = _ran("environment", "hooks inherit the harness's environment, tokens included")
OTEL = _ran("otel", "variables named OTEL_* are kept from hooks")
CALL_ID = _ran(
    "call-id", "tool_use_id is the model's own id and equal before and after the call; denied calls fire no later event"
)

_TOOL_EVENTS = {
    "PreToolUse": Event.TOOL_BEFORE,
    "PostToolUse": Event.TOOL_AFTER,
    "PostToolUseFailure": Event.TOOL_ERROR,
}
_FAILURE_REASON = 'failed; blocking because onFailure is "block"'
_NEW_SESSION_SOURCES = {"startup", "resume", "clear", "fork"}


def _delivers(hook: LiftedHook) -> Delivery:
    if hook.native_event in _TOOL_EVENTS:
        every_tool = hook.selector in (None, "", "*", ".*")
        return Delivery(frozenset({_TOOL_EVENTS[hook.native_event]}), every_tool, (EVENTS_FIRE, MATCH_ALL))
    if hook.native_event == "SessionStart":
        # A wider matcher would also report sessions that do not start, a narrower one would miss some that do.
        starts = set((hook.selector or "").split("|")) == _NEW_SESSION_SOURCES
        return Delivery(frozenset({Event.SESSION_START} if starts else ()), True, (EVENTS_FIRE, START_SOURCES))
    if hook.native_event == "SessionEnd":
        return Delivery(frozenset({Event.SESSION_END}), hook.selector is None, (EVENTS_FIRE,))
    return Delivery(frozenset(), False, (EVENTS_FIRE,))


def _rules(hook: LiftedHook, answer: NativeAnswer) -> Ruling:
    assert isinstance(answer, ProcessAnswer)
    blocks_on_failure = hook.switches.get("onFailure") == "block"
    if hook.native_event != "PreToolUse":
        return _rules_after(hook, answer, blocks_on_failure=blocks_on_failure)
    # A child that holds the output keeps the harness reading until its timeout.
    if answer.exit_status is None or answer.holds_output:
        return _on_failure(TIMEOUT, blocks=blocks_on_failure)
    output = _parse(answer.stdout)
    decision = _decision(output)
    if decision == "deny" and answer.exit_status in (0, 1, 2):
        return Ruling(True, (DENY_JSON,), reason=_reason(output))
    if isinstance(output, dict) and output.get("async") is True:
        return _on_failure(ASYNC, blocks=blocks_on_failure)
    if answer.exit_status == 2:
        return Ruling(True, (EXIT_2,), reason=answer.stderr.decode(errors="replace"), discloses=True)
    if decision == "allow":
        return Ruling(False, (ALLOW,), escalates=True)
    if answer.exit_status != 0:
        return _on_failure(OTHER_STATUS, blocks=blocks_on_failure)
    if not answer.stdout.strip() or output == {}:
        return Ruling(False, (NEUTRAL,))
    if isinstance(output, dict):
        return evolve(_on_failure(BAD_OBJECT, blocks=blocks_on_failure), disturbs=True)
    return Ruling(False, (UNPARSEABLE,), disturbs=True)


def _on_failure(fact: Fact, *, blocks: bool) -> Ruling:
    return Ruling(blocks, (fact, FAILURE_TEXT), _FAILURE_REASON, discloses=True) if blocks else Ruling(False, (fact,))


def _rules_after(hook: LiftedHook, answer: ProcessAnswer, *, blocks_on_failure: bool) -> Ruling:
    if hook.native_event == "SessionStart":
        return Ruling(False, (START_STDOUT,), disturbs=bool(answer.stdout.strip()))
    failed = answer.exit_status != 0
    speaks = bool(answer.stdout.strip()) or answer.exit_status == 2 or (failed and blocks_on_failure)
    return Ruling(False, (AFTER,), disturbs=speaks)


def _parse(stdout: bytes) -> Any:
    try:
        return json.loads(stdout)
    except ValueError:
        return None


def _decision(output: Any) -> str | None:
    specific = output.get("hookSpecificOutput") if isinstance(output, dict) else None
    if isinstance(specific, dict) and specific.get("hookEventName") == "PreToolUse":
        decision = specific.get("permissionDecision")
        return decision if isinstance(decision, str) else None
    return None


def _reason(output: Any) -> str:
    reason = output["hookSpecificOutput"].get("permissionDecisionReason")
    return reason if isinstance(reason, str) else ""


def _limits(hook: LiftedHook) -> Limit:
    if hook.timeout_ms is not None:
        return Limit(hook.timeout_ms, (SECONDS, TIMEOUT))
    if hook.native_event == "SessionEnd":
        return Limit(1500, (END_TIMEOUT,))
    return Limit(600_000, (DEFAULT_TIMEOUT,))


def _strips(variable: str) -> Fact | None:
    return OTEL if variable.startswith("OTEL_") else None


def _remainder(plan: Plan, placement: Placement, lifted: Lifted) -> tuple[Remainder, ...]:
    managed = placement.scope is Scope.MANAGED
    return (
        *each_kind(
            plan,
            Premise(
                "hooks-switched-off",
                Obligation.SUBSCRIPTION,
                "Hooks are on: no managed file says disableAllHooks."
                if managed
                else "Hooks are on: no settings file, the project's included, says disableAllHooks or holds a copy of "
                "our entry, and `claude` is not started with --bare or --setting-sources.",
                Party.ADMINISTRATOR if managed else Party.REPOSITORY,
            ),
        ),
        *each_kind(
            plan,
            Premise(
                "hook-environment",
                Obligation.TRANSPORT,
                "No settings file's `env` member sets LD_PRELOAD or other variables that change how programs start.",
                Party.REPOSITORY,
            ),
        ),
        *each_kind(
            plan,
            Premise(
                "settings-file",
                Obligation.GUARD,
                "The settings file stays valid as a whole: one wrong value in it makes the harness drop all of its hooks"
                + (" (a managed file that is wrong keeps the harness from starting)." if managed else "."),
                Party.ADMINISTRATOR if managed else Party.USER,
            ),
        ),
        *_foreign_rewrites(plan, placement),
        *_older_versions(plan, placement),
    )


def _foreign_rewrites(plan: Plan, placement: Placement) -> tuple[Remainder, ...]:
    if placement.scope is Scope.MANAGED:
        # allowManagedHooksOnly, which managed output carries, leaves only an administrator's own hooks.
        breaker, whose = Party.ADMINISTRATOR, "No other managed hook"
    else:
        breaker, whose = Party.REPOSITORY, "No other hook, of the user or the project,"
    sentence = f"{whose} rewrites a tool's input: ours would have judged the original."
    return each_kind(plan, Premise("foreign-rewrite", Obligation.EVENT, sentence, breaker))


def _older_versions(plan: Plan, placement: Placement) -> tuple[Remainder, ...]:
    if placement.os is Os.LINUX or not any(event.guard.denies for event in plan.events):
        return ()
    sentence = "Claude Code is 2.1.295 or later: earlier ones ignore onFailure, and nothing else bounds a frozen bridge here."
    return each_kind(plan, Premise("older-version", Obligation.GUARD, sentence, Party.USER))


ENGINE = Engine(
    harness="Claude Code",
    version=VERSION,
    scopes=frozenset({"user", "project", "managed"}),
    facts=(
        EVENTS_FIRE,
        MATCH_ALL,
        START_SOURCES,
        SEVERAL,
        DENY_JSON,
        ASYNC,
        EXIT_2,
        NEUTRAL,
        UNPARSEABLE,
        BAD_OBJECT,
        ALLOW,
        OTHER_STATUS,
        FAILURE_TEXT,
        TIMEOUT,
        SECONDS,
        DEFAULT_TIMEOUT,
        END_TIMEOUT,
        AFTER,
        START_STDOUT,
        ENVIRONMENT,
        OTEL,
        CALL_ID,
    ),
    delivers=_delivers,
    rules=_rules,
    limits=_limits,
    strips=_strips,
    several_hooks=SEVERAL,
    credential_facts=(ENVIRONMENT,),
    event_facts=(CALL_ID, EVENTS_FIRE),
    no_escalation_facts=(NEUTRAL,),
    remainder=_remainder,
    out_of_scope=(
        "Shell commands inside a slash command's own file (`!` backticks) and commands that the user types fire no hook: they "
        "are not tool calls of the agent.",
        "A call that the harness rejects before execution (invalid input, unknown tool) fires no hook; nothing runs.",
    ),
)
