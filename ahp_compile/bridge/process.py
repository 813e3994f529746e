"""Child processes of the bridge: started without a shell, in a group of their own, and ended as a group."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ahp_compile.registration import Stdio

ANSWER_LIMIT = 1 << 20
"""How many bytes an answer may have; more is not an answer."""

_POLL_S = 0.002


async def launch(transport: Stdio, environment: Mapping[str, str]) -> Process:
    """Start a backend's program with its exact words. Raises OSError or ValueError when it cannot be started.

    The harness's directory changes under the bridge, so an undeclared cwd is the root.
    """
    process = await asyncio.create_subprocess_exec(
        transport.command,
        *transport.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=transport.cwd or "/",
        env=dict(environment),
        start_new_session=True,
        limit=ANSWER_LIMIT,
    )
    _tell_leash("+", process.pid)
    return process


def end(process: Process) -> None:
    """Kill the process and its group, and let go of its pipes even when a grandchild still holds them. Never raises.

    The event loop reaps it; nobody waits, for the harness does.
    """
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    _tell_leash("-", process.pid)
    # What an escaped grandchild holds would keep the pipes open for ever.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


@cache
def _leash() -> subprocess.Popen[bytes]:
    """The process that ends what is left when this one is killed."""
    words = [sys.executable, "-I", "-S", str(Path(__file__).with_name("leash.py"))]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/"
    )


def _tell_leash(sign: str, pid: int) -> None:
    leash = _leash()
    assert leash.stdin is not None
    with contextlib.suppress(OSError):
        leash.stdin.write(f"{sign}{pid}\n".encode())
        leash.stdin.flush()


async def until_taken(process: Process, until_s: float) -> None:
    """Wait until the program has read what was written to it, or until a moment of the loop's clock, whichever is first.

    A program that is still starting has not read anything: its start counts as the bridge's, not as its answering time.
    """
    loop = asyncio.get_running_loop()
    while loop.time() < until_s and process.returncode is None and _unread(process) > 0:
        await asyncio.sleep(_POLL_S)


def _unread(process: Process) -> int:
    """How many bytes lie in the pipe to the program's standard input."""
    assert process.stdin is not None
    if process.stdin.transport.get_write_buffer_size():
        return 1
    pipe = process.stdin.get_extra_info("pipe")
    found = array.array("i", [0])
    try:
        fcntl.ioctl(pipe.fileno(), termios.FIONREAD, found)
    except (OSError, ValueError):
        return 0
    return found[0]
