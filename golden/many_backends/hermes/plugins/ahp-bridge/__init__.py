"""Asks the policy bridge about tool calls. Written by ahp-compile: changes here are found by its check and lost on update."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
from typing import Any

HOOKS = json.loads('{"tool.before": {"bound_s": 14.584, "denies": true, "judges": true, "words": ["/opt/ahp-compile/bin/python3", "-I", "-S", "/home/ada/.local/share/ahp-compile/client-XXXX.py", "--plan", "/home/ada/.local/share/ahp-compile/plan-d54e725cf5f46ed6a71105861ccab3ccd44a1cab265d2aac73bccd17122177db.json", "--digest", "d54e725cf5f46ed6a71105861ccab3ccd44a1cab265d2aac73bccd17122177db", "--event", "tool.before", "--budget-ms", "14584", "--guard", "deny"]}}')

_UNAVAILABLE = "A required policy backend is unavailable."
_DENIED = "Denied by policy."


def register(ctx: Any) -> None:
    """Register one callback for each native event that the plan needs."""
    if "tool.before" in HOOKS:
        ctx.register_hook("pre_tool_call", _before_tool_call)
    if "tool.after" in HOOKS or "tool.error" in HOOKS:
        ctx.register_hook("post_tool_call", _after_tool_call)
    if "session.start" in HOOKS:
        ctx.register_hook("on_session_start", _on_session_start)
    if "session.end" in HOOKS:
        ctx.register_hook("on_session_finalize", _on_session_finalize)


def _before_tool_call(**facts: Any) -> dict[str, str] | None:
    hook = HOOKS["tool.before"]
    if not hook["judges"]:
        _tell("tool.before", "pre_tool_call", facts)
        return None
    # A callback that raises lets the tool run, so everything that goes wrong must end in the guard's verdict.
    try:
        status, output = _ask(hook, "pre_tool_call", facts)
        if status == 0 and output == b"ahp-proceed-1\n":
            return None
        if status == 77 and output:
            reason = output.decode("utf-8", "replace")
            return {"action": "block", "message": reason if reason.strip() else _DENIED}
    except BaseException:
        pass
    return {"action": "block", "message": _UNAVAILABLE} if hook["denies"] else None


def _after_tool_call(**facts: Any) -> None:
    # "blocked" is a call that never ran: it is neither a success nor a failed execution.
    event = {"ok": "tool.after", "error": "tool.error"}.get(str(facts.get("status")))
    _tell(event, "post_tool_call", facts)


def _on_session_start(**facts: Any) -> None:
    _tell("session.start", "on_session_start", facts)


def _on_session_finalize(**facts: Any) -> None:
    _tell("session.end", "on_session_finalize", facts)


def _tell(event: str | None, native_event: str, facts: dict[str, Any]) -> None:
    with contextlib.suppress(BaseException):
        if event in HOOKS:
            _ask(HOOKS[event], native_event, facts)


def _ask(hook: dict[str, Any], native_event: str, facts: dict[str, Any]) -> tuple[int, bytes]:
    """Ask the bridge once: its exit status and output. Raises when it cannot decide within its bound."""
    # ASCII JSON: a lone surrogate in an argument stays an escape and cannot keep the question from being put.
    payload = json.dumps({"hook_event_name": native_event, "cwd": os.getcwd(), **_told(facts)}).encode("ascii")
    words = hook["words"]
    spec: Any = importlib.util.spec_from_file_location("ahp_bridge_client", words[3])
    client: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    status, output = client.ask(words, payload, hook["bound_s"], os.environb)
    return status, output


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that the bridge reads, by their names in the harness; live objects among the others stay here."""
    names = (
        "tool_name",
        "args",
        "session_id",
        "tool_call_id",
        "turn_id",
        "task_id",
        "result",
        "status",
        "error_type",
        "error_message",
        "duration_ms",
        "model",
        "platform",
        "reason",
    )
    return {name: facts[name] for name in names if name in facts}
