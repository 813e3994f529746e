"""Every failure class, over every transport and lifecycle, under both policies, at every position of a chain.

Each cell runs a whole chain on the bridge against real processes or a real server, and holds the verdict, the time it took, who
was asked, and the audit line against what the protocol says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ahp_compile.bridge import daemon
from ahp_compile.bridge.audit import Audit
from ahp_compile.bridge.backend import Ask
from ahp_compile.bridge.wire import Reply
from ahp_compile.plan import Timing, lower
from ahp_compile.registration import (
    Backend,
    Event,
    FailurePolicy,
    Http,
    Intercept,
    Lifecycle,
    Registration,
    Stdio,
    Transport,
)
from ahp_compile.semantics import Cause, FailureClass, NoEffect

PROGRAM = str(Path(__file__).with_name("misbehaving.py"))
PAYLOAD = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {"command": "ls", "note": "\ud800"},
    "tool_use_id": "toolu_1",
}
DEADLINE_MS, SHORT_MS = 10_000, 500

F = FailureClass
SAID = {
    "missing_effects": F.MISSING_FIELD,
    "missing_version": F.MISSING_FIELD,
    "result_null": F.MISSING_FIELD,
    "wrong_version": F.VERSION,
    "version_as_number": F.VERSION,
    "effects_null": F.EFFECT,
    "two_denies": F.EFFECT,
    "unknown_effect": F.EFFECT,
    "deny_without_reason": F.EFFECT,
    "deny_empty_reason": F.EFFECT,
    "deny_bad_code": F.EFFECT,
    "effect_as_text": F.EFFECT,
    "bad_extensions": F.EFFECT,
    "error": F.ERROR_RESPONSE,
    "error_version": F.VERSION,
    "error_event": F.EVENT,
    "wrong_id": F.MISMATCHED_ID,
    "no_id": F.MISMATCHED_ID,
    "null_id": F.MISMATCHED_ID,
    "wrong_jsonrpc": F.MALFORMED,
    "result_and_error": F.MALFORMED,
    "batch": F.MALFORMED,
    "garbage": F.MALFORMED,
    "truncated": F.MALFORMED,
    "not_utf8": F.MALFORMED,
    "member_twice": F.MALFORMED,
    "nan": F.MALFORMED,
    "deep": F.MALFORMED,
    "too_large": F.MALFORMED,
    "no_effect": None,
    "large": None,
    "deny": "deny",
    "deny_with_more": "deny",
}
STDIO = {
    "missing": F.LAUNCH,
    "not_executable": F.LAUNCH,
    "hang": F.DEADLINE,
    "late": F.DEADLINE,
    "never_reads": F.DEADLINE,
    "dies": F.EXIT,
    "floods": F.MALFORMED,
    "log_line_first": F.MALFORMED,
    "blank_line_first": F.MALFORMED,
    "slow_start": None,
}
CELLS = {
    "per_event": SAID
    | STDIO
    | {
        "exit_7": F.EXIT,
        "exits_silently": F.MALFORMED,
        "no_newline": F.MALFORMED,
        "two_lines": F.MALFORMED,
        "answers_first": F.MALFORMED,
        "holds_pipe": F.DEADLINE,
    },
    "persistent": SAID
    | STDIO
    | {"exits_silently": F.EXIT, "no_newline": F.DEADLINE, "answers_first": (F.MALFORMED, F.MISMATCHED_ID), "holds_pipe": None},
    "http": SAID
    | {
        "refused": F.CONNECTION,
        "hang": F.DEADLINE,
        "late": F.DEADLINE,
        "closes": F.CONNECTION,
        "closes_in_body": (F.CONNECTION, F.MALFORMED),
        "no_http": F.CONNECTION,
        "status_500": F.HTTP_STATUS,
        "status_404": F.HTTP_STATUS,
        "status_401": F.HTTP_STATUS,
        "status_201": F.HTTP_STATUS,
        "status_202": F.HTTP_STATUS,
        "status_204": F.HTTP_STATUS,
        "redirect_302": F.REDIRECT,
        "redirect_307": F.REDIRECT,
        "text_plain": F.CONTENT_TYPE,
        "no_content_type": F.CONTENT_TYPE,
        "json_with_charset": None,
        "gzip": F.MALFORMED,
        "byte_by_byte": F.DEADLINE,
        "endless_headers": F.CONNECTION,
        "floods": F.MALFORMED,
        "closes_after": None,
        "unset_token": F.CREDENTIAL,
        "bad_token": F.CREDENTIAL,
    },
}
POSITIONS = ("alone", "first", "middle", "last")


@contextlib.contextmanager
def served(behaviour: str, folder: Path) -> Iterator[str]:
    """An http backend of that behaviour; its URL."""
    port = folder / "port"
    log = folder / "http.log"
    server = subprocess.Popen([sys.executable, "-S", PROGRAM, "http", behaviour, str(log), str(port)])
    try:
        while not port.exists() or not port.read_text():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port.read_text()}/ahp"
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.wait()


@contextlib.contextmanager
def transport(kind: str, behaviour: str, folder: Path) -> Iterator[Transport]:
    """What reaches a backend of one kind that behaves so."""
    if kind == "http":
        if behaviour == "refused":
            yield Http("http://127.0.0.1:9/ahp")
            return
        token = "ACME_TOKEN" if behaviour.endswith("_token") else None
        with served(behaviour, folder) as url:
            yield Http(url, token)
        return
    plain = folder / "plain"
    plain.write_text("x")
    command = {"missing": "/nowhere/backend", "not_executable": str(plain)}.get(behaviour, sys.executable)
    yield Stdio(command, ("-S", PROGRAM, kind, behaviour, str(folder / f"{kind}.log")), Lifecycle(kind))


class Healthy:
    """A healthy backend before or after the one in question; it only counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def ask(self, ask: Ask) -> Reply:
        self.asked += 1
        return Reply(NoEffect())

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        return True


def neighbour(name: str) -> Backend:
    told = (Intercept(Event.TOOL_BEFORE, DEADLINE_MS, FailurePolicy.FAIL_CLOSED),)
    return Backend(f"com.test.{name}", Stdio("/nowhere", (), Lifecycle.PER_EVENT), told)


def chain(one: Backend, position: str) -> Registration:
    before = [neighbour("before")] if position in ("middle", "last") else []
    after = [neighbour("after")] if position in ("first", "middle") else []
    return Registration("0.1", (*before, one, *after))


async def run_cell(registration: Registration, audit: Path, behaviour: str) -> tuple[str, float]:
    plan = lower(registration, "claude-code", search_path="/usr/bin:/bin", timing=Timing(max_parallel=1))
    judge, backends = daemon.make_judge(plan, Audit(audit))
    for name in ("com.test.before", "com.test.after"):
        if name in backends:
            backends[name] = Healthy()
    tokens = {"ACME_TOKEN": "two\nlines"} if behaviour == "bad_token" else {}
    try:
        await asyncio.gather(*(one.start() for one in backends.values()))
        if behaviour == "answers_first":
            await asyncio.sleep(0.25)
        began = time.monotonic()
        verdict = await judge.judge(Event.TOOL_BEFORE, PAYLOAD, tokens)
        return verdict.cause.value, time.monotonic() - began
    finally:
        await asyncio.gather(*(one.close() for one in backends.values()))


PARAMETERS = [pytest.param(kind, behaviour, id=f"{kind} {behaviour}") for kind, some in CELLS.items() for behaviour in some]


@pytest.mark.parametrize(("kind", "behaviour"), PARAMETERS)
def test_a_row_of_the_matrix(kind: str, behaviour: str, tmp_path: Path) -> None:
    expected = CELLS[kind][behaviour]
    late = expected == F.DEADLINE
    deadline_ms = SHORT_MS if late else DEADLINE_MS
    cells = [(policy, position) for policy in FailurePolicy for position in POSITIONS]

    async def row() -> list[tuple[str, float]]:
        return await asyncio.gather(*(run_cell(registrations[n], folders[n] / "audit", behaviour) for n, _ in enumerate(cells)))

    folders = [tmp_path / f"{policy} {position}" for policy, position in cells]
    for folder in folders:
        folder.mkdir()
    with transport(kind, behaviour, tmp_path) as reached:
        registrations = [
            chain(Backend("com.test.one", reached, (Intercept(Event.TOOL_BEFORE, deadline_ms, policy),)), position)
            for policy, position in cells
        ]
        found = asyncio.run(row())
    for (policy, position), folder, (cause, took_s) in zip(cells, folders, found, strict=True):
        where = f"{policy}, {position}"
        fails = expected not in (None, "deny")
        stops = expected == "deny" or (fails and policy is FailurePolicy.FAIL_CLOSED)
        wanted = Cause.EXPLICIT_DENIAL if expected == "deny" else Cause.SYNTHETIC_DENIAL if stops else Cause.NO_OBJECTION
        assert cause == wanted, where
        asked = json.loads((folder / "audit").read_text())["asked"]
        before, after = position in ("middle", "last"), position in ("first", "middle") and not stops
        names = [*(["before"] if before else []), "one", *(["after"] if after else [])]
        assert [entry["backend"] for entry in asked] == [f"com.test.{name}" for name in names], where
        one = asked[1 if before else 0]
        if fails:
            assert one["result"] == "operational_failure"
            assert one["failure"] in (expected if isinstance(expected, tuple) else (expected,)), where
        else:
            assert one["result"] == ("explicit_deny" if expected == "deny" else "no_effect"), where
        if late:
            assert one["ms"] >= deadline_ms, where
        # Whatever hangs does so for half a minute: only a bound of ours ends it sooner.
        assert took_s < deadline_ms / 1000 + 12, where
        if behaviour.startswith("error"):
            assert one["error"] < 0
            assert one["supported"] == ["draft"]


def test_how_many_cells_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    cells = sum(len(some) for some in CELLS.values()) * len(FailurePolicy) * len(POSITIONS)
    print(f"{cells} cells")
    covered = {
        one for some in CELLS.values() for value in some.values() for one in (value if isinstance(value, tuple) else (value,))
    }
    assert set(FailureClass) - {FailureClass.BUSY} <= covered
    assert cells > 700
