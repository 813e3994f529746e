"""Faulty emissions of Codex's TOML."""

from __future__ import annotations

from typing import Any

import tomlkit

from tests.faults.common import COMMAND_LINE_FAULTS, FILE_FAULTS, PLAN_FAULTS, Fault, Files, Seeded, swap

_FILE = "/config.toml"


def _edit(edit: Any) -> Fault:
    """Change the TOML document, as an emitter with another idea would have written it."""

    def apply(files: Files) -> Files:
        (path,) = (one for one in files if one.endswith(_FILE))
        document = tomlkit.parse(files[path].decode()).unwrap()
        edit(document)
        return files | {path: tomlkit.dumps(document).encode()}

    return apply


def _group(document: Any, event: str = "PreToolUse") -> Any:
    return document["hooks"][event][0]


def _entry(document: Any, event: str = "PreToolUse") -> Any:
    return _group(document, event)["hooks"][0]


def _command(edit: Any, event: str = "PreToolUse") -> Any:
    def apply(document: Any) -> None:
        _entry(document, event)["command"] = edit(_entry(document, event)["command"])

    return apply


def _rename(document: Any, old: str, new: str) -> None:
    document["hooks"][new] = document["hooks"].pop(old)


def _bridge_only(command: str) -> str:
    return command.partition(" ahp ")[2].partition(" >&3")[0]


def _line_fault(old: str, new: str) -> Any:
    prefix = '"Denied by policy: "'
    old = old.replace("{prefix}", prefix).replace("{unavailable}", "'A required policy backend is unavailable.'")
    new = new.replace("{prefix}", prefix)

    def edit(command: str) -> str:
        assert old in command, old
        return command.replace(old, new, 1)

    return _edit(_command(edit))


_NATIVE = {
    "timeout in milliseconds": lambda it: _entry(it).update(timeout=9000),
    "timeout below the budget": lambda it: _entry(it).update(timeout=7),
    "timeout between budget and guard": lambda it: _entry(it).update(timeout=8),
    "timeout left out": lambda it: _entry(it).pop("timeout"),
    "timeout as a float": lambda it: _entry(it).update(timeout=9.0),
    "timeout as text": lambda it: _entry(it).update(timeout="9"),
    "timeout negative": lambda it: _entry(it).update(timeout=-9),
    "timeout in another field": lambda it: _entry(it).update(timeoutSec=_entry(it).pop("timeout")),
    "session end without its own timeout": lambda it: _entry(it, "SessionEnd").pop("timeout"),
    "matcher of one tool": lambda it: _group(it).update(matcher="Bash"),
    "matcher without MCP tools": lambda it: _group(it).update(matcher="Bash|apply_patch"),
    "event in another case": lambda it: _rename(it, "PreToolUse", "preToolUse"),
    "permission request for the call": lambda it: _rename(it, "PreToolUse", "PermissionRequest"),
    "events exchanged": lambda it: it["hooks"].update(
        PreToolUse=it["hooks"]["PostToolUse"], PostToolUse=it["hooks"]["PreToolUse"]
    ),
    "event left out": lambda it: it["hooks"].pop("SessionStart"),
    "a second handler": lambda it: _group(it)["hooks"].append(dict(_entry(it), timeout=10)),
    "not awaited": lambda it: _entry(it).update({"async": True}),
    "another kind of hook": lambda it: _entry(it).update(type="http"),
    "command as an array": lambda it: _entry(it).update(command=["a", "b"]),
    "legacy block": lambda it: it.update(hooks=[{"event": "PreToolUse", "command": "true"}]),
    "hooks switched off": lambda it: it.update(features={"hooks": False}),
    "guard dropped": _command(_bridge_only),
    "guard is only || exit 2": _command(lambda command: _bridge_only(command) + " || exit 2"),
    "denial without its words": _command(lambda command: command.replace("printf %s 'A required", "printf '' 'A required")),
    "denial on stdout": _command(lambda command: command.replace("exec 3>&2", "exec 3>&1")),
    "blank reason not kept from being blank": _command(lambda command: command.replace('"Denied by policy: "', "")),
    "descriptor left open": _command(lambda command: command.replace("/bin/sh -c", "").replace(" ahp ", " ")),
    "observer blocks": _command(lambda command: command.replace("exit 0", "exit 2"), "PostToolUse"),
    "observer speaks": _command(lambda command: "printf %s hello; " + command, "SessionStart"),
    "switch forgotten: web search": lambda it: it.pop("web_search"),
    "switch turned: web search": lambda it: it.update(web_search="live"),
    "switch forgotten: terminals": lambda it: it["features"].pop("unified_exec_tty"),
    "switch as text": lambda it: it["features"].update(unified_exec_tty="false"),
    "token not hidden": lambda it: it["shell_environment_policy"].update(exclude=["OTHER_TOKEN"]),
    "trust of another command": lambda it: next(iter(it["hooks"]["state"].values())).update(trusted_hash="sha256:00"),
    "trust under another place": lambda it: it["hooks"].update(
        state={key.replace(":0:0", ":1:0"): value for key, value in it["hooks"]["state"].items()}
    ),
    "trust left out": lambda it: it["hooks"].pop("state"),
    "trusted but off": lambda it: next(iter(it["hooks"]["state"].values())).update(enabled=False),
}

# Exit 2 without a word proceeds here, and with the fixed prefix an empty text is words enough to deny.
_HARMLESS = {"proven proceed denied", "silent denial passed on"}

FAULTS = (
    *PLAN_FAULTS,
    *FILE_FAULTS,
    *(Seeded(name, True, _edit(edit), trusting=name.startswith("trust")) for name, edit in _NATIVE.items()),
    *(
        Seeded(f"line: {name}", True, _line_fault(old, new))
        for name, (old, new) in COMMAND_LINE_FAULTS.items()
        if name not in _HARMLESS
    ),
    Seeded("not TOML", True, swap(_FILE, "[[hooks.PreToolUse]]", "[[hooks.PreToolUse]")),
    Seeded("another file name", True, lambda files: {path.replace(_FILE, "/hooks.json"): one for path, one in files.items()}),
)
