"""http backends (section 18): one POST per message, no redirects, connections kept alive between events."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlsplit

from attrs import define, field

from ahp_compile.bridge import wire
from ahp_compile.bridge.backend import OBSERVE_LIMIT_S, Ask
from ahp_compile.bridge.process import ANSWER_LIMIT
from ahp_compile.bridge.wire import Reply
from ahp_compile.registration import Http
from ahp_compile.semantics import Failure, FailureClass

_IDLE_CONNECTIONS = 8


class _Failed(Exception):
    def __init__(self, kind: FailureClass) -> None:
        super().__init__(kind)
        self.kind = kind


@define
class _Response:
    """What came back, read to its end or to the limit."""

    status: int
    content_type: str
    encoded: bool
    body: bytes


@define(eq=False)
class HttpBackend:
    """An endpoint that is asked by POST. http.client knows no proxy and follows no redirect, as the protocol wants."""

    transport: Http
    _idle: list[http.client.HTTPConnection] = field(factory=list)
    _tls: ssl.SSLContext | None = None

    async def start(self) -> None:
        """Read the platform's certificates ahead of the first request."""
        if self.transport.url.startswith("https:"):
            self._tls = await asyncio.to_thread(ssl.create_default_context)

    async def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    async def ask(self, ask: Ask) -> Reply:
        """POST the request; only 200 with a JSON body is an answer."""
        try:
            response = await self._post(ask.line, ask.tokens, ask.deadline_ms / 1000)
            _check_intercept(response)
        except _Failed as failed:
            return Reply(Failure(failed.kind))
        return wire.read_reply(response.body, ask.request_id)

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        """POST the notification; 202 or 204 is success."""
        try:
            response = await self._post(line, tokens, OBSERVE_LIMIT_S)
        except _Failed:
            return False
        return response.status in (202, 204)

    async def _post(self, line: bytes, tokens: Mapping[str, str], limit_s: float) -> _Response:
        """Raises _Failed. A thread of its own does the blocking work; at the deadline its connection is cut and it ends."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"} | self._authorization(tokens)
        exchange = _Exchange(self._connection, headers, line, urlsplit(self.transport.url), limit_s)
        try:
            async with asyncio.timeout(limit_s):
                response = await exchange.run()
        except TimeoutError as error:
            exchange.cut()
            raise _Failed(FailureClass.DEADLINE) from error
        if exchange.connection is not None and len(self._idle) < _IDLE_CONNECTIONS and not exchange.closing:
            self._idle.append(exchange.connection)
        return response

    def _authorization(self, tokens: Mapping[str, str]) -> dict[str, str]:
        if self.transport.token_env is None:
            return {}
        token = tokens.get(self.transport.token_env, "")
        # An empty, multi-line or non-ASCII value is no bearer token; it is never sent in part.
        if not token or not all("!" <= character <= "~" for character in token):
            raise _Failed(FailureClass.CREDENTIAL)
        return {"Authorization": f"Bearer {token}"}

    def _connection(self, limit_s: float, *, fresh: bool) -> tuple[http.client.HTTPConnection, bool]:
        """A connection whose single steps are bounded, and whether it was used before."""
        if self._idle and not fresh:
            kept = self._idle.pop()
            if kept.sock is not None:
                kept.sock.settimeout(limit_s)
            return kept, True
        url = urlsplit(self.transport.url)
        assert url.hostname is not None
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.hostname, url.port, timeout=limit_s, context=self._tls), False
        return http.client.HTTPConnection(url.hostname, url.port, timeout=limit_s), False


def _check_intercept(response: _Response) -> None:
    if response.status in (301, 302, 303, 307, 308):
        raise _Failed(FailureClass.REDIRECT)
    if response.status != 200:
        raise _Failed(FailureClass.HTTP_STATUS)
    if response.content_type.partition(";")[0].strip().lower() != "application/json":
        raise _Failed(FailureClass.CONTENT_TYPE)
    if response.encoded or len(response.body) > ANSWER_LIMIT:
        raise _Failed(FailureClass.MALFORMED)


class _Exchange:
    """One POST in a thread. ``connection`` is what it went over, ``closing`` whether that can be used again."""

    def __init__(
        self,
        connect: Callable[..., tuple[http.client.HTTPConnection, bool]],
        headers: Mapping[str, str],
        body: bytes,
        url: SplitResult,
        limit_s: float,
    ) -> None:
        self.connection: http.client.HTTPConnection | None = None
        self.closing = False
        self._connect = connect
        self._headers = dict(headers)
        self._body = body
        self._path = _request_target(url)
        self._limit_s = limit_s
        self._is_cut = False
        self._socket: socket.socket | None = None

    async def run(self) -> _Response:
        """Raises _Failed."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Response] = loop.create_future()

        def settle(action: Callable[[], None]) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if done.done() else action())

        def work() -> None:
            try:
                response = self._exchange()
            except _Failed as failed:
                problem: Exception = failed
                settle(lambda: done.set_exception(problem))
            except (OSError, http.client.HTTPException):
                settle(lambda: done.set_exception(_Failed(FailureClass.CONNECTION)))
            except Exception:
                settle(lambda: done.set_exception(_Failed(FailureClass.MALFORMED)))
            else:
                settle(lambda: done.set_result(response))

        threading.Thread(target=work, daemon=True).start()
        return await done

    def cut(self) -> None:
        """End whatever the thread waits for."""
        self._is_cut = True
        # Closing would wait for the lock that the reading thread holds; a shutdown ends its read.
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _exchange(self) -> _Response:
        self.connection, reused = self._connect(self._limit_s, fresh=False)
        try:
            return self._once()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # The server may have closed a kept connection before our request; the same request may go over a new one
            # within the same deadline (AHP-CORE-004).
            if not reused or self._is_cut:
                raise
            self.connection.close()
            self.connection, _ = self._connect(self._limit_s, fresh=True)
            return self._once()

    def _once(self) -> _Response:
        assert self.connection is not None
        if self.connection.sock is None:
            self.connection.connect()
        self._socket = self.connection.sock
        self.connection.request("POST", self._path, self._body, self._headers)
        response = self.connection.getresponse()
        body = response.read(ANSWER_LIMIT + 1)
        if response.length and len(body) <= ANSWER_LIMIT:
            raise _Failed(FailureClass.CONNECTION)
        self.closing = response.will_close or not response.isclosed()
        if self.closing:
            self.connection.close()
        return _Response(
            response.status,
            response.headers.get("Content-Type", ""),
            response.headers.get("Content-Encoding", "identity").lower() != "identity",
            body,
        )


def _request_target(url: SplitResult) -> str:
    return f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
