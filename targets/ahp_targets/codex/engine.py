"""Codex CLI's hook engine: what it does with command hooks, which tools fire none, and how each claim is known."""

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
    Hole,
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
from ahp_compile.placement import Placement, Scope
from ahp_compile.plan import Plan
from ahp_compile.registration import Event

VERSION = "0.171.0"


def _ran(fact: str, claim: str) -> Fact:
    return Fact(fact, claim, Evidence(EvidenceKind.RUN, VERSION, "2026-12-01"))


EVENTS_FIRE = _ran(
    "events", "PreToolUse fires before the permission decision; SessionStart once; SessionEnd once, but not on SIGTERM"
)
MATCH_ALL = _ran(
    "match-all",
    "without a matcher a hook fires for every tool that fires hooks at all, MCP tools and subagents' calls included",
)
SEVERAL = _ran("several-hooks", "handlers of one event, from all layers together, run in parallel")
EXIT_2 = _ran("exit-2", "exit 2 with a reason on stderr that is not blank blocks, and stderr is the reason the model is told")
EXIT_2_BLANK = _ran("exit-2-blank", "exit 2 with blank stderr proceeds")
DENY_JSON = _ran("deny-json", "exit 0 with exactly one deny JSON and a reason blocks; any noise around it makes it proceed")
NEUTRAL = _ran("neutral", "exit 0 with empty stdout is no decision: sandbox and approvals stay in force")
REWRITE = _ran("rewrite", "allow with updatedInput rewrites the call's input")
PROCEEDS = _ran("failures-proceed", "any other exit, a signal, 126, 127, garbage: the call proceeds")
TIMEOUT = _ran("timeout", "at the native timeout the call proceeds, a printed denial notwithstanding")
HELD_OUTPUT = _ran(
    "held-output", "a background child that holds stdout or stderr delays the hook to its timeout, and a denial is lost"
)
SECONDS = _ran("seconds", "timeout is whole seconds, without a maximum; omitted 600, 0 counts as 1")
END_TIMEOUT = _ran(
    "session-end-timeout", "SessionEnd without timeout gets 1 s; above 3 s counts as 3 with a warning on each start"
)
AFTER = _ran(
    "after-events",
    "on other events exit 2, a decision or plain stdout changes what the model sees; exit 0 in silence does not",
)
ENVIRONMENT = _ran(
    "environment",
    "hooks inherit Codex's whole environment; shell_environment_policy exclude keeps a variable from the agent's shell, not "
    "from hooks",
)
CALL_ID = _ran("call-id", "tool_use_id is in the payload before and after the call")
WRITE_STDIN = _ran("write-stdin", "write_stdin types into a running command and fires no hook")
WEB_SEARCH = _ran("web-search", "the provider's own web_search fires no hook")
CODE_MODE = _ran("code-mode", "code mode's exec and wait fire no hook themselves; the calls nested in exec do")
NO_ERROR = _ran("no-tool-error", "there is no event for a failed call, and PostToolUse carries no mark of failure")
AFTER_GAPS = _ran(
    "tool-after-gaps",
    "PostToolUse also fires for commands that failed, without a mark, and does not fire for some calls that ran "
    "(apply_patch inside a shell command, a session still running)",
)
TRUST = _ran("trust", "a hook whose hash is not in the user's hooks.state is skipped in silence; managed hooks need no trust")

_EVENTS = {
    "PreToolUse": Event.TOOL_BEFORE,
    "PostToolUse": Event.TOOL_AFTER,
    "SessionStart": Event.SESSION_START,
    "SessionEnd": Event.SESSION_END,
}


def _delivers(hook: LiftedHook) -> Delivery:
    event = _EVENTS.get(hook.native_event)
    every_tool = hook.selector in (None, "", "*", ".*")
    return Delivery(frozenset({event} if event else ()), every_tool, (EVENTS_FIRE, MATCH_ALL))


def _rules(hook: LiftedHook, answer: NativeAnswer) -> Ruling:
    assert isinstance(answer, ProcessAnswer)
    if hook.native_event != "PreToolUse":
        speaks = answer.exit_status == 2 or bool(answer.stdout.strip())
        return Ruling(False, (AFTER,), disturbs=speaks)
    if answer.exit_status is None:
        return Ruling(False, (TIMEOUT,))
    if answer.holds_output:
        return Ruling(False, (HELD_OUTPUT,))
    reason = answer.stderr.decode(errors="replace")
    if answer.exit_status == 2:
        return Ruling(True, (EXIT_2,), reason=reason) if reason.strip() else Ruling(False, (EXIT_2_BLANK,))
    if answer.exit_status != 0:
        return Ruling(False, (PROCEEDS,))
    if not answer.stdout.strip():
        return Ruling(False, (NEUTRAL,))
    return _rules_json(answer.stdout)


def _rules_json(stdout: bytes) -> Ruling:
    try:
        output: Any = json.loads(stdout)
    except ValueError:
        return Ruling(False, (PROCEEDS,))
    specific = output.get("hookSpecificOutput") if isinstance(output, dict) else None
    if not isinstance(specific, dict):
        return Ruling(False, (PROCEEDS,))
    reason = specific.get("permissionDecisionReason")
    if specific.get("permissionDecision") == "deny" and isinstance(reason, str) and reason.strip():
        return Ruling(True, (DENY_JSON,), reason=reason)
    if "updatedInput" in specific:
        return Ruling(False, (REWRITE,), escalates=True)
    return Ruling(False, (PROCEEDS,), disturbs=True)


def _limits(hook: LiftedHook) -> Limit:
    if hook.native_event == "SessionEnd":
        return Limit(min(hook.timeout_ms if hook.timeout_ms is not None else 1000, 3000), (END_TIMEOUT,))
    return Limit(max(hook.timeout_ms, 1000) if hook.timeout_ms is not None else 600_000, (SECONDS, TIMEOUT))


def _strips(variable: str) -> Fact | None:
    return None


def closings(placement: Placement) -> frozenset[str]:
    """Names of the holes that native switches close; in managed files no run has shown that they win over the user's."""
    return frozenset() if placement.scope is Scope.MANAGED else frozenset({"write-stdin", "web-search"})


_UNHOOKED = (
    Hole(
        "write-stdin",
        Obligation.SUBSCRIPTION,
        "What the model types into a running command (write_stdin) reaches no backend.",
        WRITE_STDIN,
        "[features] unified_exec_tty = false: commands get no terminal and a closed stdin; polling and Ctrl-C are left",
    ),
    Hole(
        "web-search",
        Obligation.SUBSCRIPTION,
        "Searches that the model provider runs itself (web_search) reach no backend.",
        WEB_SEARCH,
        'web_search = "disabled"',
    ),
    Hole(
        "code-mode",
        Obligation.SUBSCRIPTION,
        "With models that work in code mode the script itself (exec, and wait) reaches no backend; it has no files and no "
        "network, and every tool that it calls is judged.",
        CODE_MODE,
    ),
)


def _remainder(plan: Plan, placement: Placement, lifted: Lifted) -> tuple[Remainder, ...]:
    return (
        *_holes(plan, placement, lifted),
        *_observation_holes(plan),
        *_premises(plan, placement, lifted),
    )


def _holes(plan: Plan, placement: Placement, lifted: Lifted) -> list[Remainder]:
    offered = closings(placement)
    holes: list[Remainder] = []
    if plan.event(Event.TOOL_BEFORE) is None and plan.event(Event.TOOL_AFTER) is None:
        return holes
    for hole in _UNHOOKED:
        if hole.code not in lifted.closed:
            holes += each_kind(plan, evolve(hole, closing=hole.closing if hole.code in offered else None))
    return holes


def _observation_holes(plan: Plan) -> list[Remainder]:
    holes: list[Remainder] = []
    if plan.event(Event.TOOL_ERROR):
        sentence = "No backend is told of failed tool calls (tool.error): the harness has no such event."
        holes.append(Hole("observation.tool-error", Obligation.SUBSCRIPTION, sentence, NO_ERROR, missing=Event.TOOL_ERROR))
    if plan.event(Event.TOOL_AFTER):
        sentence = "tool.after also reports calls that failed, and misses some that succeeded."
        holes.append(Hole("observation.tool-after", Obligation.EVENT, sentence, AFTER_GAPS))
    return holes


def _premises(plan: Plan, placement: Placement, lifted: Lifted) -> list[Remainder]:
    managed = placement.scope is Scope.MANAGED
    switched_off = (
        "Hooks are on: requirements.toml pins [features] hooks = true."
        if managed
        else "Hooks are on: no configuration, a trusted project's included, sets features.hooks = false, and `codex` is not "
        "started with --disable hooks or --ignore-user-config."
    )
    return [
        *each_kind(
            plan,
            Premise(
                "hooks-switched-off",
                Obligation.SUBSCRIPTION,
                switched_off,
                Party.ADMINISTRATOR if managed else Party.REPOSITORY,
            ),
        ),
        *_switches(plan, lifted),
        *each_kind(
            plan,
            Premise(
                "hook-environment",
                Obligation.TRANSPORT,
                "No BASH_ENV, LD_PRELOAD or the like, in the environment or in $CODEX_HOME/.env, changes how programs start.",
                Party.USER,
            ),
        ),
        *each_kind(
            plan,
            Premise(
                "unlisted-tools",
                Obligation.SUBSCRIPTION,
                "The model is offered no tool beyond those of the catalogue inside this version.",
                Party.USER,
            ),
        ),
        *each_kind(
            plan,
            Premise(
                "foreign-rewrite",
                Obligation.EVENT,
                "No other hook rewrites a tool's input: ours would have judged the original.",
                Party.ADMINISTRATOR if managed else Party.USER,
            ),
        ),
        *_activation(plan, placement, lifted),
    ]


def _switches(plan: Plan, lifted: Lifted) -> tuple[Remainder, ...]:
    if not lifted.closed:
        return ()
    sentence = "No configuration with precedence, a trusted project's included, sets our switches back."
    return each_kind(plan, Premise("switches", Obligation.SUBSCRIPTION, sentence, Party.REPOSITORY))


def _activation(plan: Plan, placement: Placement, lifted: Lifted) -> tuple[Remainder, ...]:
    if placement.scope is Scope.MANAGED:
        return ()
    if lifted.trusted:
        sentence = "The trust entries stay as written: any change to our hooks, or a group put before them, switches them off."
        return each_kind(plan, Premise("trust", Obligation.SUBSCRIPTION, sentence, Party.USER))
    sentence = (
        "NOT ACTIVE UNTIL TRUSTED: the harness skips these hooks in silence until the user trusts them (in its /hooks view, or "
        "compile with --trust-our-hook)."
    )
    return each_kind(plan, Premise("trust", Obligation.SUBSCRIPTION, sentence, Party.USER))


ENGINE = Engine(
    harness="Codex CLI",
    version=VERSION,
    scopes=frozenset({"user", "project", "managed"}),
    facts=(
        EVENTS_FIRE,
        MATCH_ALL,
        SEVERAL,
        EXIT_2,
        EXIT_2_BLANK,
        DENY_JSON,
        NEUTRAL,
        REWRITE,
        PROCEEDS,
        TIMEOUT,
        HELD_OUTPUT,
        SECONDS,
        END_TIMEOUT,
        AFTER,
        ENVIRONMENT,
        CALL_ID,
        WRITE_STDIN,
        WEB_SEARCH,
        CODE_MODE,
        NO_ERROR,
        AFTER_GAPS,
        TRUST,
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
    hides_tokens="[shell_environment_policy] exclude",
    out_of_scope=("What the user types into the harness's own shell mode is no tool call of the agent.",),
)
