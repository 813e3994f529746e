"""Read Codex's TOML back as Codex would, from bytes alone."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from ahp_compile.engine import Lifted, LiftedHook
from ahp_compile.lifting import read_command_line
from ahp_compile.placement import Placement
from ahp_compile.target import LiftError
from ahp_targets.codex.codec import CODEC

_SNAKE = {
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
}
_SESSION_END_LIMIT_S = 3


def lift(files: Mapping[str, bytes], placement: Placement) -> Lifted:
    """Read the TOML file among the files (destination → bytes). Raises LiftError when Codex would not start with it."""
    managed = placement.scope.value == "managed"
    path, config = _config(files, "requirements.toml" if managed else "config.toml")
    hooks = config.get("hooks", {})
    if not isinstance(hooks, dict):
        raise LiftError("hooks is not a table of events, so Codex does not start")
    state = hooks.get("state", {})
    features = config.get("features", {})
    lifted = tuple(_hooks(hooks))
    return Lifted(
        lifted,
        closed=_closed(config, features),
        hidden=_hidden(config),
        trusted=None if managed else _trusted(path, hooks, state),
        faults=tuple(_faults(config, features, managed=managed)),
    )


def _config(files: Mapping[str, bytes], name: str) -> tuple[str, dict[str, Any]]:
    found = [(path, content) for path, content in files.items() if path.rsplit("/", 1)[-1] == name]
    if len(found) != 1:
        raise LiftError(f"there is not exactly one {name}")
    path, content = found[0]
    try:
        return path, tomllib.loads(content.decode("utf-8"))
    except ValueError as error:
        raise LiftError(f"{name} is not TOML, so Codex does not start") from error


def _closed(config: Mapping[str, Any], features: Mapping[str, Any]) -> frozenset[str]:
    closed = set()
    if features.get("unified_exec_tty") is False:
        closed.add("write-stdin")
    if config.get("web_search") == "disabled":
        closed.add("web-search")
    return frozenset(closed)


def _hidden(config: Mapping[str, Any]) -> frozenset[str]:
    policy = config.get("shell_environment_policy", {})
    exclude = policy.get("exclude", []) if isinstance(policy, dict) else []
    # A pattern hides more than a plain name; only plain names are taken as proof.
    return frozenset(one for one in exclude if isinstance(one, str) and "*" not in one and "?" not in one)


def _faults(config: Mapping[str, Any], features: Mapping[str, Any], *, managed: bool) -> Iterator[str]:
    if managed and features.get("hooks") is not True:
        yield "[features] hooks = true is not pinned, so a user can switch managed hooks off"
    if managed and config.get("allow_managed_hooks_only") is not True:
        yield "allow_managed_hooks_only is not pinned: hooks of others could rewrite a call's input"
    if not managed and (features.get("hooks") is False or features.get("codex_hooks") is False):
        yield "[features] switches every hook off"


def _hooks(hooks: Mapping[str, Any]) -> Iterator[LiftedHook]:
    for native_event, groups in hooks.items():
        if native_event == "state":
            continue
        if not isinstance(groups, list):
            raise LiftError(f"hooks.{native_event} is not an array of tables, so Codex does not start")
        for group in groups:
            for handler in group.get("hooks", []):
                yield _hook(native_event, group.get("matcher"), handler)


def _hook(native_event: str, matcher: str | None, handler: Mapping[str, Any]) -> LiftedHook:
    where = f"a hook of {native_event}"
    if handler.get("type") != "command" or not isinstance(handler.get("command"), str):
        raise LiftError(f"{where} is not a command hook")
    foreign = sorted(set(handler) - {"type", "command", "timeout"})
    if foreign:
        raise LiftError(f"{where} has {', '.join(foreign)}, which is ignored or changes whether its answer counts")
    timeout = handler.get("timeout")
    if timeout is not None and (type(timeout) is not int or timeout < 0):
        raise LiftError(f"{where} has a timeout that is not a whole number, so Codex does not start")
    invocation, answers = read_command_line(handler["command"], CODEC)
    timeout_ms = None if timeout is None else timeout * 1000
    run_as = ("bash", "-c", handler["command"])
    return LiftedHook(native_event, matcher, timeout_ms, invocation, answers, run_as=run_as)


def _trusted(path: str, hooks: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Whether every handler has a trust entry under its own place with its own hash, and none is switched off."""
    for native_event, groups in hooks.items():
        if native_event == "state":
            continue
        for group_index, group in enumerate(groups):
            for index, handler in enumerate(group.get("hooks", [])):
                entry = state.get(f"{path}:{_SNAKE.get(native_event)}:{group_index}:{index}", {})
                if entry.get("enabled") is False or entry.get("trusted_hash") != _hash(native_event, group, handler):
                    return False
    return True


def _hash(native_event: str, group: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    seconds = handler.get("timeout", 1 if native_event == "SessionEnd" else 600)
    if native_event == "SessionEnd":
        seconds = min(seconds, _SESSION_END_LIMIT_S)
    normal = {"type": "command", "command": handler["command"], "timeout": max(seconds, 1), "async": False}
    identity: dict[str, Any] = {"hooks": [normal], "event_name": _SNAKE.get(native_event)}
    if "matcher" in group:
        identity["matcher"] = group["matcher"]
    compact = dumps(identity, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{sha256(compact.encode()).hexdigest()}"
