"""The bridge without a daemon: one event in a process of its own, where no socket can be kept.

A persistent backend is an operational failure here, never a process per call.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

from attrs import evolve

from ahp_compile.bridge import daemon
from ahp_compile.bridge import payload as payloads
from ahp_compile.bridge.backend import Ask, Backend
from ahp_compile.bridge.observers import Observers
from ahp_compile.bridge.persistent import PersistentBackend
from ahp_compile.bridge.wire import Reply
from ahp_compile.registration import Event
from ahp_compile.semantics import Failure, FailureClass

_UNAVAILABLE = 71
_DRAIN_S = 1.0


class _Absent:
    """A persistent backend where nothing can persist."""

    async def start(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""

    async def ask(self, ask: Ask) -> Reply:
        """Always an operational failure."""
        return Reply(Failure(FailureClass.LAUNCH))

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        """Never taken."""
        return False


async def _judge(arguments: Mapping[str, str]) -> bytes:
    plan = daemon.load_plan(arguments["--plan"], arguments["--digest"])
    judge, running = daemon.make_judge(plan)
    backends: dict[str, Backend] = {
        name: _Absent() if isinstance(one, PersistentBackend) else one for name, one in running.items()
    }
    judge = evolve(judge, backends=backends, observers=Observers(backends, judge.audit))
    tokens = {name: os.environ[name] for name in plan.token_variables() if os.environ.get(name)}
    verdict = await judge.judge(Event(arguments["--event"]), payloads.parse(sys.stdin.buffer.read()), tokens)
    await judge.observers.drain(_DRAIN_S)
    return daemon.answer(verdict, judge.codec)


def main(arguments: list[str]) -> int:
    """Judge one event with the client's own arguments; ends like the client."""
    try:
        answer = asyncio.run(_judge(dict(zip(arguments[::2], arguments[1::2], strict=True))))
    except Exception:
        return _UNAVAILABLE
    if answer == b"P":
        sys.stdout.write("ahp-proceed-1\n")
        return 0
    sys.stdout.buffer.write(answer[1:])
    return 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
