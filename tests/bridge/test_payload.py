"""What a model puts into a tool's input never keeps the call from being judged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahp_compile.bridge import event as events
from ahp_compile.bridge import payload, wire
from ahp_compile.bridge.payload import RawObject
from ahp_compile.registration import Event
from ahp_compile.target import NativeEvent, ToolCall

DEEP = 50_000


def deep(inner: str = "1") -> str:
    return '{"a":' * DEEP + inner + "}" * DEEP


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(st.characters())),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4), st.sampled_from([None, 2]), st.booleans())
def test_members_are_found_by_their_brackets(document: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert payload.parse(text) == document
    assert payload._parse_members(text) == document


def test_an_input_too_deep_to_be_read_is_handed_on_as_it_is() -> None:
    text = '{"tool_name": "x", "tool_input": ' + deep('"a \\" ] } b"') + ', "n": [1, {"b": 2}]}'
    parsed = payload.parse(text.encode())
    assert parsed["tool_name"] == "x"
    assert parsed["n"] == [1, {"b": 2}]
    assert isinstance(parsed["tool_input"], RawObject)
    assert isinstance(parsed["tool_input"], dict)
    assert parsed["tool_input"].text == deep('"a \\" ] } b"')


@pytest.mark.parametrize("inner", ['"ü"', '"\\ud800"', '"a\\nb"', "\n1\n"])
def test_a_line_with_such_an_input_is_one_line_of_json(inner: str) -> None:
    native = NativeEvent("PreToolUse", "s")
    given = payload.parse(('{"tool_input": ' + deep(inner) + "}").encode("utf-8", "surrogatepass"))["tool_input"]
    call = ToolCall(None, "Bash", "shell", given)
    document = events.build(Event.TOOL_BEFORE, NativeEvent("PreToolUse", "s", tool=call), "urn:x")
    told = events.with_native(document, "x", native, {"tool_input": given})
    for line in (wire.intercept(document), wire.observe(told)):
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        assert line.decode().count('{"a":{"a":{"a":') >= 1
        assert b"raw-" not in line
        shallow = line.decode().replace('{"a":' * DEEP, "").replace("}" * DEEP, "", 2)
        assert shallow.startswith('{"jsonrpc":"2.0"')
    other = ToolCall(None, "Bash", "shell", payload.RawObject("{}"))
    assert (
        document["tool"]["callId"]
        != events.build(Event.TOOL_BEFORE, NativeEvent("PreToolUse", "s", tool=other), "urn:x")["tool"]["callId"]
    )


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"{", b"{]", b'{"a" 1}', b"\xff", ('{"a": ' + deep()).encode()])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        payload.parse(text)


def test_large_integers_stay_text_and_others_numbers() -> None:
    assert payload.parse(b'{"a": 12, "b": ' + b"9" * 5000 + b"}") == {"a": 12, "b": "9" * 5000}
