"""Claude Code's dialect: its payloads in the protocol's words, and a denial in its own."""

from __future__ import annotations

import json
from typing import Any

from ahp_compile.dialect import agent_of, fold_reason, kind_of, mcp_of, required_text, text_or_none
from ahp_compile.registration import Event
from ahp_compile.target import NativeEvent, ToolCall

_KINDS = {
    "Bash": "shell",
    "Monitor": "shell",
    "PowerShell": "shell",
    "Read": "file_read",
    "Write": "file_write",
    "Edit": "file_edit",
    "NotebookEdit": "file_edit",
    "WebSearch": "search",
    "Glob": "search",
    "Grep": "search",
    "WebFetch": "fetch",
    "Agent": "task",
    "Task": "task",
    "Workflow": "task",
    "SendMessage": "task",
}
_OUTCOMES = {"prompt_input_exit": "completed", "clear": "completed", "logout": "completed"}

# The model is shown about 52 kB of a reason [2.1.332]; a longer one would be cut without a mark.
_REASON_LIMIT = 50_000


class Codec:
    """Claude Code 2.1's payloads (stdin of hooks) and answers."""

    provider = "claude-code"

    def decode(self, event: Event, payload: dict[str, Any]) -> NativeEvent:
        """Read a hook's payload. Raises ValueError when session_id, hook_event_name or a tool's name or input is missing."""
        return NativeEvent(
            native_name=required_text(payload, "hook_event_name"),
            session_id=required_text(payload, "session_id"),
            cwd=text_or_none(payload, "cwd"),
            model=text_or_none(payload, "model"),
            agent=agent_of(payload),
            tool=self._tool(event, payload) if event.value.startswith("tool.") else None,
            outcome=_OUTCOMES.get(payload.get("reason", ""), "unknown") if event is Event.SESSION_END else None,
            turn=text_or_none(payload, "prompt_id"),
        )

    def _tool(self, event: Event, payload: dict[str, Any]) -> ToolCall:
        name = required_text(payload, "tool_name")
        tool_input = payload.get("tool_input")
        if not isinstance(tool_input, dict):
            raise ValueError("tool_input is not an object")
        mcp = _mcp(name, payload)
        return ToolCall(
            call_id=text_or_none(payload, "tool_use_id"),
            name=name,
            kind="mcp" if mcp else kind_of(name, _KINDS),
            input=tool_input,
            output=payload.get("tool_response") if event is Event.TOOL_AFTER else None,
            error=str(payload.get("error") or "the tool failed") if event is Event.TOOL_ERROR else None,
            mcp=mcp,
        )

    def sample(self, event: Event) -> dict[str, Any]:
        """A payload as ``claude -p`` sends it, for a call of its shell tool."""
        names = {
            Event.TOOL_BEFORE: "PreToolUse",
            Event.TOOL_AFTER: "PostToolUse",
            Event.TOOL_ERROR: "PostToolUseFailure",
            Event.SESSION_START: "SessionStart",
            Event.SESSION_END: "SessionEnd",
        }
        payload: dict[str, Any] = {"hook_event_name": names[event], "session_id": "sample", "cwd": "/", "transcript_path": ""}
        if event.value.startswith("tool."):
            payload |= {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_sample"}
        own: dict[Event, dict[str, Any]] = {
            Event.TOOL_AFTER: {"tool_response": {"stdout": "", "stderr": ""}},
            Event.TOOL_ERROR: {"error": "exit code 1"},
            Event.SESSION_START: {"source": "startup"},
            Event.SESSION_END: {"reason": "other"},
        }
        return payload | own.get(event, {})

    def deny(self, reason: str) -> bytes:
        """The harness's deny JSON as one line of ASCII; the reason is shortened with a mark where the harness would cut it."""
        answer = {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": fold_reason(reason, _REASON_LIMIT),
            }
        }
        return json.dumps(answer).encode("ascii")


def _mcp(name: str, payload: dict[str, Any]) -> dict[str, str] | None:
    """A server's own name may hold two underscores, so the payload's word for it comes first."""
    server = payload.get("mcp_server")
    known = server.get("name") if isinstance(server, dict) else None
    if isinstance(known, str) and name.startswith(f"mcp__{known}__"):
        return {"server": known, "tool": name.removeprefix(f"mcp__{known}__")}
    return mcp_of(name)


CODEC = Codec()
