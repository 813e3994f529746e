"""stdio backends with a process per event (section 17.3): one message in, at most one answer out, exit 0."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import Mapping

from attrs import frozen

from ahp_compile.bridge import process, wire
from ahp_compile.bridge.backend import OBSERVE_LIMIT_S, Ask
from ahp_compile.bridge.wire import Reply
from ahp_compile.registration import Stdio
from ahp_compile.semantics import Failure, FailureClass


@frozen
class PerEventBackend:
    """A program that is started for each event; starting it counts inside the deadline."""

    transport: Stdio
    environment: Mapping[str, str]

    async def start(self) -> None:
        """Nothing outlives an event."""

    async def close(self) -> None:
        """Nothing outlives an event."""

    async def ask(self, ask: Ask) -> Reply:
        """Start the program, give it the request, and read its answer and its exit."""
        try:
            running = await process.launch(self.transport, self.environment)
        except (OSError, ValueError):
            return Reply(Failure(FailureClass.LAUNCH))
        try:
            async with asyncio.timeout(ask.deadline_ms / 1000):
                output, status = await _converse(running, ask.line)
        except TimeoutError:
            return Reply(Failure(FailureClass.DEADLINE))
        except ValueError:
            return Reply(Failure(FailureClass.MALFORMED))
        finally:
            process.end(running)
        return _read(output, status, ask.request_id)

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        """Start the program and give it the notification; its answer, if any, is not read."""
        try:
            running = await process.launch(self.transport, self.environment)
        except (OSError, ValueError):
            return False
        try:
            async with asyncio.timeout(OBSERVE_LIMIT_S):
                _, status = await _converse(running, line)
        except (TimeoutError, ValueError):
            return False
        finally:
            process.end(running)
        return status == 0


async def _converse(running: Process, line: bytes) -> tuple[bytes, int]:
    """Raises ValueError for more output than an answer may have."""
    assert running.stdin is not None
    assert running.stdout is not None
    writing = asyncio.create_task(_write(running.stdin, line))
    try:
        output = await _read_to_end(running.stdout)
        return output, await running.wait()
    finally:
        writing.cancel()


async def _write(stdin: asyncio.StreamWriter, line: bytes) -> None:
    # A program may answer or end without reading all of its input: that alone is no failure.
    with contextlib.suppress(OSError):
        stdin.write(line)
        await stdin.drain()
        stdin.close()


async def _read_to_end(stdout: asyncio.StreamReader) -> bytes:
    output = b""
    while chunk := await stdout.read(1 << 16):
        output += chunk
        if len(output) > process.ANSWER_LIMIT:
            raise ValueError("too much output")
    return output


def _read(output: bytes, status: int, request_id: str) -> Reply:
    if status != 0:
        return Reply(Failure(FailureClass.EXIT))
    # Exactly one line with its newline: a message that is cut off, or a second one, is no message (AHP-STDIO-001).
    if output.count(b"\n") != 1 or not output.endswith(b"\n"):
        return Reply(Failure(FailureClass.MALFORMED))
    return wire.read_reply(output, request_id)
