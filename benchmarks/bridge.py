"""How long a judged call takes, as ratios in one run: ``python benchmarks/bridge.py [ROUNDS]``.

The yardstick is ``sh -c 'python3 -I -S -c pass'``: a shell and an interpreter that does nothing. Each round runs every
candidate once, in turn, so that what else the machine does falls on all alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ahp_compile import target
from ahp_compile.bridge import client
from ahp_compile.compiler import compile_registration
from ahp_compile.judgement import Stance
from ahp_compile.lifting import read_command_line
from ahp_compile.placement import Placement
from ahp_compile.probe import _stop_daemon
from ahp_compile.registration import Backend, Event, FailurePolicy, Intercept, Lifecycle, Registration, Stdio

NO_OP = """
import json, sys, time
time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"protocolVersion": "0.1", "effects": []}}
    print(json.dumps(answer), flush=True)
"""
PAYLOAD = json.dumps(target.load("claude-code").codec.sample(Event.TOOL_BEFORE)).encode()


class Setup:
    """One compiled registration with a persistent backend that does nothing, in a scratch home."""

    def __init__(self, home: Path, starts_in_s: float, deadline_ms: int) -> None:
        script = home / "backend.py"
        home.mkdir(exist_ok=True)
        script.write_text(NO_OP)
        backend = Stdio(sys.executable, ("-S", str(script), str(starts_in_s)), Lifecycle.PERSISTENT)
        asked = Intercept(Event.TOOL_BEFORE, deadline_ms, FailurePolicy.FAIL_CLOSED)
        registration = Registration("0.1", (Backend("com.example.no-op", backend, (asked,)),))
        placement = Placement(home=str(home), bridge=sys.executable, plan_dir=str(home / "plans"))
        one = target.load("claude-code")
        for artifact in compile_registration(registration, one, placement, Stance()).artifacts:
            path = Path(artifact.destination)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(artifact.content)
        settings = json.loads((home / ".claude/settings.json").read_bytes())
        self.line: str = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        self.invocation, _ = read_command_line(self.line, one.codec)
        its = self.invocation
        self.words = [its.interpreter, "-I", "-S", its.client, "--plan", its.plan, "--digest", its.digest, "--event", its.event]
        self.words += ["--budget-ms", str(its.budget_ms), "--guard", its.guard]

    def call(self) -> None:
        """The whole emitted command: shell, watchdog, client, daemon, chain."""
        done = subprocess.run(["/bin/sh", "-c", self.line], input=PAYLOAD, capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit("a healthy call was denied")

    def call_in_process(self) -> None:
        """What an in-process target does: the client inside the harness."""
        if client.ask(self.words, PAYLOAD, 10, os.environb)[0] != 0:
            raise SystemExit("a healthy call was denied")

    def stop(self) -> None:
        """End the daemon."""
        _stop_daemon(self.invocation)


def timed(action: Callable[[], None]) -> float:
    """Milliseconds that an action takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def yardstick() -> None:
    """A shell and an interpreter that does nothing."""
    subprocess.run(["/bin/sh", "-c", f"{sys.executable} -I -S -c pass"], input=PAYLOAD, capture_output=True, check=True)


def main(rounds: int) -> None:
    """Print medians, spread and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        warm = Setup(Path(folder) / "warm", 0, 500)
        slow = Setup(Path(folder) / "slow", 0.3, 500)

        def cold(setup: Setup) -> Callable[[], None]:
            def first_call() -> None:
                setup.call()

            return first_call

        warm.call()
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, action in (
                ("sh -c 'python3 -I -S -c pass'", yardstick),
                ("whole command, daemon warm", warm.call),
                ("in-process client, daemon warm", warm.call_in_process),
            ):
                found.setdefault(name, []).append(timed(action))
        for name, setup in (("whole command, daemon cold", warm), ("the same, backend starts in 300 ms", slow)):
            for _ in range(max(rounds // 10, 3)):
                setup.stop()
                found.setdefault(name, []).append(timed(cold(setup)))
        warm.stop()
        slow.stop()
    base = statistics.median(found["sh -c 'python3 -I -S -c pass'"])
    print("| what | median ms | min | p99 | ratio |\n| --- | --- | --- | --- | --- |")
    for name, times in found.items():
        ordered = sorted(times)
        late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        median = statistics.median(ordered)
        print(f"| {name} | {median:.1f} | {ordered[0]:.1f} | {late:.1f} | {median / base:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
