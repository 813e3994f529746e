"""Codex's dialect: its payloads in the protocol's words, and a denial in its own."""

from __future__ import annotations

from typing import Any

from ahp_compile.dialect import agent_of, fold_reason, kind_of, mcp_of, required_text, text_or_none
from ahp_compile.registration import Event
from ahp_compile.target import NativeEvent, ToolCall

_KINDS = {
    "Bash": "shell",
    "apply_patch": "file_edit",
    "view_image": "file_read",
    "list_mcp_resources": "mcp",
    "read_mcp_resource": "mcp",
    "spawn_agent": "task",
    "wait_agent": "task",
    "list_agents": "task",
    "send_input": "task",
    "close_agent": "task",
}
# Agent tools come in namespaces that are glued to the tool's name without a separator.
_TASK_NAMESPACES = ("multi_agent_v1", "collaboration")

_REASON_LIMIT = 1_000_000


class Codec:
    """Codex 0.171's payloads (stdin of hooks) and answers."""

    provider = "codex"

    def decode(self, event: Event, payload: dict[str, Any]) -> NativeEvent:
        """Read a hook's payload. Raises ValueError when session_id, hook_event_name or a tool's name or input is missing."""
        return NativeEvent(
            native_name=required_text(payload, "hook_event_name"),
            session_id=required_text(payload, "session_id"),
            cwd=text_or_none(payload, "cwd"),
            model=text_or_none(payload, "model"),
            agent=agent_of(payload),
            tool=self._tool(event, payload) if event.value.startswith("tool.") else None,
            outcome="unknown" if event is Event.SESSION_END else None,
            turn=text_or_none(payload, "turn_id"),
        )

    def _tool(self, event: Event, payload: dict[str, Any]) -> ToolCall:
        name = required_text(payload, "tool_name")
        tool_input = payload.get("tool_input")
        if not isinstance(tool_input, dict):
            raise ValueError("tool_input is not an object")
        mcp = mcp_of(name)
        kind = "task" if name.startswith(_TASK_NAMESPACES) else kind_of(name, _KINDS)
        return ToolCall(
            call_id=text_or_none(payload, "tool_use_id"),
            name=name,
            kind="mcp" if mcp else kind,
            input=tool_input,
            output=payload.get("tool_response") if event is Event.TOOL_AFTER else None,
            mcp=mcp,
        )

    def sample(self, event: Event) -> dict[str, Any]:
        """A payload as ``codex exec`` sends it, for a call of its shell tool."""
        names = {
            Event.TOOL_BEFORE: "PreToolUse",
            Event.TOOL_AFTER: "PostToolUse",
            Event.SESSION_START: "SessionStart",
            Event.SESSION_END: "SessionEnd",
        }
        payload: dict[str, Any] = {"hook_event_name": names[event], "session_id": "sample", "cwd": "/", "model": "sample"}
        if event.value.startswith("tool."):
            payload |= {"turn_id": "1", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_sample"}
        return payload | ({"tool_response": ""} if event is Event.TOOL_AFTER else {})

    def deny(self, reason: str) -> bytes:
        """The reason as text: the guard puts it on stderr behind a fixed prefix."""
        return fold_reason(reason, _REASON_LIMIT).encode()


CODEC = Codec()
