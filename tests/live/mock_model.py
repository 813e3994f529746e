"""A model on the loopback interface that asks for scripted tool calls: Anthropic Messages, OpenAI Responses and Chat Completions.

The script is a list of turns; each turn is a list of tool calls, made at once. After the last turn the model says that it is done.
Only the conversation that holds MARK follows the script: harnesses ask models about other things on the side.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field, frozen

MARK = "MAIN_MARK"


@frozen
class Call:
    """One tool call. ``arguments`` is JSON text, so that it can hold what no Python string should.

    ``namespace`` is for tools in a namespace and ``custom`` for free-form tools (both of the Responses API).
    """

    name: str
    arguments: str
    namespace: str | None = None
    custom: bool = False


@define
class MockModel:
    """The server; use it as a context manager. ``requests`` are all request bodies, with their paths, as they came."""

    turns: Sequence[Sequence[Call]]
    requests: list[tuple[str, dict[str, Any]]] = field(factory=list)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> MockModel:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        assert self._server is not None
        return int(self._server.server_address[1])

    def tool_results(self) -> dict[str, list[str]]:
        """What the model was told came of each call, by the call's id: usually one text, in the order in which they came."""
        found: dict[str, list[str]] = {}
        for _, body in list(self.requests):
            for call_id, text in _results(body):
                # Every request tells the whole conversation again.
                if text not in found.setdefault(call_id, []):
                    found[call_id].append(text)
        return found

    def told(self) -> str:
        """Everything that the model was told as results of tool calls, as one text."""
        return "\n".join(text for texts in self.tool_results().values() for text in texts)

    def next_turn(self, messages: Sequence[Any], answered: int) -> Sequence[Call]:
        """The calls for one request, given how many turns were answered; none for side conversations and after the last."""
        return self.turns[answered] if answered < len(self.turns) and MARK in json.dumps(messages) else ()

    def turns_answered(self, calls_answered: int) -> int:
        """How many whole turns so many answered calls are."""
        turns = 0
        for turn in self.turns:
            calls_answered -= len(turn)
            if calls_answered < 0:
                break
            turns += 1
        return turns


def _items(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The messages of a request; a prompt that is only a text has none of interest."""
    listed = body.get(name)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _results(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Call id and text of every tool result in a request, whichever interface it is of."""
    for item in _items(body, "input"):
        if str(item.get("type", "")).endswith("_call_output"):
            yield str(item.get("call_id")), _text(item.get("output"))
    for message in _items(body, "messages"):
        if message.get("role") == "tool":
            yield str(message.get("tool_call_id")), _text(message.get("content"))
        for block in _items(message, "content"):
            if block.get("type") == "tool_result":
                yield str(block.get("tool_use_id")), _text(block.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(one.get("text", one) if isinstance(one, dict) else one) for one in content)
    return json.dumps(content)


def _handler(model: MockModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

        def do_HEAD(self) -> None:
            self._send(b"{}")

        def do_GET(self) -> None:
            self._send(json.dumps({"object": "list", "data": [{"id": "mock-model", "object": "model"}], "models": []}).encode())

        def do_POST(self) -> None:
            try:
                body = json.loads(self._body() or b"{}")
            except (ValueError, RecursionError):
                self.send_error(400, "not JSON that can be read here")
                return
            path = self.path.partition("?")[0]
            model.requests.append((path, body))
            if path.endswith("/count_tokens"):
                self._send(b'{"input_tokens": 10}')
            elif path.endswith("/messages"):
                self._reply(body, _anthropic(model, body))
            elif path.endswith("/responses"):
                self._reply(body, _responses(model, body))
            elif path.endswith("/chat/completions"):
                self._reply(body, _chat(model, body))
            else:
                self._send(b"{}")

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        def _reply(self, body: dict[str, Any], reply: _Reply) -> None:
            if body.get("stream"):
                self._send("".join(reply.events).encode("ascii"), "text/event-stream")
            else:
                self._send(json.dumps(reply.whole()).encode("ascii"))

        def _send(self, content: bytes, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Handler


@frozen
class _Reply:
    """An answer as a stream of events, or whole. Arguments that are no JSON at all can only be streamed."""

    events: Iterator[str]
    whole: Callable[[], dict[str, Any]]


def _named(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def _identity(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:16]}"


def _anthropic(model: MockModel, body: dict[str, Any]) -> _Reply:
    messages = _items(body, "messages")
    answered = sum(one.get("role") == "assistant" for one in messages)
    calls = model.next_turn(messages, answered) if body.get("tools") else ()
    blocks = [{"type": "tool_use", "id": _identity("toolu"), "name": one.name, "input": {}} for one in calls]
    stop = "tool_use" if calls else "end_turn"
    message: dict[str, Any] = {
        "id": _identity("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "mock"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }

    def events() -> Iterator[str]:
        yield _named("message_start", {"type": "message_start", "message": message})
        if not calls:
            yield from _anthropic_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"})
        for index, (call, block) in enumerate(zip(calls, blocks, strict=True)):
            yield from _anthropic_block(index, block, {"type": "input_json_delta", "partial_json": call.arguments})
        usage = {"output_tokens": 5}
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield _named("message_delta", {"type": "message_delta", "delta": delta, "usage": usage})
        yield _named("message_stop", {"type": "message_stop"})

    def whole() -> dict[str, Any]:
        asked = [block | {"input": json.loads(call.arguments)} for call, block in zip(calls, blocks, strict=True)]
        return message | {"content": asked or [{"type": "text", "text": "done"}], "stop_reason": stop}

    return _Reply(events(), whole)


def _anthropic_block(index: int, block: dict[str, Any], delta: dict[str, Any]) -> Iterator[str]:
    yield _named("content_block_start", {"type": "content_block_start", "index": index, "content_block": block})
    yield _named("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
    yield _named("content_block_stop", {"type": "content_block_stop", "index": index})


def _responses(model: MockModel, body: dict[str, Any]) -> _Reply:
    items = _items(body, "input")
    answered = len({call_id for call_id, _ in _results(body)})
    calls = model.next_turn(items, model.turns_answered(answered))
    identity = _identity("resp")
    output: list[dict[str, Any]] = [_responses_item(one) for one in calls]
    if not output:
        text = [{"type": "output_text", "text": "done", "annotations": []}]
        output = [{"type": "message", "id": _identity("msg"), "role": "assistant", "status": "completed", "content": text}]
    usage = {
        "input_tokens": 1,
        "input_tokens_details": None,
        "output_tokens": 1,
        "output_tokens_details": None,
        "total_tokens": 2,
    }
    done = {"id": identity, "object": "response", "status": "completed", "output": output, "usage": usage}

    def events() -> Iterator[str]:
        yield _named("response.created", {"type": "response.created", "response": {"id": identity}})
        for index, item in enumerate(output):
            yield _named(
                "response.output_item.done", {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        yield _named("response.completed", {"type": "response.completed", "response": done})

    return _Reply(events(), lambda: done)


def _responses_item(call: Call) -> dict[str, Any]:
    item: dict[str, Any] = {"id": _identity("fc"), "call_id": _identity("call"), "name": call.name, "status": "completed"}
    if call.namespace is not None:
        item["namespace"] = call.namespace
    if call.custom:
        return item | {"type": "custom_tool_call", "input": call.arguments}
    return item | {"type": "function_call", "arguments": call.arguments}


def _chat(model: MockModel, body: dict[str, Any]) -> _Reply:
    messages = _items(body, "messages")
    answered = sum(bool(one.get("tool_calls")) for one in messages)
    calls = model.next_turn(messages, answered) if body.get("tools") else ()
    finish = "tool_calls" if calls else "stop"
    tool_calls = [
        {
            "index": index,
            "id": _identity("call"),
            "type": "function",
            "function": {"name": one.name, "arguments": one.arguments},
        }
        for index, one in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = tool_calls
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": _identity("chatcmpl"), "created": int(time.time()), "model": body.get("model", "mock")}

    def events() -> Iterator[str]:
        for choices, more in (
            ([{"index": 0, "delta": message, "finish_reason": None}], {}),
            ([{"index": 0, "delta": {}, "finish_reason": finish}], {}),
            ([], {"usage": usage}),
        ):
            yield f"data: {json.dumps({**base, 'object': 'chat.completion.chunk', 'choices': choices, **more})}\n\n"
        yield "data: [DONE]\n\n"

    choice = {"index": 0, "message": message, "finish_reason": finish}
    return _Reply(events(), lambda: {**base, "object": "chat.completion", "choices": [choice], "usage": usage})
