"""The protocol's messages: what is sent to a backend, and what its answer means (AHP-RPC-001, AHP-VER-001, AHP-DEC-001)."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Mapping
from typing import Any, NoReturn

from attrs import frozen

from ahp_compile.bridge.payload import RawObject
from ahp_compile.semantics import Answer, Denial, Failure, FailureClass, NoEffect

PROTOCOL_VERSION = "0.1"

_REVERSE_DNS = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*")
_VERSION_ERROR = -32001
_EVENT_ERROR = -32002


@frozen
class Reply:
    """A backend's answer, and for an error response its code and the versions that it says it supports, for the audit."""

    answer: Answer
    error_code: int | None = None
    supported: tuple[str, ...] = ()


def intercept(event: Mapping[str, Any]) -> bytes:
    """One ``hooks/intercept`` request as a line of JSON; its id is the event's."""
    return _line(
        {
            "jsonrpc": "2.0",
            "id": event["id"],
            "method": "hooks/intercept",
            "params": {"protocolVersion": PROTOCOL_VERSION, "event": event, "capabilities": {"effects": ["deny"]}},
        }
    )


def observe(event: Mapping[str, Any]) -> bytes:
    """One ``hooks/observe`` notification as a line of JSON."""
    params = {"protocolVersion": PROTOCOL_VERSION, "event": event}
    return _line({"jsonrpc": "2.0", "method": "hooks/observe", "params": params})


def _line(message: Mapping[str, Any]) -> bytes:
    # ASCII with escapes: a lone surrogate that a model put into its arguments arrives as it was.
    raw: dict[str, str] = {}
    message = _without_raw(message, raw)
    try:
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(message), separators=(",", ":"), allow_nan=False)
    for stand_in, content in raw.items():
        text = text.replace(f'"{stand_in}"', content)
    return text.encode() + b"\n"


def _without_raw(value: Any, raw: dict[str, str]) -> Any:
    """The same with a stand-in for each object that is only known as text; its text goes to ``raw``."""
    if isinstance(value, RawObject):
        stand_in = f"raw-{uuid.uuid4()}"
        raw[stand_in] = value.text
        return stand_in
    holds_raw = isinstance(value, dict) and any(isinstance(one, dict) for one in value.values())
    return {name: _without_raw(one, raw) for name, one in value.items()} if holds_raw else value


def _finite(value: Any) -> Any:
    """The same with text in place of numbers that JSON has not: a model can have its harness make infinities (1e999)."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value


class _Unusable(Exception):
    def __init__(self, kind: FailureClass) -> None:
        super().__init__(kind)
        self.kind = kind


def read_reply(body: bytes, request_id: str) -> Reply:
    """What a response body means for the request with that id. Never raises: what is not a valid answer is a failure."""
    try:
        message = _parse(body)
        if message.get("jsonrpc") != "2.0":
            raise _Unusable(FailureClass.MALFORMED)
        if message.get("id") != request_id or not isinstance(message.get("id"), str):
            raise _Unusable(FailureClass.MISMATCHED_ID)
        if "error" in message:
            return _read_error(message)
        return Reply(_read_result(message.get("result")))
    except _Unusable as unusable:
        return Reply(Failure(unusable.kind))


def response_id(body: bytes) -> object:
    """The id of a response, for telling a late answer from a wrong one; None when there is none to read."""
    try:
        return _parse(body).get("id")
    except _Unusable:
        return None


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _Unusable(FailureClass.MALFORMED) from error
    if not isinstance(message, dict):
        raise _Unusable(FailureClass.MALFORMED)
    return message


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member twice")
    return members


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _read_error(message: Mapping[str, Any]) -> Reply:
    error = message["error"]
    if "result" in message or not isinstance(error, dict) or type(error.get("code")) is not int:
        raise _Unusable(FailureClass.MALFORMED)
    code = error["code"]
    kinds = {_VERSION_ERROR: FailureClass.VERSION, _EVENT_ERROR: FailureClass.EVENT}
    data = error.get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    versions = [one[:32] for one in supported if isinstance(one, str)][:8] if isinstance(supported, list) else []
    return Reply(Failure(kinds.get(code, FailureClass.ERROR_RESPONSE)), code, tuple(versions))


def _read_result(result: Any) -> Answer:
    if not isinstance(result, dict) or "protocolVersion" not in result or "effects" not in result:
        raise _Unusable(FailureClass.MISSING_FIELD)
    if result["protocolVersion"] != PROTOCOL_VERSION:
        raise _Unusable(FailureClass.VERSION)
    effects = result["effects"]
    if not isinstance(effects, list) or len(effects) > 1 or not _valid_extensions(result):
        raise _Unusable(FailureClass.EFFECT)
    return _read_effect(effects[0]) if effects else NoEffect()


def _read_effect(effect: Any) -> Denial:
    """The one effect that we advertise; any other is a failure, never ignored (AHP-CAP-001)."""
    if not isinstance(effect, dict) or effect.get("type") != "deny" or not _valid_extensions(effect):
        raise _Unusable(FailureClass.EFFECT)
    reason, code = effect.get("reason"), effect.get("code")
    if not isinstance(reason, str) or not reason:
        raise _Unusable(FailureClass.EFFECT)
    if "code" in effect and not (isinstance(code, str) and _REVERSE_DNS.fullmatch(code)):
        raise _Unusable(FailureClass.EFFECT)
    return Denial(reason, code)


def _valid_extensions(holder: Mapping[str, Any]) -> bool:
    if "extensions" not in holder:
        return True
    extensions = holder["extensions"]
    return isinstance(extensions, dict) and all(_REVERSE_DNS.fullmatch(key) for key in extensions)
