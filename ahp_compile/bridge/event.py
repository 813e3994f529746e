"""Building the protocol's event from what a harness told (section 3.1)."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ahp_compile.bridge.payload import RawObject
from ahp_compile.registration import Event
from ahp_compile.target import NativeEvent, ToolCall


def source() -> str:
    """The harness installation as an absolute URI: stable per machine and user, and saying nothing about either."""
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        machine = platform.node()
    return uuid.uuid5(uuid.NAMESPACE_OID, f"ahp-compile {machine} {os.getuid()}").urn


def build(event: Event, native: NativeEvent, event_source: str) -> dict[str, Any]:
    """One event with a globally unique id and the time of its making; without the native payload."""
    document: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "source": event_source,
        "type": event.value,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "session": _session(native),
    }
    if native.tool is not None:
        document["tool"] = _tool(event, native, native.tool)
    if native.outcome is not None:
        document["outcome"] = native.outcome
    return document


def with_native(document: dict[str, Any], provider: str, native: NativeEvent, payload: dict[str, Any]) -> dict[str, Any]:
    """The same event with the harness's own payload, for subscriptions that ask for it."""
    return document | {"native": {"provider": provider, "eventName": native.native_name, "payload": payload}}


def _session(native: NativeEvent) -> dict[str, Any]:
    session: dict[str, Any] = {"id": native.session_id}
    optional = {"cwd": native.cwd, "model": native.model, "agent": native.agent}
    return session | {name: value for name, value in optional.items() if value is not None}


def _tool(event: Event, native: NativeEvent, call: ToolCall) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "callId": call.call_id or _synthesized_id(native, call),
        "name": call.name,
        "kind": call.kind,
        "input": call.input,
    }
    if call.mcp is not None:
        tool["mcp"] = call.mcp
    if event is Event.TOOL_AFTER:
        tool["output"] = call.output
    if event is Event.TOOL_ERROR:
        tool["error"] = {"message": call.error or "the tool failed"}
    return tool


def _synthesized_id(native: NativeEvent, call: ToolCall) -> str:
    """The same for one call before and after it: session, turn, name and input say which call it is."""
    told = call.input.text if isinstance(call.input, RawObject) else call.input
    identity = json.dumps([native.session_id, native.turn, call.name, told], sort_keys=True)
    return "ahp-" + hashlib.sha256(identity.encode("ascii")).hexdigest()[:32]
