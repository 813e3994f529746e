"""Faults that any target's emitter could make, and the tools to seed them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Files = dict[str, bytes]
Fault = Callable[[Files], Files]


@frozen
class Seeded:
    """One fault: a name, whether it changes the native file, what it does, and whether it is one of trust entries."""

    name: str
    native: bool
    apply: Fault
    trusting: bool = False


def swap(path_ending: str, old: str, new: str, *, count: int = 1) -> Fault:
    """Replace text in the one file with that ending; the old text must be there, or the fault is none."""

    def apply(files: Files) -> Files:
        (path,) = (one for one in files if one.endswith(path_ending))
        text = files[path].decode()
        assert old in text, f"nothing to seed the fault in: {old!r}"
        return files | {path: text.replace(old, new, count).encode()}

    return apply


def edit_json(path_ending: str, edit: Callable[[Any], Any]) -> Fault:
    """Change a JSON file's document in place."""

    def apply(files: Files) -> Files:
        (path,) = (one for one in files if one.endswith(path_ending))
        document = json.loads(files[path])
        edit(document)
        return files | {path: json.dumps(document, ensure_ascii=False).encode()}

    return apply


def without(path_part: str) -> Fault:
    """Leave a file out."""

    def apply(files: Files) -> Files:
        kept = {path: content for path, content in files.items() if path_part not in path}
        assert len(kept) == len(files) - 1
        return kept

    return apply


def replan(edit: Callable[[Any], Any]) -> Fault:
    """Change the plan as a wrong lowering would: the file is addressed anew and every native file names it consistently."""

    def apply(files: Files) -> Files:
        (path,) = (one for one in files if "/plan-" in one)
        document = json.loads(files[path])
        before = json.dumps(document)
        edit(document)
        assert json.dumps(document) != before
        content = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        old, new = (hashlib.sha256(one).hexdigest().encode() for one in (files[path], content))
        changed: Mapping[str, bytes] = files | {path: content}
        return {
            name.replace(old.decode(), new.decode()): text.replace(old, new) if name != path else text
            for name, text in changed.items()
        }

    return apply


def _backend(document: Any, identity: str) -> Any:
    return next(one["transport"] for one in document["backends"] if one["id"] == identity)


def _chain(document: Any) -> Any:
    return next(one for one in document["events"] if one["event"] == "tool.before")


def _set(get: Callable[[Any], Any], key: Any, value: Any) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        get(document)[key] = value

    return edit


def _first(document: Any) -> Any:
    return _chain(document)["interceptors"][0]


def _second(document: Any) -> Any:
    return _chain(document)["interceptors"][1]


PLAN_FAULTS = tuple(
    Seeded(f"plan: {name}", False, replan(edit))
    for name, edit in {
        "order swapped": lambda it: _chain(it)["interceptors"].reverse(),
        "interceptor dropped": lambda it: _chain(it)["interceptors"].pop(),
        "interceptor asked twice": lambda it: _chain(it)["interceptors"].append(_first(it)),
        "deadline longer": _set(_first, "deadlineMs", 751),
        "deadline in seconds": _set(_second, "deadlineMs", 1),
        "fail-closed became fail-open": _set(_first, "onFailure", "fail-open"),
        "fail-open became fail-closed": _set(_second, "onFailure", "fail-closed"),
        "wait for a busy backend lost": _set(_second, "waitMs", 0),
        "native payload widened": _set(_first, "includeNative", True),
        "native payload lost": _set(_second, "includeNative", False),
        "observer dropped": lambda it: _chain(it)["observers"].pop(),
        "observer told twice": lambda it: _chain(it)["observers"].append(_chain(it)["observers"][0]),
        "observer gets native payload": _set(lambda it: _chain(it)["observers"][0], "includeNative", True),
        "event renamed": _set(lambda it: it["events"][1], "event", "session.start"),
        "event dropped": lambda it: it["events"].pop(),
        "budget too small": _set(_chain, "budgetMs", 750),
        "start allowance lost": _set(lambda it: it["timing"], "startMs", 0),
        "argument re-quoted": _set(lambda it: _backend(it, "com.example.local")["args"], 1, "'two words'"),
        "empty argument lost": lambda it: _backend(it, "com.example.local")["args"].pop(),
        "cwd lost": _set(lambda it: _backend(it, "com.example.local"), "cwd", None),
        "command split": _set(lambda it: _backend(it, "com.example.local"), "command", "/opt/Acme"),
        "lifecycle changed": _set(lambda it: _backend(it, "com.example.local"), "lifecycle", "per_event"),
        "url without tls": _set(lambda it: _backend(it, "com.example.cloud"), "url", "http://policy.example.com/ahp"),
        "token from another variable": _set(lambda it: _backend(it, "com.example.cloud"), "tokenEnv", "OTHER_TOKEN"),
        "token dropped": _set(lambda it: _backend(it, "com.example.cloud"), "tokenEnv", None),
        "token inlined": _set(lambda it: _backend(it, "com.example.cloud"), "token", "canary-7f3a"),
        "search path widened": _set(lambda it: it, "searchPath", ".:/bin"),
        "audit elsewhere": _set(lambda it: it, "stateDir", "/tmp"),
        "plan of another target": _set(lambda it: it, "target", "other"),
        "plan of another format": _set(lambda it: it, "format", 2),
        "deadline as text": _set(_first, "deadlineMs", "750"),
        "unknown backend": _set(_first, "backend", "com.example.other"),
        "foreign backend added": lambda it: it["backends"].append(it["backends"][0] | {"id": "com.example.more"}),
    }.items()
)


def _edit_plan_afterwards(files: Files) -> Files:
    (path,) = (one for one in files if "/plan-" in one)
    return files | {path: files[path].replace(b"fail-closed", b"fail-open")}


def _edit_client(files: Files) -> Files:
    (path,) = (one for one in files if "/client-" in one)
    return files | {path: b"print('ahp-proceed-1')\n"}


FILE_FAULTS = (
    Seeded("plan edited after emission", False, _edit_plan_afterwards),
    Seeded("plan missing", False, without("/plan-")),
    Seeded("client missing", False, without("/client-")),
    Seeded("client edited", False, _edit_client),
    Seeded("token assigned in the template", False, swap("env.example", "# ACME_TOKEN:", "ACME_TOKEN=\n# ACME_TOKEN:")),
    Seeded("template without the variable", False, swap("env.example", "ACME_TOKEN", "SOME_TOKEN")),
)

COMMAND_LINE_FAULTS: Mapping[str, tuple[str, str]] = {
    "silent success proceeds": (' && [ "$r" = ahp-proceed-1 ]', ""),
    "silent denial passed on": (' && [ -n "$r" ]', ""),
    "reason used as a format": ('printf %s {prefix}"$r"', 'printf {prefix}"$r"'),
    "reason split into words": ('"$r"; exit 77', "$r; exit 77"),
    "denial proceeds": ("77) exit 2;;", "77) exit 0;;"),
    "denial with another status": ("77) exit 2;;", "77) exit 1;;"),
    "proven proceed denied": ("70) exit 0;;", "70) exit 2;;"),
    "unproven proceeds": (">&3; exit 2;; esac", ">&3; exit 0;; esac"),
    "guard words lost": ("printf %s {unavailable} >&3; exit 2;; esac", "exit 3;; esac"),
    "unproven counts as proven": ("70) exit 0;;", "70|71) exit 0;;"),
    "judge's statuses confused": ("exit 71", "exit 70"),
    "watchdog dropped": ("/usr/bin/timeout -k 0.5 7.55 ", ""),
    "watchdog killed counts as proven": ("70) exit 0;;", "70|124) exit 0;;"),
    "watchdog below the budget": ("timeout -k 0.5 7.55", "timeout -k 0.5 5"),
    "watchdog in milliseconds": ("timeout -k 0.5 7.55", "timeout -k 0.5 7550"),
    "budget in seconds": ("--budget-ms 7550", "--budget-ms 7"),
    "guard verdict flipped": ("--guard deny", "--guard proceed"),
    "event of another hook": ("--event tool.before", "--event tool.after"),
    "digest of another plan": ("--digest ", "--digest 0"),
    "not isolated": (" -I -S ", " -S "),
    "another interpreter": ("/opt/ahp/bin/python3", "python3"),
    "plan path re-quoted": ("--plan /home/ada", "--plan '\"/home/ada\"'"),
    "background": ("exec 3>&", "sleep 1 & exec 3>&"),
    "unguarded word": ("; case $? in", " || true; case $? in"),
    "another program as well": ("; case $? in", "; s=$?; /usr/bin/logger called; case $s in"),
    "token on the command line": ("exec 3>&", "ACME_TOKEN=canary-7f3a; exec 3>&"),
}
"""What a wrong guard emitter would write into a command line: old text and new text."""
