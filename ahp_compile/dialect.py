"""What the codecs of all targets need to read payloads and word denials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MARK = " […]"


def required_text(payload: Mapping[str, Any], name: str) -> str:
    """A non-empty string member of a payload. Raises ValueError when it is missing or of another type."""
    value = payload.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the payload has no {name}")
    return value


def text_or_none(payload: Mapping[str, Any], name: str) -> str | None:
    """A string member of a payload, or None where the harness does not say."""
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def agent_of(payload: Mapping[str, Any]) -> dict[str, str] | None:
    """The subagent that makes the call, from ``agent_id`` and ``agent_type``; None for the main one."""
    identity = text_or_none(payload, "agent_id")
    if identity is None:
        return None
    kind = text_or_none(payload, "agent_type")
    return {"id": identity} | ({"type": kind} if kind else {})


def kind_of(name: str, kinds: Mapping[str, str]) -> str:
    """The protocol's kind of a tool by its exact name, else ``other`` (section 3.2)."""
    return kinds.get(name, "other")


def mcp_of(name: str) -> dict[str, str] | None:
    """Server and tool of a name in the ``mcp__SERVER__TOOL`` convention; None for any other tool."""
    if not name.startswith("mcp__"):
        return None
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return {"server": server, "tool": tool}


def fold_reason(reason: str, limit: int) -> str:
    """A reason that a harness shows whole: without NUL, never blank, and shortened with a mark beyond ``limit`` UTF-8 bytes."""
    text = reason.replace("\0", "")
    if not text.strip():
        return "Denied by policy."
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - len(_MARK.encode())].decode("utf-8", "ignore") + _MARK
