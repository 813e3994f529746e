"""Child processes of the bridge: started without a shell, in a group of their own, and ended as a group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping

from ahp_compile.registration import Stdio

ANSWER_LIMIT = 1 << 20
"""How many bytes an answer may have; more is not an answer."""


async def launch(transport: Stdio, environment: Mapping[str, str]) -> Process:
    """Start a backend's program with its exact words. Raises OSError or ValueError when it cannot be started.

    The harness's directory changes under the bridge, so an undeclared cwd is the root.
    """
    return await asyncio.create_subprocess_exec(
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


async def end(process: Process) -> None:
    """Kill the process and its group, and let go of its pipes even when a grandchild still holds them. Never raises."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    # wait() would wait for the pipes as well, which an escaped grandchild can hold for ever.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(process.wait(), 1)
