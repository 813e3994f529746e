"""The strict reader: positions, and everything that is not strict JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahp_compile.source import SIZE_LIMIT, Node, Number, Object, Position, Source, SourceProblem, decode, parse

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


def plain(node: Node) -> Any:
    match node.value:
        case Object():
            return {one.name: plain(one.value) for one in node.value.members}
        case list():
            return [plain(one) for one in node.value]
        case Number():
            return json.loads(node.value.text)
        case other:
            return other


@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_json_writes_is_read_as_it_was(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if any("\ud800" <= one <= "\udfff" for one in json.dumps(value, ensure_ascii=False)):
        return
    node, problems = parse(decode("x", text.encode()))
    assert not problems
    assert plain(node) == value
    assert text[node.span.start : node.span.end] == text


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "ends before"),
        ("{", 1, 2, "member name"),
        ('{"a": 1,}', 1, 8, "comma after the last"),
        ("[1,]", 1, 3, "comma after the last"),
        ('{"a" 1}', 1, 6, "colon"),
        ('{"a": 1 "b": 2}', 1, 9, "comma or }"),
        ("[1 2]", 1, 4, "comma or ]"),
        ("{a: 1}", 1, 2, "double quotes"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ('["a', 1, 2, "not closed"),
        ('["a\n"]', 1, 4, "end of its line"),
        ('["a\tb"]', 1, 4, "control character"),
        ('["\\x"]', 1, 3, "escape"),
        ('["\\u12"]', 1, 3, "escape"),
        ("[01]", 1, 2, "no number"),
        ("[1.]", 1, 2, "no number"),
        ("[+1]", 1, 2, "value is expected"),
        ("[.5]", 1, 2, "value is expected"),
        ("[-]", 1, 2, "no number"),
        ("[NaN]", 1, 2, "value is expected"),
        ("[-Infinity]", 1, 2, "no number"),
        ("[True]", 1, 2, "value is expected"),
        ("[nul]", 1, 2, "value is expected"),
        ("{} {}", 1, 4, "after the document"),
        ("{}\r\n\tx", 2, 2, "after the document"),
        ("// hi\n{}", 1, 1, "comment"),
        ("[1, /* a */ 2]", 1, 5, "comment"),
        ('{"a": 1 // b\n}', 1, 9, "comment"),
        ("[\r\n  'ü'\r\n]", 2, 3, "double quotes"),
        ('["😀", x]', 1, 7, "value is expected"),
        ("[" + "1" * 500 + "]", 1, 2, "too many digits"),
    ],
)
def test_what_is_no_json_is_refused_at_its_place(text: str, line: int, column: int, words: str) -> None:
    source = decode("x", text.encode())
    with pytest.raises(SourceProblem, match=words) as caught:
        parse(source)
    assert caught.value.code == "not-json"
    assert source.position(caught.value.span.start) == Position(line, column)


def test_every_strict_reader_agrees_on_those() -> None:
    for text in ("[1]", '{"a": {"a": 1}}', '["\\ud83d\\ude00"]', "1e5", '""', " null\n"):
        json.loads(text)
        parse(decode("x", text.encode()))


def test_a_member_twice_is_told_at_the_second_with_the_line_of_the_first() -> None:
    source = decode("x", b'{"a": 1,\n "b": {"c": 1, "c": 2},\n "a": 2}')
    _, problems = parse(source)
    assert [one.code for one in problems] == ["duplicate-member"] * 2
    assert [source.position(one.span.start) for one in problems] == [Position(2, 16), Position(3, 2)]
    assert "line 1" in problems[1].cure
    # The same name in another spelling is the same name.
    assert len(parse(decode("x", rb'{"a": 1, "\u0061": 2}'))[1]) == 1


@pytest.mark.parametrize("text", [r'["\ud800"]', r'["\udc00\ud800"]', r'{"\ud800": 1}'])
def test_half_of_a_surrogate_pair_is_told(text: str) -> None:
    _, problems = parse(decode("x", text.encode()))
    assert [one.code for one in problems] == ["lone-surrogate"]


@pytest.mark.parametrize(("raw", "column"), [(b'{"a": "\xff"}', 8), ('{"ü": "'.encode() + b'\xed\xa0\x80"}', 8)])
def test_what_is_no_utf_8_is_told_at_its_place(raw: bytes, column: int) -> None:
    with pytest.raises(SourceProblem) as caught:
        decode("x", raw)
    assert caught.value.code == "not-utf-8"
    assert caught.value.span.start + 1 == column


def test_too_deep_and_too_large_end_soon() -> None:
    with pytest.raises(SourceProblem, match="deep"):
        parse(decode("x", b"[" * 1_000_000))
    with pytest.raises(SourceProblem, match="deep"):
        parse(decode("x", b'{"a":' * 1_000_000))
    with pytest.raises(SourceProblem, match="MiB"):
        decode("x", b" " * (SIZE_LIMIT + 1))


def test_a_byte_order_mark_is_read_over() -> None:
    source = decode("x", b"\xef\xbb\xbf[x]")
    assert source.had_bom
    with pytest.raises(SourceProblem) as caught:
        parse(source)
    assert source.position(caught.value.span.start) == Position(1, 2)


def test_lines_are_told_without_their_ends() -> None:
    source = Source("x", "a\r\nbü\n\nc")
    assert [source.line(one) for one in (1, 2, 3, 4)] == ["a", "bü", "", "c"]
    assert source.position(4) == Position(2, 2)
    assert source.position(8) == Position(4, 2)
