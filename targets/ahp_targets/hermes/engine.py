"""Hermes Agent's hook engine: what it does with an in-process plugin's callbacks, and how each claim is known."""

from __future__ import annotations

from ahp_compile.engine import (
    CallbackAnswer,
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
    Remainder,
    Ruling,
    each_kind,
)
from ahp_compile.placement import Placement
from ahp_compile.plan import Plan
from ahp_compile.registration import Event

VERSION = "0.19.0"


def _fact(fact: str, claim: str, kind: EvidenceKind = EvidenceKind.RUN) -> Fact:
    return Fact(fact, claim, Evidence(kind, VERSION, "2026-12-01"))


EVENTS_FIRE = _fact(
    "events",
    "pre_tool_call fires before a tool runs, post_tool_call after it with status ok, error or blocked, on_session_start at a "
    "new session's first turn, on_session_finalize at its end",
)
ALL_TOOLS = _fact(
    "all-tools",
    "callbacks are called for every tool: MCP tools, execute_code's inner calls and subagents' calls included",
)
SEVERAL = _fact("several-hooks", "callbacks run one after another in the order of plugins, all of them even after a block")
BLOCK = _fact("block", "a returned {action: block, message} blocks, also under --yolo, and the model is told the message")
NONE = _fact("none", "a returned None is no decision: the harness's own approvals stay in force")
RAISES = _fact("raises", "a callback that raises lets the tool run")
APPROVE = _fact("approve", "a returned {action: approve} opens the approval gate", EvidenceKind.SOURCE)
NO_TIMEOUT = _fact("no-timeout", "plugin callbacks have no timeout of the harness's own")
AWAITED = _fact("awaited", "callbacks of the other events are awaited and what they return is not used")
ENVIRONMENT = _fact("environment", "a child of the plugin inherits the harness's whole environment")
CALL_ID = _fact("call-id", "tool_call_id is the model's own id before and after the call; a blocked call has status blocked")
CODEX_PROVIDER = _fact(
    "codex-provider",
    "with the provider mode codex_app_server that program's own tools run outside Hermes' dispatch",
    EvidenceKind.SOURCE,
)

_EVENTS = {
    ("pre_tool_call", None): Event.TOOL_BEFORE,
    ("post_tool_call", "ok"): Event.TOOL_AFTER,
    ("post_tool_call", "error"): Event.TOOL_ERROR,
    ("on_session_start", None): Event.SESSION_START,
    ("on_session_finalize", None): Event.SESSION_END,
}


def _delivers(hook: LiftedHook) -> Delivery:
    event = _EVENTS.get((hook.native_event, hook.selector))
    return Delivery(frozenset({event} if event else ()), True, (EVENTS_FIRE, ALL_TOOLS))


def _rules(hook: LiftedHook, answer: NativeAnswer) -> Ruling:
    assert isinstance(answer, CallbackAnswer)
    if hook.native_event != "pre_tool_call":
        return Ruling(False, (AWAITED,), disturbs=answer.returned is not None)
    if answer.raised:
        return Ruling(False, (RAISES,))
    returned = answer.returned
    if returned is None:
        return Ruling(False, (NONE,))
    if isinstance(returned, dict) and returned.get("action") == "block":
        message = returned.get("message")
        if isinstance(message, str) and message.strip():
            return Ruling(True, (BLOCK,), reason=message)
    if isinstance(returned, dict) and returned.get("action") == "approve":
        return Ruling(False, (APPROVE,), escalates=True)
    return Ruling(False, (NONE,), disturbs=True)


def _limits(hook: LiftedHook) -> Limit:
    return Limit(None, (NO_TIMEOUT,))


def _strips(variable: str) -> Fact | None:
    return None


def _remainder(plan: Plan, placement: Placement, lifted: Lifted) -> tuple[Remainder, ...]:
    sentences = {
        "hooks-switched-off": (
            Obligation.SUBSCRIPTION,
            "The plugin is loaded: `hermes` runs without --safe-mode and --ignore-user-config, the plugin stays in "
            "plugins.enabled, and the entry points hermes-acp and hermes-agent, which load no plugins, are not used.",
            Party.USER,
        ),
        "plugin-replaced": (
            Obligation.SUBSCRIPTION,
            "No project plugin named ahp-bridge replaces ours (only with HERMES_ENABLE_PROJECT_PLUGINS).",
            Party.USER,
        ),
        "codex-provider": (
            Obligation.SUBSCRIPTION,
            "The provider mode is not codex_app_server, whose own tools run outside the harness's dispatch.",
            Party.USER,
        ),
        "foreign-rewrite": (
            Obligation.EVENT,
            "No other plugin rewrites a tool's arguments after ours judged them.",
            Party.USER,
        ),
        "newer-version": (
            Obligation.BACKSTOP,
            "Hermes is 0.19: later lines bound plugin callbacks with a timeout of their own (30 s by default).",
            Party.USER,
        ),
    }
    return tuple(
        one
        for code, (obligation, sentence, breaker) in sentences.items()
        for one in each_kind(plan, Premise(code, obligation, sentence, breaker))
    )


ENGINE = Engine(
    harness="Hermes Agent",
    version=VERSION,
    scopes=frozenset({"user"}),
    facts=(
        EVENTS_FIRE,
        ALL_TOOLS,
        SEVERAL,
        BLOCK,
        NONE,
        RAISES,
        APPROVE,
        NO_TIMEOUT,
        AWAITED,
        ENVIRONMENT,
        CALL_ID,
        CODEX_PROVIDER,
    ),
    delivers=_delivers,
    rules=_rules,
    limits=_limits,
    strips=_strips,
    several_hooks=SEVERAL,
    credential_facts=(ENVIRONMENT,),
    event_facts=(CALL_ID, EVENTS_FIRE),
    no_escalation_facts=(NONE,),
    remainder=_remainder,
    out_of_scope=("What the user runs with `!` or a slash command is no tool call of the agent.",),
)
