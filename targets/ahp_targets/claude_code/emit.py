"""Emit Claude Code's settings: one command hook per event that the plan needs."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from ahp_compile.guard import Dialect, Stream, command_line, native_timeout_s
from ahp_compile.placement import Placement, PlacementError, Scope
from ahp_compile.plan import EventPlan
from ahp_compile.registration import Event
from ahp_compile.target import Artifact, Purpose, Request

_NATIVE = {
    Event.TOOL_BEFORE: ("PreToolUse", "*"),
    Event.TOOL_AFTER: ("PostToolUse", "*"),
    Event.TOOL_ERROR: ("PostToolUseFailure", "*"),
    Event.SESSION_START: ("SessionStart", "startup|resume|clear|fork"),
    Event.SESSION_END: ("SessionEnd", None),
}

# Deny JSON together with exit 2 is the form that blocks in every version and under every noise seen.
_UNAVAILABLE = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "A required policy backend is unavailable.",
    }
}
_DIALECT = Dialect(deny_exit=2, stream=Stream.STDOUT, prefix="", unavailable=json.dumps(_UNAVAILABLE))


def emit(request: Request) -> tuple[Artifact, ...]:
    """The settings file that holds our hooks and nothing else."""
    settings: dict[str, Any] = {"hooks": {}}
    for event in request.plan.events:
        native_event, matcher = _NATIVE[event.event]
        group: dict[str, Any] = {} if matcher is None else {"matcher": matcher}
        settings["hooks"][native_event] = [group | {"hooks": [_entry(request, event)]}]
    if request.placement.scope is Scope.MANAGED:
        settings["allowManagedHooksOnly"] = True
    content = json.dumps(settings, ensure_ascii=False, indent=2).encode() + b"\n"
    destination = settings_path(request.placement)
    return (Artifact(posixpath.basename(destination), destination, content, Purpose.NATIVE),)


def _entry(request: Request, event: EventPlan) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "command",
        "command": command_line(request, event, _DIALECT),
        "timeout": native_timeout_s(event, request.plan),
    }
    if event.guard.denies:
        entry["onFailure"] = "block"
    return entry


def settings_path(placement: Placement) -> str:
    """Where the settings file of a scope is. Raises PlacementError for project scope without a project."""
    match placement.scope:
        case Scope.USER:
            return posixpath.join(placement.config_home or posixpath.join(placement.home, ".claude"), "settings.json")
        case Scope.PROJECT:
            if placement.project is None:
                raise PlacementError("--scope project needs --project DIR, the repository that the settings are for")
            return posixpath.join(placement.project, ".claude/settings.json")
        case Scope.MANAGED:
            folder = {"linux": "/etc/claude-code", "macos": "/Library/Application Support/ClaudeCode"}[placement.os.value]
            return posixpath.join(folder, "managed-settings.json")
