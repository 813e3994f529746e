"""Reading a harness's payload, whatever a model has put into it.

A model chooses a tool's input, so nothing in it may keep the call from being judged: not half a surrogate pair, not an integer
of thousands of digits, and not nesting deeper than a JSON reader follows. Such an input is handed on as the text that it is.
"""

from __future__ import annotations

import json
import re
from typing import Any

_MOST_DIGITS = 4000
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class RawObject(dict[str, Any]):
    """An object that is too deep to be read: ``text`` is its JSON, in one line; as a mapping it is empty."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


def parse(payload: bytes) -> dict[str, Any]:
    """A payload as an object; a member that is an object too deep to be read is a RawObject. Raises ValueError."""
    try:
        document = _loads(payload)
    except RecursionError:
        document = _parse_members(payload)
    if not isinstance(document, dict):
        raise ValueError("the payload is not an object")
    return document


def _loads(text: bytes) -> Any:
    return json.loads(text.decode("utf-8", "surrogatepass"), parse_int=_integer)


def _integer(digits: str) -> int | str:
    """An integer with more digits than the interpreter converts stays text, so that its call is asked about at all."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _parse_members(payload: bytes) -> dict[str, Any]:
    members = {}
    for name, value in _members(payload).items():
        try:
            members[name] = _loads(value)
        except RecursionError:
            members[name] = RawObject(_one_line(value)) if value.startswith(b"{") else None
    return members


def _members(payload: bytes) -> dict[str, bytes]:
    """The text of each member of the outermost object, found by its brackets alone. Raises ValueError."""
    members: dict[str, bytes] = {}
    depth, start, name = 0, 0, b""
    for token in _TOKEN.finditer(payload):
        symbol = token[0]
        if symbol in (b"{", b"["):
            depth += 1
            start = token.end() if depth == 1 else start
        elif symbol in (b"}", b"]"):
            depth -= 1
        if symbol == b":" and depth == 1:
            name, start = payload[start : token.start()].strip(), token.end()
        elif (symbol == b"," and depth == 1) or (depth == 0 and name):
            members[_loads(name)] = payload[start : token.start()].strip()
            name, start = b"", token.end()
    if depth != 0:
        raise ValueError("the payload's brackets do not match")
    return members


def _one_line(value: bytes) -> str:
    """The same JSON without line ends, which are only ever between its tokens, and in ASCII where UTF-8 has no character."""
    text = value.decode("utf-8", "surrogatepass").replace("\n", " ").replace("\r", " ")
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
