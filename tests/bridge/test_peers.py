"""Both ends of the socket look at who the other one is."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ahp_compile.bridge import client, daemon
from ahp_compile.bridge.audit import Audit
from ahp_compile.plan import lower
from tests.support import one_interceptor


def test_a_daemon_answers_nobody_but_its_own_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def greeting(own_uid: int) -> bytes:
        plan = lower(one_interceptor(), "codex", search_path="/bin")
        judge, _ = daemon.make_judge(plan, Audit(tmp_path / "audit"))
        server = daemon.Server(judge, ())
        monkeypatch.setattr(daemon.os, "getuid", lambda: own_uid)
        listener = await asyncio.start_unix_server(server.serve, path=str(tmp_path / f"{own_uid}.sock"))
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / f"{own_uid}.sock"))
        writer.write(b"AHP1 tool.before 100\n")
        try:
            line = await reader.readline()
        except ConnectionError:
            line = b""
        writer.close()
        await asyncio.sleep(0.05)
        listener.close()
        return line

    mine = os.getuid()
    assert asyncio.run(greeting(mine)) == b"NEED\n"
    assert asyncio.run(greeting(mine + 1)) == b""


def test_a_client_asks_nobody_but_its_own_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import socket

    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "x.sock"))
    server.listen()
    mine = os.getuid()
    monkeypatch.setattr(client.posix, "getuid", lambda: mine + 1)
    with pytest.raises(client.Unavailable):
        client._greet(str(tmp_path / "x.sock"), b"AHP1 tool.before 1\n", client.time.monotonic() + 2)
    server.close()
