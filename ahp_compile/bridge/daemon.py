"""The bridge's daemon: one for each user, plan and client. It keeps persistent backends and connections between events.

It is started by the first client with an empty environment and /dev/null for streams, ends by itself when nobody has asked for
a while, and answers nothing at all when anything is wrong: silence becomes the guard's verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import hashlib
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, field

from ahp_compile import plan_file, target
from ahp_compile.bridge import backends as running_backends
from ahp_compile.bridge import event as events
from ahp_compile.bridge import payload as payloads
from ahp_compile.bridge.audit import Audit, path_in
from ahp_compile.bridge.backend import Backend
from ahp_compile.bridge.chain import Judge
from ahp_compile.bridge.observers import Observers
from ahp_compile.plan import Plan
from ahp_compile.registration import Event
from ahp_compile.semantics import Cause, Verdict
from ahp_compile.target import Codec

SYNTHETIC_REASON = "A required policy backend is unavailable."
"""All that a synthetic denial says: no network detail, no backend's words (protocol section 14)."""

PAYLOAD_LIMIT = 256 << 20
_IDLE_S = 900.0
_DRAIN_S = 30.0
_GREETING_LIMIT_S = 10.0


class BridgeError(Exception):
    """The bridge cannot decide; the guard's verdict holds."""


def load_plan(path: str, digest: str) -> Plan:
    """Read a plan and hold it against its digest. Raises BridgeError for anything but that very plan."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise BridgeError("the plan cannot be read") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise BridgeError("the plan is not the one that the hook was made for")
    try:
        return plan_file.read(content)
    except plan_file.PlanFileError as error:
        raise BridgeError("the plan is of no known format") from error


def make_judge(plan: Plan, audit: Audit | None = None) -> tuple[Judge, dict[str, Backend]]:
    """Everything that judges one plan's events. Raises TargetError when the plan's target is not installed."""
    codec: Codec = target.load(plan.target).codec
    backends: dict[str, Backend] = {one.id: running_backends.make(one, plan) for one in plan.backends}
    audit = audit or Audit(path_in(plan.state_dir))
    return Judge(plan, codec, backends, Observers(backends, audit), audit, events.source()), backends


def answer(verdict: Verdict, codec: Codec) -> bytes:
    """A verdict in the words of the socket: P, or D and the text that the guard passes on."""
    if verdict.cause is Cause.NO_OBJECTION:
        return b"P"
    return b"D" + codec.deny(SYNTHETIC_REASON if verdict.reason is None else verdict.reason)


@define(eq=False)
class Server:
    """Answers clients over the socket until it was idle for long enough."""

    judge: Judge
    tokens: tuple[str, ...]
    idle_s: float = _IDLE_S
    _open: int = 0
    _last: float = field(factory=time.monotonic)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client. Whatever goes wrong, it gets no answer, which its guard understands."""
        self._open += 1
        try:
            if _peer_uid(writer) == os.getuid():
                await self._converse(reader, writer)
        except Exception as error:
            self.judge.audit.write({"time": time.time(), "problem": type(error).__name__, "verdict": "guard"})
        finally:
            self._open -= 1
            self._last = time.monotonic()
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_GREETING_LIMIT_S):
            event, names, payload = await self._receive(reader, writer)
        tokens = {name: value for name, value in names.items() if value}
        verdict = await self.judge.judge(event, payloads.parse(payload), tokens)
        # The full stop says that the answer is whole.
        writer.write(answer(verdict, self.judge.codec) + b".")
        await writer.drain()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[Event, dict[str, str], bytes]:
        magic, event, _budget_ms = (await reader.readuntil(b"\n")).decode("ascii").split()
        if magic != "AHP1":
            raise BridgeError("the client speaks another protocol")
        writer.write(" ".join(("NEED", *self.tokens)).encode() + b"\n")
        values = {name: (await _field(reader)).decode("utf-8", "replace") for name in self.tokens}
        return Event(event), values, await _field(reader)

    async def until_idle(self) -> None:
        """Return when nobody is connected, nothing is left to deliver, and the last client is long gone."""
        while True:
            await asyncio.sleep(min(self.idle_s / 4, 5))
            quiet = self._open == 0 and self.judge.observers.idle
            if quiet and time.monotonic() - self._last >= self.idle_s:
                return


async def _field(reader: asyncio.StreamReader) -> bytes:
    length = int(await reader.readuntil(b"\n"))
    if not 0 <= length <= PAYLOAD_LIMIT:
        raise BridgeError("a field is too long")
    return await reader.readexactly(length)


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    """Who is at the other end. Where the system does not say, the folder's mode has kept others out."""
    peer: socket.socket = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


async def run(plan: Plan, address: str, ready: Callable[[], None], idle_s: float = _IDLE_S) -> None:
    """Serve one plan at one socket until idle or told to end; ``ready`` is called when clients can connect."""
    judge, backends = make_judge(plan)
    server = Server(judge, plan.token_variables(), idle_s)
    listener = await asyncio.start_unix_server(server.serve, path=f"{address}.new", limit=1 << 20, backlog=256)
    os.chmod(f"{address}.new", 0o600)
    os.replace(f"{address}.new", address)
    ready()
    starting = [asyncio.create_task(one.start()) for one in backends.values()]
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ends = [asyncio.create_task(stop.wait()), asyncio.create_task(server.until_idle())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    with contextlib.suppress(OSError):
        os.unlink(address)
    listener.close()
    for task in (*ends, *starting):
        task.cancel()
    await judge.observers.drain(_DRAIN_S)
    await asyncio.gather(*(one.close() for one in backends.values()), return_exceptions=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ahp-bridge-daemon")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--digest", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--idle-s", type=float, default=_IDLE_S)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve in a process of its own, unless another daemon already does.

    Returns to the starter, with status 0, as soon as clients can connect; another status means that there will be no daemon.
    """
    options = _parse(arguments)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os._exit(_serve(options, writing))
    os.close(writing)
    return 0 if os.read(reading, 1) else 71


def _serve(options: argparse.Namespace, starter: int) -> int:
    def ready() -> None:
        os.write(starter, b"1")
        os.close(starter)

    os.umask(0o077)
    os.chdir("/")
    os.closerange(3, starter)
    os.closerange(starter + 1, 4096)
    lock = os.open(f"{options.socket}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        ready()
        return 0
    try:
        plan = load_plan(options.plan, options.digest)
        asyncio.run(run(plan, options.socket, ready, options.idle_s))
    except Exception:
        return 71
    return 0


if __name__ == "__main__":
    sys.exit(main())
