"""Emit Codex's TOML: one command hook per event that the plan needs, the switches asked for, and our own trust.

config.toml and not hooks.json: a config.toml that is wrong keeps Codex from starting, a hooks.json that is wrong is dropped.
"""

from __future__ import annotations

import hashlib
import json
import posixpath

import tomlkit
from tomlkit.items import AoT, Table

from ahp_compile.engine import TOKEN_READABLE
from ahp_compile.guard import Dialect, Stream, command_line, native_timeout_s
from ahp_compile.placement import Placement, PlacementError, Scope
from ahp_compile.registration import Event
from ahp_compile.target import Artifact, Purpose, Request

_NATIVE = {
    Event.TOOL_BEFORE: ("PreToolUse", "pre_tool_use"),
    Event.TOOL_AFTER: ("PostToolUse", "post_tool_use"),
    Event.SESSION_START: ("SessionStart", "session_start"),
    Event.SESSION_END: ("SessionEnd", "session_end"),
}

# Exit 2 with the reason on stderr survives noise that makes the JSON form proceed. The prefix keeps it from being blank.
_DIALECT = Dialect(
    deny_exit=2,
    stream=Stream.STDERR,
    prefix="Denied by policy: ",
    unavailable="A required policy backend is unavailable.",
)


def emit(request: Request) -> tuple[Artifact, ...]:
    """The TOML file that holds our hooks and switches. tool.error has no native event: that hole is the engine's to name."""
    path = config_path(request.placement)
    document = tomlkit.document()
    if "web-search" in request.close:
        document["web_search"] = "disabled"
    _emit_features(document, request)
    if TOKEN_READABLE in request.close:
        policy = tomlkit.table()
        policy["exclude"] = list(request.plan.token_variables())
        document["shell_environment_policy"] = policy
    _emit_hooks(document, request, path)
    content = tomlkit.dumps(document).encode()
    return (Artifact(posixpath.basename(path), path, content, Purpose.NATIVE),)


def _emit_features(document: tomlkit.TOMLDocument, request: Request) -> None:
    managed = request.placement.scope is Scope.MANAGED
    if managed:
        document["allow_managed_hooks_only"] = True
    features = tomlkit.table()
    if managed:
        features["hooks"] = True
    if "write-stdin" in request.close:
        features["unified_exec_tty"] = False
    if features:
        document["features"] = features


def _emit_hooks(document: tomlkit.TOMLDocument, request: Request, path: str) -> None:
    hooks = tomlkit.table(is_super_table=True)
    state = tomlkit.table(is_super_table=True)
    for event in request.plan.events:
        if event.event not in _NATIVE:
            continue
        native_event, snake = _NATIVE[event.event]
        line, timeout_s = command_line(request, event, _DIALECT), native_timeout_s(event, request.plan)
        hooks[native_event] = _group(line, timeout_s)
        trusted = tomlkit.table()
        trusted["trusted_hash"] = _trusted_hash(snake, line, timeout_s)
        state[f"{path}:{snake}:0:0"] = trusted
    if request.trust_our_hook and request.placement.scope is not Scope.MANAGED:
        hooks["state"] = state
    document["hooks"] = hooks


def _group(line: str, timeout_s: int) -> AoT:
    handler: Table = tomlkit.table()
    handler["type"] = "command"
    handler["command"] = line
    handler["timeout"] = timeout_s
    handlers = tomlkit.aot()
    handlers.append(handler)
    group = tomlkit.table(is_super_table=True)
    group["hooks"] = handlers
    groups = tomlkit.aot()
    groups.append(group)
    return groups


def _trusted_hash(event: str, line: str, timeout_s: int) -> str:
    """The hash of a handler's identity as Codex computes it, over the timeout in force (see the trust fact)."""
    handler = {"async": False, "command": line, "timeout": timeout_s, "type": "command"}
    identity = {"event_name": event, "hooks": [handler]}
    text = json.dumps(identity, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def config_path(placement: Placement) -> str:
    """Where the file of a scope is, with symlinks as given: a trust key holds this very path, and an explicit CODEX_HOME is
    resolved by Codex, so --config-home must name the resolved folder. Raises PlacementError for project scope without project.
    """
    match placement.scope:
        case Scope.USER:
            return posixpath.join(placement.config_home or posixpath.join(placement.home, ".codex"), "config.toml")
        case Scope.PROJECT:
            if placement.project is None:
                raise PlacementError("--scope project needs --project DIR, the repository that the hooks are for")
            return posixpath.join(placement.project, ".codex/config.toml")
        case Scope.MANAGED:
            return "/etc/codex/requirements.toml"
