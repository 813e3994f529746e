"""stdio backends with a process that stays (section 17.2): one outstanding request at a time, started again after a crash."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Mapping

from attrs import define, field

from ahp_compile.bridge import process, wire
from ahp_compile.bridge.backend import OBSERVE_LIMIT_S, Ask
from ahp_compile.bridge.wire import Reply
from ahp_compile.registration import Stdio
from ahp_compile.semantics import Failure, FailureClass


class _Gone(Exception):
    """The process ended, or closed its output."""


class _Garbage(Exception):
    """The process wrote something that is no message."""


@define(eq=False)
class PersistentBackend:
    """A program that is started once and asked many times, one request after another."""

    transport: Stdio
    environment: Mapping[str, str]
    _running: Process | None = None
    _starting: bool = False
    _turn: asyncio.Lock = field(factory=asyncio.Lock)
    _restart: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the program if it does not run; a failure shows when it is asked."""
        async with self._turn:
            await self._ensure_running()

    async def close(self) -> None:
        """End the program."""
        if self._restart is not None:
            self._restart.cancel()
        self._end()

    async def ask(self, ask: Ask) -> Reply:
        """Wait for the program's turn, put the request, and read its answer."""
        loop = asyncio.get_running_loop()
        longest_s = max(ask.wait_ms / 1000, ask.start_until_s - loop.time(), 0)
        try:
            async with asyncio.timeout(longest_s):
                await self._turn.acquire()
        except TimeoutError:
            return Reply(Failure(FailureClass.BUSY))
        try:
            return await self._ask_in_turn(ask)
        finally:
            self._turn.release()

    async def _ask_in_turn(self, ask: Ask) -> Reply:
        try:
            if not await self._ensure_running():
                return Reply(Failure(FailureClass.LAUNCH))
            reply = await self._converse(ask)
        except TimeoutError:
            # The request is still outstanding there, so no other may be put to this process.
            self._start_anew()
            return Reply(Failure(FailureClass.DEADLINE))
        except _Gone:
            self._start_anew()
            return Reply(Failure(FailureClass.EXIT))
        except (_Garbage, ValueError):
            self._start_anew()
            return Reply(Failure(FailureClass.MALFORMED))
        self._starting = False
        if isinstance(reply.answer, Failure) and reply.error_code is None:
            # What it says next could be about this request: its stream is not to be trusted any more.
            self._start_anew()
        return reply

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        """Write one notification between requests."""
        async with self._turn:
            try:
                async with asyncio.timeout(OBSERVE_LIMIT_S):
                    if not await self._ensure_running():
                        return False
                    await self._write(line)
                    return True
            except (TimeoutError, _Gone):
                self._start_anew()
                return False

    async def _ensure_running(self) -> bool:
        if self._running is not None and self._running.returncode is None:
            return True
        self._end()
        try:
            self._running = await process.launch(self.transport, self.environment)
        except (OSError, ValueError):
            return False
        self._starting = True
        return True

    async def _converse(self, ask: Ask) -> Reply:
        """Raises TimeoutError at the deadline, _Gone, or _Garbage for what was said before it was asked."""
        assert self._running is not None
        stdout = self._running.stdout
        assert stdout is not None
        if _has_unread(stdout):
            raise _Garbage
        writing = asyncio.create_task(self._write(ask.line))
        try:
            if self._starting:
                await asyncio.sleep(0)
                await process.until_taken(self._running, ask.start_until_s)
            async with asyncio.timeout(ask.deadline_ms / 1000):
                line = await stdout.readline()
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        if not line.endswith(b"\n"):
            raise _Gone
        return wire.read_reply(line, ask.request_id)

    async def _write(self, line: bytes) -> None:
        assert self._running is not None
        assert self._running.stdin is not None
        try:
            self._running.stdin.write(line)
            await self._running.stdin.drain()
        except OSError as error:
            raise _Gone from error

    def _start_anew(self) -> None:
        """End the process now and start the next one meanwhile, so that the next request does not pay for it."""
        self._end()
        self._restart = asyncio.create_task(self.start())

    def _end(self) -> None:
        if self._running is not None:
            ended, self._running = self._running, None
            process.end(ended)


def _has_unread(stdout: asyncio.StreamReader) -> bool:
    """Whether output is there that nobody asked for: an answer before its request."""
    return bool(getattr(stdout, "_buffer", b""))
