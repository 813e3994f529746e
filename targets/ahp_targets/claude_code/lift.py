"""Read Claude Code's settings back as the harness would, from bytes alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ahp_compile.engine import Lifted, LiftedHook
from ahp_compile.lifting import read_command_line, read_exec_form, unique_members
from ahp_compile.placement import Placement
from ahp_compile.target import LiftError
from ahp_targets.claude_code.codec import CODEC

_ENTRY_FIELDS = {"type", "command", "args", "timeout", "onFailure"}


def lift(files: Mapping[str, bytes], placement: Placement) -> Lifted:
    """Read the settings file among the files (destination → bytes). Raises LiftError when the harness would drop it."""
    managed = placement.scope.value == "managed"
    settings = _settings(files, "managed-settings.json" if managed else "settings.json")
    faults = []
    if settings.get("disableAllHooks"):
        faults.append("disableAllHooks switches every hook off")
    if managed and settings.get("allowManagedHooksOnly") is not True:
        faults.append("allowManagedHooksOnly is not pinned: hooks of others could rewrite a call's input")
    if "env" in settings:
        faults.append("the settings set environment variables of hooks, and so of the bridge")
    return Lifted(tuple(_hooks(settings.get("hooks"))), faults=tuple(faults))


def _settings(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    found = [content for destination, content in files.items() if destination.rsplit("/", 1)[-1] == name]
    if len(found) != 1:
        raise LiftError(f"there is not exactly one {name}")
    try:
        settings = json.loads(found[0].decode("utf-8"), object_pairs_hook=unique_members)
    except ValueError as error:
        raise LiftError(f"{name} is not strict JSON, so the harness drops the whole file") from error
    if not isinstance(settings, dict):
        raise LiftError(f"{name} does not hold an object")
    return settings


def _hooks(hooks: Any) -> Iterator[LiftedHook]:
    if not isinstance(hooks, dict):
        raise LiftError("hooks is not an object, so the harness drops the whole file")
    for native_event, groups in hooks.items():
        if not isinstance(groups, list):
            raise LiftError(f"hooks.{native_event} is not an array")
        for group in groups:
            if (
                not isinstance(group, dict)
                or not isinstance(group.get("hooks"), list)
                or not set(group) <= {"matcher", "hooks"}
            ):
                raise LiftError(f"an entry of hooks.{native_event} is not a matcher with hooks, so the harness drops the file")
            matcher = group.get("matcher")
            if matcher is not None and not isinstance(matcher, str):
                raise LiftError(f"a matcher of hooks.{native_event} is not a string")
            for entry in group["hooks"]:
                yield _hook(native_event, matcher, entry)


def _hook(native_event: str, matcher: str | None, entry: Any) -> LiftedHook:
    where = f"a hook of {native_event}"
    if not isinstance(entry, dict) or entry.get("type") != "command" or not isinstance(entry.get("command"), str):
        raise LiftError(f"{where} is not a command hook")
    foreign = sorted(set(entry) - _ENTRY_FIELDS)
    if foreign:
        # `if`, `async` and `once` change whether the hook counts; unknown ones are ignored without a word.
        raise LiftError(f"{where} has {', '.join(foreign)}, which is ignored or changes when it counts")
    if entry.get("onFailure", "continue") not in ("continue", "block"):
        raise LiftError(f"{where} has an onFailure that the harness does not know, so it drops the whole file")
    if "args" in entry:
        if not isinstance(entry["args"], list) or not all(isinstance(one, str) for one in entry["args"]):
            raise LiftError(f"{where} has args that are not strings")
        run_as = (entry["command"], *entry["args"])
        invocation, answers = read_exec_form(run_as, CODEC)
    else:
        run_as = ("/bin/sh", "-c", entry["command"])
        invocation, answers = read_command_line(entry["command"], CODEC)
    return LiftedHook(
        native_event,
        matcher,
        _timeout_ms(entry.get("timeout"), where),
        invocation,
        answers,
        {"onFailure": entry.get("onFailure", "continue")},
        run_as,
    )


def _timeout_ms(value: Any, where: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise LiftError(f"{where} has a timeout that is not a positive number, so the harness drops the whole file")
    return int(value * 1000)
