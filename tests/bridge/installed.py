"""An emitted command with everything that it needs on disk, and the processes that it leaves running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from ahp_compile.compiler import Compilation
from ahp_compile.placement import Placement
from ahp_compile.registration import Backend, FailurePolicy, Http, Lifecycle, Observe, Registration, Stdio
from ahp_compile.target import Purpose
from tests.support import compiled, intercept

PROGRAM = str(Path(__file__).with_name("misbehaving.py"))
PAYLOAD: dict[str, Any] = {
    "hook_event_name": "PreToolUse",
    "session_id": "session-1",
    "cwd": "/",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "toolu_1",
}


@frozen
class Seen:
    """What a harness would see of one call, and how long it took in milliseconds."""

    status: int
    stdout: bytes
    stderr: bytes
    took_ms: float

    @property
    def denied(self) -> bool:
        return self.status == 2

    @property
    def reason(self) -> str:
        told = json.loads(self.stdout)["hookSpecificOutput"]
        assert told["permissionDecision"] == "deny"
        return str(told["permissionDecisionReason"])


@frozen
class Installed:
    """One compiled registration in a scratch home."""

    home: Path
    compilation: Compilation

    @property
    def digest(self) -> str:
        return next(one.name for one in self.compilation.artifacts if one.purpose is Purpose.PLAN)[5:-5]

    @property
    def plan(self) -> Path:
        return Path(next(one.destination for one in self.compilation.artifacts if one.purpose is Purpose.PLAN))

    @property
    def audit(self) -> list[dict[str, Any]]:
        path = self.home / ".local/state/ahp-compile/audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def line(self, native_event: str = "PreToolUse") -> str:
        settings = json.loads((self.home / ".claude/settings.json").read_bytes())
        return str(settings["hooks"][native_event][0]["hooks"][0]["command"])

    def start(
        self, payload: Mapping[str, Any] | bytes = PAYLOAD, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a call as the harness does, with the payload on its way."""
        event = "PreToolUse" if isinstance(payload, bytes) else payload["hook_event_name"]
        process = subprocess.Popen(
            ["/bin/sh", "-c", self.line(event)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"} | dict(environment or {}),
            start_new_session=True,
        )
        return process

    def call(self, payload: Mapping[str, Any] | bytes = PAYLOAD, environment: Mapping[str, str] | None = None) -> Seen:
        """One call from its start to its end."""
        began = time.monotonic()
        process = self.start(payload, environment)
        content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        stdout, stderr = process.communicate(content, timeout=60)
        return Seen(process.returncode, stdout, stderr, (time.monotonic() - began) * 1000)

    def daemons(self) -> list[int]:
        """Pids of this plan's daemons."""
        return [pid for pid, words in processes().items() if "ahp_compile.bridge.daemon" in words and self.digest in words]

    def daemon(self) -> int:
        """Pid of this plan's one daemon; the process that started it is gone a moment later."""
        until(lambda: len(self.daemons()) == 1)
        return self.daemons()[0]

    def stop(self) -> None:
        """End the daemon, and wait until it and its backends are gone."""
        for pid in self.daemons():
            os.kill(pid, signal.SIGTERM)
        until(lambda: not self.daemons())
        until(lambda: not self.children())

    def children(self) -> list[int]:
        """Pids of backends that were started for this home."""
        return [pid for pid, words in processes().items() if PROGRAM in words and any(str(self.home) in one for one in words)]


def processes() -> dict[int, list[str]]:
    """Words of every process, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z":
                found[int(entry.name)] = [one.decode(errors="replace") for one in words]
    return found


def until(holds: Any, limit_s: float = 40) -> None:
    """Wait until something holds."""
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.02)


def install(home: Path, registration: Registration) -> Installed:
    placement = Placement(home=str(home), bridge=sys.executable, plan_dir=str(home / "plans"))
    compilation = compiled(registration, "claude-code", placement)
    assert compilation.judgement.equivalent
    for artifact in compilation.artifacts:
        path = Path(artifact.destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(artifact.content)
    return Installed(home, compilation)


def backend(
    home: Path,
    name: str,
    behaviour: str = "no_effect",
    *,
    lifecycle: Lifecycle = Lifecycle.PERSISTENT,
    policy: FailurePolicy = FailurePolicy.FAIL_CLOSED,
    deadline_ms: int = 2000,
    observes: Observe | None = None,
) -> Backend:
    """A stdio backend of that behaviour, with its log in the home."""
    words = ("-S", PROGRAM, lifecycle.value, behaviour, str(home / f"{name}.log"))
    subscriptions = (observes,) if observes else (intercept(deadline_ms, policy),)
    return Backend(f"com.test.{name}", Stdio(sys.executable, words, lifecycle), subscriptions)


def http_backend(url: str, *, token: str | None = None, policy: FailurePolicy = FailurePolicy.FAIL_CLOSED) -> Backend:
    return Backend("com.test.http", Http(url, token), (intercept(2000, policy),))


def log(home: Path, name: str) -> list[dict[str, Any]]:
    """What a backend got."""
    path = home / f"{name}.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
