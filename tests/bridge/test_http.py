"""http backends: TLS by platform trust, kept connections, the token, and no redirect, proxy or stale answer."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ahp_compile.bridge import wire
from ahp_compile.bridge.backend import Ask
from ahp_compile.bridge.http import HttpBackend
from ahp_compile.bridge.wire import Reply
from ahp_compile.registration import Http
from ahp_compile.semantics import Failure, FailureClass, NoEffect

TLS = Path(__file__).with_name("tls")
EVENT = {"id": "event-1", "type": "tool.before"}


class Server:
    """An endpoint with no objection, which remembers who asked over which connection."""

    def __init__(self, tls: bool = False) -> None:
        server = self
        self.requests: list[tuple[str, int, dict[str, str]]] = []
        self.closes_kept = False

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((self.path, self.client_address[1], dict(self.headers)))
                result = {"protocolVersion": "0.1", "effects": []}
                answer = json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                self.close_connection = server.closes_kept

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def plain() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def secure() -> Iterator[Server]:
    server = Server(tls=True)
    yield server
    server.close()


def ask(*urls: str, token_env: str | None = None, times: int = 1, **tokens: str) -> list[Reply]:
    async def run() -> list[Reply]:
        replies = []
        for url in urls:
            backend = HttpBackend(Http(url, token_env))
            await backend.start()
            for _ in range(times):
                replies.append(await backend.ask(Ask(wire.intercept(EVENT), "event-1", 0, 3000, 0.0, tokens)))
            await backend.close()
        return replies

    return asyncio.run(run())


def test_a_certificate_that_nobody_vouches_for_is_a_failed_connection(secure: Server) -> None:
    (reply,) = ask(f"https://localhost:{secure.port}/")
    assert reply.answer == Failure(FailureClass.CONNECTION)
    assert secure.requests == []


def test_a_certificate_that_the_platform_trusts_is_taken_for_its_own_names_only(
    secure: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python asks the platform's store; in this test process that is one file.
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "cert.pem"))
    right, other = ask(f"https://localhost:{secure.port}/", f"https://127.0.0.2:{secure.port}/")
    assert right.answer == NoEffect()
    assert other.answer == Failure(FailureClass.CONNECTION)


def test_connections_are_kept_and_a_server_that_closed_one_is_asked_over_another(plain: Server) -> None:
    url = f"http://127.0.0.1:{plain.port}/ahp?team=a"
    assert [one.answer for one in ask(url, times=3)] == [NoEffect()] * 3
    assert len({port for _, port, _ in plain.requests}) == 1
    assert {path for path, _, _ in plain.requests} == {"/ahp?team=a"}
    plain.requests.clear()
    plain.closes_kept = True
    assert [one.answer for one in ask(url, times=3)] == [NoEffect()] * 3
    assert len(plain.requests) == 3


def test_the_token_is_a_header_and_a_value_that_is_none_is_never_sent(plain: Server) -> None:
    url = f"http://127.0.0.1:{plain.port}"
    (reply,) = ask(url, token_env="T", T="abc.DEF-1")
    assert reply.answer == NoEffect()
    path, _, headers = plain.requests.pop()
    assert path == "/"
    assert headers["Authorization"] == "Bearer abc.DEF-1"
    assert headers["Content-Type"] == "application/json"
    for value in ("", " ", "a b", "a\n", "a\r\nX: y", "ü", "\0"):
        (reply,) = ask(url, token_env="T", T=value)
        assert reply.answer == Failure(FailureClass.CREDENTIAL)
    (reply,) = ask(url, token_env="T", OTHER="x")
    assert reply.answer == Failure(FailureClass.CREDENTIAL)
    assert plain.requests == []


def test_no_proxy_of_the_environment_is_used(plain: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (reply,) = ask(f"http://127.0.0.1:{plain.port}/")
    assert reply.answer == NoEffect()
