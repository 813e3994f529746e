"""Text with positions: a strict JSON reader whose every value and member name knows where it stands.

No library reads strict JSON with positions and tells a member that is there twice, so this one does, in linear time.
"""

from __future__ import annotations

import bisect
import json
import re
from functools import cached_property
from typing import NoReturn

from attrs import define, field, frozen

SIZE_LIMIT = 16 << 20
"""Bytes that a document may have."""

DEPTH_LIMIT = 64
"""How deep arrays and objects may be nested; a registration needs six."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORD = re.compile(r"[^\s\[\]{},:\"]+")
_LITERALS = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 400


@frozen
class Span:
    """A stretch of the text, in code points from its beginning."""

    start: int
    end: int


@frozen
class Position:
    """Line and column, both from 1; a column is one code point, tabs included."""

    line: int
    column: int


@frozen
class Number:
    """A number as it is written: its value depends on who asks."""

    text: str


@frozen
class Member:
    """One member of an object: its name, where the name stands, and its value."""

    name: str
    span: Span
    value: Node


@frozen
class Object:
    """An object; of a member that is there twice only the first counts."""

    members: tuple[Member, ...]

    @cached_property
    def _by_name(self) -> dict[str, Member]:
        return {one.name: one for one in reversed(self.members)}

    def get(self, name: str) -> Member | None:
        """The member with that name, or None."""
        return self._by_name.get(name)


Value = Object | list["Node"] | str | Number | bool | None


@frozen
class Node:
    """A value and where it stands."""

    value: Value
    span: Span


class SourceProblem(Exception):
    """What makes a text no strict JSON. ``code`` is the diagnostic's, ``span`` where it is, ``cure`` what to do."""

    def __init__(self, code: str, span: Span, message: str, cure: str) -> None:
        super().__init__(message)
        self.code = code
        self.span = span
        self.message = message
        self.cure = cure


@define
class Source:
    """A document's text, its name for people, and whether it began with a byte order mark."""

    name: str
    text: str
    had_bom: bool = False
    _line_starts: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", self.text))]

    def position(self, offset: int) -> Position:
        """Line and column of a code point."""
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of one line, from 1, without its end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].removesuffix("\n").removesuffix("\r")


def decode(name: str, raw: bytes) -> Source:
    """Bytes to text. Raises SourceProblem (with a span in a text of replacement) when they are not UTF-8, or too many."""
    if len(raw) > SIZE_LIMIT:
        raise SourceProblem(
            "document-too-large", Span(0, 0), f"The document has more than {SIZE_LIMIT >> 20} MiB.", "Split the registration."
        )
    had_bom = raw.startswith(b"\xef\xbb\xbf")
    content = raw[3:] if had_bom else raw
    try:
        return Source(name, content.decode("utf-8"), had_bom)
    except UnicodeDecodeError as error:
        at = len(content[: error.start].decode("utf-8"))
        raise SourceProblem(
            "not-utf-8", Span(at, at + 1), "The document is not UTF-8 text from here on.", "Save the file as UTF-8."
        ) from error


def parse(source: Source) -> tuple[Node, list[SourceProblem]]:
    """Read one JSON value. Problems that do not keep the rest from being read, such as a member twice, come beside it.

    Raises SourceProblem where reading cannot go on.
    """
    reader = _Reader(source.text)
    node = reader.document()
    return node, reader.problems


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.problems: list[SourceProblem] = []

    def document(self) -> Node:
        self._skip()
        node = self._value(0)
        self._skip()
        if self.at < len(self.text):
            self._refuse("There is more text after the document's end.", "Leave one JSON object in the file.")
        return node

    def _value(self, depth: int) -> Node:
        if depth > DEPTH_LIMIT:
            raise SourceProblem(
                "too-deep",
                Span(self.at, self.at + 1),
                f"Arrays and objects are nested more than {DEPTH_LIMIT} deep.",
                "A registration needs no such nesting: remove it.",
            )
        start = self.at
        character = self.text[self.at : self.at + 1]
        value: Value
        if character == "{":
            value = self._object(depth)
        elif character == "[":
            value = self._array(depth)
        elif character == '"':
            value = self._string()
        elif character == "-" or character.isdigit():
            value = self._number()
        else:
            value = self._literal()
        return Node(value, Span(start, self.at))

    def _object(self, depth: int) -> Object:
        self.at += 1
        members: list[Member] = []
        seen: dict[str, Span] = {}
        self._skip()
        while not self._take("}"):
            if members and not self._separator("}"):
                break
            start = self.at
            if self.text[start : start + 1] != '"':
                self._refuse("A member name in double quotes is expected here.", "Write the name in double quotes.")
            name = self._string()
            span = Span(start, self.at)
            if name in seen:
                self._member_twice(span, seen[name])
            seen.setdefault(name, span)
            self._skip()
            if not self._take(":"):
                self._refuse("A colon is expected after a member's name.", "Put a colon between name and value.")
            self._skip()
            members.append(Member(name, span, self._value(depth + 1)))
            self._skip()
        return Object(tuple(members))

    def _array(self, depth: int) -> list[Node]:
        self.at += 1
        values: list[Node] = []
        self._skip()
        while not self._take("]"):
            if values and not self._separator("]"):
                break
            values.append(self._value(depth + 1))
            self._skip()
        return values

    def _separator(self, closing: str) -> bool:
        comma = self.at
        if not self._take(","):
            self._refuse(f"A comma or {closing} is expected here.", f"Put a comma between values, or {closing} after the last.")
        self._skip()
        if self.text[self.at : self.at + 1] == closing:
            self.at = comma
            self._refuse("A comma after the last value is not JSON.", "Remove this comma.")
        return True

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            self._bad_string()
        start, self.at = self.at, found.end()
        text: str = json.loads(found[0])
        if any("\ud800" <= one <= "\udfff" for one in text):
            self.problems.append(
                SourceProblem(
                    "lone-surrogate",
                    Span(start, self.at),
                    "This string holds half of a surrogate pair, which is no character.",
                    "Write the whole pair, or the character itself.",
                )
            )
        return text

    def _bad_string(self) -> NoReturn:
        """Find out what is wrong with the string that begins here."""
        at = self.at + 1
        while at < len(self.text) and self.text[at] != '"':
            if self.text[at] < " ":
                self.at = at
                ends = self.text[at] in "\r\n"
                self._refuse(
                    "A string goes on over the end of its line." if ends else "A control character stands in a string.",
                    "Close the string, or write \\n for a line end." if ends else "Write it as an escape such as \\t.",
                )
            if self.text[at] == "\\":
                if _STRING.fullmatch(f'"{self.text[at : at + 6]}"') is None and (
                    self.text[at + 1 : at + 2] not in tuple('"\\/bfnrt') or self.text[at + 1 : at + 2] == ""
                ):
                    self.at = at
                    self._refuse("A backslash begins no escape of JSON here.", "Write \\\\ for a backslash.")
                at += 1
            at += 1
        self._refuse("A string is not closed.", "Close it with a double quote.")

    def _number(self) -> Number:
        found = _NUMBER.match(self.text, self.at)
        word = _WORD.match(self.text, self.at)
        if found is None or word is None or found[0] != word[0]:
            self._refuse("This is no number of JSON.", "Write digits without leading zeros, such as 750.")
        if len(found[0]) > _LONGEST_NUMBER:
            self._refuse("This number has too many digits.", "Write a number of ordinary size.")
        self.at = found.end()
        return Number(found[0])

    def _literal(self) -> bool | None:
        word = _WORD.match(self.text, self.at)
        if word is not None and word[0] in _LITERALS:
            self.at = word.end()
            return _LITERALS[word[0]]
        if self.at >= len(self.text):
            self._refuse("The document ends before it is complete.", "Close what is open.")
        if self.text.startswith(("//", "/*", "#"), self.at):
            self._refuse("A comment is not JSON.", "Remove the comment.")
        if self.text[self.at] == "'":
            self._refuse("Strings stand in double quotes in JSON.", "Use \" instead of '.")
        self._refuse("A value is expected here.", "Write a string in double quotes, or another JSON value.")

    def _member_twice(self, span: Span, first: Span) -> None:
        line = self.text.count("\n", 0, first.start) + 1
        self.problems.append(
            SourceProblem(
                "duplicate-member",
                span,
                "This member is there twice in one object, so its meaning is ambiguous.",
                f"Keep one of them; the first stands in line {line}.",
            )
        )

    def _skip(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _take(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        if character in "}]:" and self.text.startswith(("//", "/*", "#"), self.at):
            self._refuse("A comment is not JSON.", "Remove the comment.")
        return False

    def _refuse(self, message: str, cure: str) -> NoReturn:
        word = _WORD.match(self.text, self.at)
        end = word.end() if word else min(self.at + 1, len(self.text))
        raise SourceProblem("not-json", Span(self.at, end), message, cure)
