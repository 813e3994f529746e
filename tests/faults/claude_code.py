"""Faulty emissions of Claude Code's settings."""

from __future__ import annotations

import json
from typing import Any

from tests.faults.common import COMMAND_LINE_FAULTS, FILE_FAULTS, PLAN_FAULTS, Files, Seeded, edit_json, swap

_FILE = "/settings.json"
_UNAVAILABLE = '\'{\\"hookSpecificOutput\\"'


def _before(document: Any) -> Any:
    return document["hooks"]["PreToolUse"][0]


def _entry(document: Any) -> Any:
    return _before(document)["hooks"][0]


def _command(edit: Any) -> Any:
    def apply(document: Any) -> None:
        _entry(document)["command"] = edit(_entry(document)["command"])

    return apply


def _rename(document: Any, old: str, new: str) -> None:
    document["hooks"][new] = document["hooks"].pop(old)


def _bridge_only(command: str) -> str:
    return command.partition(" ahp ")[2].partition(" >&3")[0]


def _exec_form(document: Any) -> None:
    command, *args = _bridge_only(_entry(document)["command"]).split(" ")
    _entry(document).update(command=command, args=args)


def _raw(edit: Any) -> Any:
    def apply(files: Files) -> Files:
        (path,) = (one for one in files if one.endswith(_FILE))
        return files | {path: edit(files[path])}

    return apply


def _twice(content: bytes) -> bytes:
    document = json.dumps(json.loads(content))
    return (document[:-1] + ', "hooks": {}}').encode()


def _line_fault(old: str, new: str) -> Any:
    old = old.replace("{prefix}", "").replace("printf %s {unavailable} >&3; exit 2;; esac", ">&3; exit 2;; esac")
    new = new.replace("{prefix}", "")

    def edit(command: str) -> str:
        assert old in command, old
        if new == "exit 3;; esac":
            return command.partition("*) printf")[0] + "*) exit 3;; esac"
        return command.replace(old, new, 1)

    return edit_json(_FILE, _command(edit))


_NATIVE = {
    "timeout in milliseconds": lambda it: _entry(it).update(timeout=9000),
    "timeout below the budget": lambda it: _entry(it).update(timeout=7),
    "timeout between budget and guard": lambda it: _entry(it).update(timeout=8),
    "timeout left out": lambda it: _entry(it).pop("timeout"),
    "timeout as text": lambda it: _entry(it).update(timeout="9"),
    "timeout zero": lambda it: _entry(it).update(timeout=0),
    "timeout in another field": lambda it: _entry(it).update(timeout_ms=_entry(it).pop("timeout") * 1000),
    "matcher of one tool": lambda it: _before(it).update(matcher="Bash"),
    "matcher without MCP tools": lambda it: _before(it).update(matcher="Bash|Edit|Write"),
    "matcher that is no pattern": lambda it: _before(it).update(matcher="["),
    "compaction counts as a start": lambda it: it["hooks"]["SessionStart"][0].update(matcher="*"),
    "resumed sessions are missed": lambda it: it["hooks"]["SessionStart"][0].update(matcher="startup"),
    "event in another case": lambda it: _rename(it, "PreToolUse", "preToolUse"),
    "events exchanged": lambda it: it["hooks"].update(
        PreToolUse=it["hooks"]["PostToolUse"], PostToolUse=it["hooks"]["PreToolUse"]
    ),
    "event left out": lambda it: it["hooks"].pop("PostToolUseFailure"),
    "end of the turn for end of the session": lambda it: _rename(it, "SessionEnd", "Stop"),
    "a second entry": lambda it: _before(it)["hooks"].append(dict(_entry(it), timeout=10)),
    "flat entry": lambda it: it["hooks"].update(PreToolUse=[_entry(it)]),
    "not awaited": lambda it: _entry(it).update({"async": True}),
    "filtered by a rule": lambda it: _entry(it).update({"if": "Bash(rm *)"}),
    "unknown failure mode": lambda it: _entry(it).update(onFailure="deny"),
    "another kind of hook": lambda it: _entry(it).update(type="prompt"),
    "guard dropped": _command(_bridge_only),
    "guard is only || exit 2": _command(lambda command: _bridge_only(command) + " || exit 2"),
    "guard is only || exit 2, and bounded": _command(
        lambda command: f"/usr/bin/timeout -k 0.5 7.55 {_bridge_only(command)} || exit 2"
    ),
    "exec form": _exec_form,
    "no objection as permission": _command(
        lambda command: command.replace(
            "70) exit 0;;",
            "70) printf %s '"
            '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
            "' >&3; exit 0;;",
        )
    ),
    "denial in another case": _command(lambda command: command.replace('"deny"', '"DENY"')),
    "hooks switched off": lambda it: it.update(disableAllHooks=True),
    "token in the settings' environment": lambda it: it.update(env={"ACME_TOKEN": "canary-7f3a"}),
    "observer blocks": lambda it: it["hooks"]["PostToolUse"][0]["hooks"][0].update(
        command=it["hooks"]["PostToolUse"][0]["hooks"][0]["command"].replace("exit 0", "exit 2")
    ),
    "observer fails loudly": lambda it: it["hooks"]["PostToolUse"][0]["hooks"][0].update(
        onFailure="block",
        command=it["hooks"]["PostToolUse"][0]["hooks"][0]["command"].replace("; exit 0", ""),
    ),
    "observer speaks": lambda it: it["hooks"]["SessionStart"][0]["hooks"][0].update(
        command="printf %s hello; " + it["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    ),
}

# The printed deny JSON blocks here with any of these exit codes.
_HARMLESS = {"denial proceeds", "denial with another status", "unproven proceeds"}

FAULTS = (
    *PLAN_FAULTS,
    *FILE_FAULTS,
    *(Seeded(name, True, edit_json(_FILE, edit)) for name, edit in _NATIVE.items()),
    *(
        Seeded(f"line: {name}", True, _line_fault(old, new))
        for name, (old, new) in COMMAND_LINE_FAULTS.items()
        if name not in _HARMLESS
    ),
    Seeded("comment", True, _raw(lambda content: b"// ours\n" + content)),
    Seeded("trailing comma", True, _raw(lambda content: content.replace(b"\n}\n", b",\n}\n"))),
    Seeded("member twice", True, _raw(_twice)),
    Seeded("hooks is an array", True, edit_json(_FILE, lambda it: it.update(hooks=[]))),
    Seeded("not an object", True, _raw(lambda content: b"null\n")),
    Seeded("another file name", True, lambda files: {path.replace(_FILE, "/setting.json"): one for path, one in files.items()}),
    Seeded("unquoted home", True, swap(_FILE, "/home/ada/.local", "$HOME/.local")),
)
