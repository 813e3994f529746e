"""Diagnostics: what is wrong with a document, where, and what to do about it, without ever showing what could be a secret."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum

from attrs import frozen

from ahp_compile.source import Source, Span

CODES: Mapping[str, str] = {
    "document-too-large": "the document is larger than any registration needs to be",
    "not-utf-8": "the document is not UTF-8 (AHP-RPC-001)",
    "byte-order-mark": "the document begins with a byte order mark, which JSON does not have",
    "not-json": "the document is not strict JSON",
    "too-deep": "the document is nested deeper than any registration needs",
    "lone-surrogate": "a string holds half of a surrogate pair and cannot be written as UTF-8",
    "duplicate-member": "an object has a member twice, so its meaning is ambiguous (section 6.1)",
    "wrong-type": "a value has another type than the protocol says (section 19)",
    "missing-field": "a required field is not there (section 19)",
    "unsupported-version": "the document is of a protocol version that is not supported (AHP-VER-001)",
    "no-hooks": "the hooks array is empty (AHP-REG-001)",
    "bad-id": "a backend id is not reverse-DNS (section 19.2)",
    "duplicate-id": "two backends have the same id (section 19.2)",
    "unknown-word": "a value is none of the words that the protocol knows there (AHP-CORE-003)",
    "bad-command": "a command is empty, or cannot be passed to a program",
    "ambiguous-path": "a path is relative to nothing in particular (section 6.1)",
    "bad-url": "a URL is not absolute http or https with a host (section 18)",
    "insecure-url": "plain http to another machine (section 18.2)",
    "literal-credential": "a credential stands in the document (section 18.3)",
    "authentication-on-stdio": "authentication is for http only (section 19.4)",
    "bad-variable-name": "tokenEnv is no name of an environment variable (section 18.3)",
    "no-subscriptions": "a backend has no subscriptions (section 19.3)",
    "bad-events": "the events of a subscription are empty, double, or not allowed in its mode (section 19.3)",
    "bad-timeout": "timeoutMs is no positive integer (AHP-FAIL-002)",
    "decision-field-on-observe": "timeoutMs and failurePolicy are for intercept only (section 19.3)",
    "overlapping-subscription": "a backend subscribes twice to one event in one mode (section 13.3)",
    "unknown-field": "a field that protocol version 0.1 does not know; it is ignored (AHP-CORE-003)",
    "later-draft-field": "a field of a later draft whose meaning would be lost; it is ignored (AHP-CORE-003)",
}
"""Every code with what it means and the rule it rests on."""


class Severity(StrEnum):
    """Whether the document is invalid, or only not quite what its author may think."""

    ERROR = "error"
    WARNING = "warning"


@frozen
class Diagnostic:
    """One problem: its stable code, where it is, the path of what it is about, one plain sentence, and a cure."""

    code: str
    severity: Severity
    span: Span
    path: str
    message: str
    cure: str


class DocumentError(Exception):
    """The document is invalid. ``diagnostics`` say why."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(one.message for one in diagnostics))
        self.diagnostics = diagnostics


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By where they stand in the document."""
    return tuple(sorted(diagnostics, key=lambda one: (one.span.start, one.span.end, one.code)))


def render(diagnostics: Iterable[Diagnostic], source: Source, *, excerpt: bool) -> str:
    """One paragraph each; with ``excerpt`` also the line of the document with a caret, what could be a secret masked."""
    return "".join(_render_one(one, source, excerpt=excerpt) for one in in_order(diagnostics))


def _render_one(diagnostic: Diagnostic, source: Source, *, excerpt: bool) -> str:
    position = source.position(diagnostic.span.start)
    place = f"{_printable(source.name)}:{position.line}:{position.column}"
    path = f"at {diagnostic.path}: " if diagnostic.path else ""
    lines = [f"{place}: {diagnostic.severity}[{diagnostic.code}]: {path}{diagnostic.message}", f"  cure: {diagnostic.cure}"]
    if excerpt:
        lines[1:1] = _excerpt(source, diagnostic.span)
    return "\n".join(lines) + "\n"


_WIDTH = 100
_VOCABULARY = frozenset(
    {
        *("protocolVersion", "hooks", "id", "transport", "authentication", "subscriptions"),
        *(
            "type",
            "stdio",
            "http",
            "command",
            "args",
            "lifecycle",
            "persistent",
            "per_event",
            "cwd",
            "url",
            "bearer",
            "tokenEnv",
        ),
        *(
            "events",
            "mode",
            "intercept",
            "observe",
            "timeoutMs",
            "failurePolicy",
            "fail-open",
            "fail-closed",
            "includeNative",
            "tokenEnv",
        ),
        *("tool.before", "tool.after", "tool.error", "session.start", "session.end", "true", "false", "null", "0.1"),
    }
)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|([\s\[\]{},:\']+|")|([^\s\[\]{},:"\']+)', re.DOTALL)
_SHORT_NUMBER = re.compile(r"-?[0-9]{1,7}(\.[0-9]{1,3})?")


def _excerpt(source: Source, span: Span) -> list[str]:
    position = source.position(span.start)
    line = source.line(position.line)
    masked = _mask(line)
    first = max(0, position.column - 1 - _WIDTH // 2)
    shown = masked[first : first + _WIDTH]
    before = shown[: position.column - 1 - first]
    length = max(1, min(span.end - span.start, len(shown) - len(before)))
    # The caret's line repeats tabs and widens for wide characters, so that it stands under what it means.
    padding = "".join("\t" if one == "\t" else " " * _columns(one) for one in before)
    carets = "^" * max(1, sum(_columns(one) for one in shown[len(before) : len(before) + length]))
    number = f"{position.line:>5} | "
    return [f"{number}{_printable(shown)}", f"{' ' * (len(number) - 2)}| {padding}{carets}"]


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _mask(line: str) -> str:
    """The line with everything hidden that is neither structure, a member's name, a word of the protocol nor a short number."""

    def hide(found: re.Match[str]) -> str:
        string, colon, structure, word = found.groups()
        if structure is not None or colon is not None:
            return found[0]
        shown = string if word is None else word
        if shown not in _VOCABULARY and not (word is not None and _SHORT_NUMBER.fullmatch(word)):
            shown = "•" * len(shown)
        return shown if word is not None else f'"{shown}"'

    return _TOKEN.sub(hide, line)


def _printable(text: str) -> str:
    return "".join(one if one == "\t" or one.isprintable() else "�" for one in text)
