"""Trying a registration out: run the command that a target emits on a sample payload, and see who answered what."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from ahp_compile.bridge import client
from ahp_compile.compiler import Compilation, compile_registration
from ahp_compile.engine import Invocation, LiftedHook
from ahp_compile.judgement import Stance
from ahp_compile.placement import Placement, Scope
from ahp_compile.registration import Event, Registration
from ahp_compile.target import Target

_PATIENCE_S = 5.0


class ProbeError(Exception):
    """There is nothing to run for this event on this target. The message is for the user."""


@frozen
class Probe:
    """What came of one run: what the harness would see, how long it took in milliseconds, and the bridge's own account.

    ``account`` is the audit's entry, None when the bridge did not get to decide.
    """

    status: int
    stdout: bytes
    stderr: bytes
    took_ms: float
    account: Mapping[str, Any] | None


def run(registration: Registration, target: Target, placement: Placement, event: Event, payload: bytes | None = None) -> Probe:
    """Compile into a scratch home, run the native command for one event there, and take everything away again.

    ``payload`` is the harness's input, a sample when None. Raises ProbeError when the target has no hook for the event.
    """
    with tempfile.TemporaryDirectory(prefix="ahp-probe-") as folder:
        placement = evolve(placement, home=folder, config_home=None, project=None, plan_dir=f"{folder}/plans", scope=Scope.USER)
        compilation = compile_registration(registration, target, placement, Stance())
        files = {one.destination: one.content for one in compilation.artifacts}
        _write(files)
        hook = _hook(target, files, placement, event)
        content = payload if payload is not None else json.dumps(target.codec.sample(event)).encode()
        with _stopping_daemon(hook.invocation):
            return _run(hook, content, compilation)


def _write(files: Mapping[str, bytes]) -> None:
    for destination, content in files.items():
        path = Path(destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _hook(target: Target, files: Mapping[str, bytes], placement: Placement, event: Event) -> LiftedHook:
    for hook in target.lift(files, placement).hooks:
        if hook.invocation.event == event:
            return hook
    raise ProbeError(f"{target.name} has no hook for {event}: no backend subscribed to it, or the harness has no such event")


def _run(hook: LiftedHook, content: bytes, compilation: Compilation) -> Probe:
    began = time.monotonic()
    done = subprocess.run(hook.run_as, input=content, capture_output=True, check=False)
    took_ms = (time.monotonic() - began) * 1000
    audit = Path(compilation.plan.state_dir or "") / "audit.jsonl"
    entries = [json.loads(line) for line in audit.read_text().splitlines()] if audit.exists() else []
    decided = [one for one in entries if "asked" in one]
    return Probe(done.returncode, done.stdout, done.stderr, took_ms, decided[-1] if decided else None)


@contextlib.contextmanager
def _stopping_daemon(invocation: Invocation) -> Iterator[None]:
    try:
        yield
    finally:
        _stop_daemon(invocation)


def _stop_daemon(invocation: Invocation) -> None:
    """End the daemon that was started for a scratch home; the socket says who it is."""
    folder = client.runtime_folder()
    if folder is None or not hasattr(socket, "SO_PEERCRED"):
        return
    for path in Path(folder).glob(f"{invocation.digest[:40]}-*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + _PATIENCE_S
            while path.exists() and time.monotonic() < end:
                time.sleep(0.01)
    for path in Path(folder).glob(f"{invocation.digest[:40]}-*"):
        path.unlink(missing_ok=True)


def describe(name: str, event: Event, probe: Probe) -> str:
    """The outcome for people: each backend's answer in the inspector's words, then what the harness would see."""
    account = probe.account
    verdict = account["verdict"] if account else "the guard's verdict: the bridge could not decide"
    if account is None and event is not Event.TOOL_BEFORE:
        verdict = "handed over"
    lines = [f"{name}, {event}: {verdict}; exit {probe.status} after {probe.took_ms:.0f} ms"]
    for asked in account["asked"] if account else ():
        details = [f"{key} {asked[key]}" for key in ("failure", "policy", "code", "error") if key in asked]
        if "supported" in asked:
            details.append(f"the backend speaks only: {', '.join(asked['supported'])}")
        lines.append(f"  {asked['backend']:<32} {asked['result']:<20} {asked['ms']:>8} ms  {', '.join(details)}".rstrip())
    for stream, content in (("stdout", probe.stdout), ("stderr", probe.stderr)):
        if content:
            lines.append(f"  {stream}: {content.decode(errors='replace').rstrip()}")
    return "\n".join(lines) + "\n"
