"""Hermes' dialect: what its plugin tells the bridge in the protocol's words, and a denial in its own."""

from __future__ import annotations

import json
from typing import Any

from ahp_compile.dialect import fold_reason, kind_of, mcp_of, required_text, text_or_none
from ahp_compile.registration import Event
from ahp_compile.target import NativeEvent, ToolCall

_KINDS = {
    "terminal": "shell",
    "process": "shell",
    "execute_code": "shell",
    "read_file": "file_read",
    "write_file": "file_write",
    "patch": "file_edit",
    "search_files": "search",
    "session_search": "search",
    "web_search": "fetch",
    "web_extract": "fetch",
    "delegate_task": "task",
}
_REASON_LIMIT = 1_000_000


class Codec:
    """Hermes 0.19's callback arguments, as the plugin writes them to the bridge, and answers."""

    provider = "hermes"

    def decode(self, event: Event, payload: dict[str, Any]) -> NativeEvent:
        """Read a payload. Raises ValueError when the event's name or a tool's name or arguments are missing.

        execute_code's inner calls have no session of their own: they carry their task's id instead.
        """
        return NativeEvent(
            native_name=required_text(payload, "hook_event_name"),
            session_id=text_or_none(payload, "session_id") or text_or_none(payload, "task_id") or "unknown",
            cwd=text_or_none(payload, "cwd"),
            model=text_or_none(payload, "model"),
            tool=self._tool(event, payload) if event.value.startswith("tool.") else None,
            outcome="unknown" if event is Event.SESSION_END else None,
            turn=text_or_none(payload, "turn_id"),
        )

    def _tool(self, event: Event, payload: dict[str, Any]) -> ToolCall:
        name = required_text(payload, "tool_name")
        arguments = payload.get("args")
        if not isinstance(arguments, dict):
            raise ValueError("args is not an object")
        mcp = mcp_of(name)
        browses = name.startswith("browser_")
        return ToolCall(
            call_id=text_or_none(payload, "tool_call_id"),
            name=name,
            kind="mcp" if mcp else "fetch" if browses else kind_of(name, _KINDS),
            input=arguments,
            output=_result(payload.get("result")) if event is Event.TOOL_AFTER else None,
            error=text_or_none(payload, "error_message") or "the tool failed" if event is Event.TOOL_ERROR else None,
            mcp=mcp,
        )

    def sample(self, event: Event) -> dict[str, Any]:
        """What the plugin would write of a call of the terminal tool."""
        names = {
            Event.TOOL_BEFORE: "pre_tool_call",
            Event.TOOL_AFTER: "post_tool_call",
            Event.TOOL_ERROR: "post_tool_call",
            Event.SESSION_START: "on_session_start",
            Event.SESSION_END: "on_session_finalize",
        }
        payload: dict[str, Any] = {"hook_event_name": names[event], "session_id": "sample", "cwd": "/"}
        if event.value.startswith("tool."):
            payload |= {"tool_name": "terminal", "args": {"command": "ls"}, "tool_call_id": "call_sample"}
        own: dict[Event, dict[str, Any]] = {
            Event.TOOL_AFTER: {"status": "ok", "result": "{}"},
            Event.TOOL_ERROR: {"status": "error", "error_message": "it failed"},
        }
        return payload | own.get(event, {})

    def deny(self, reason: str) -> bytes:
        """The reason as text: the plugin returns it as the block's message."""
        return fold_reason(reason, _REASON_LIMIT).encode()


def _result(result: Any) -> Any:
    """A tool's result is JSON in a string where the tool has structure to give."""
    if not isinstance(result, str):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result


CODEC = Codec()
