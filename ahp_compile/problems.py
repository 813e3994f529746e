"""Collecting the problems of a document while it is read, and the questions that every rule asks of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from attrs import define, field

from ahp_compile.diagnostics import Diagnostic, Severity
from ahp_compile.source import Member, Node, Number, Object, Source, Span

T = TypeVar("T")

_TYPE_NAMES: Mapping[type, str] = {
    Object: "an object",
    list: "an array",
    str: "a string",
    Number: "a number",
    bool: "true or false",
    type(None): "null",
}


@define
class Problems:
    """What was found in one document so far. ``base_dir`` is what relative paths in it are relative to, if that was said."""

    source: Source
    base_dir: str | None = None
    found: list[Diagnostic] = field(factory=list)

    def error(self, code: str, span: Span, path: str, message: str, cure: str) -> None:
        """Note something that makes the document invalid."""
        self.found.append(Diagnostic(code, Severity.ERROR, span, path, message, cure))

    def warning(self, code: str, span: Span, path: str, message: str, cure: str) -> None:
        """Note something that is allowed, and perhaps not meant."""
        self.found.append(Diagnostic(code, Severity.WARNING, span, path, message, cure))

    def line_of(self, span: Span) -> int:
        """The line that something begins in, for a message that points at it."""
        return self.source.position(span.start).line

    def required(self, holder: Object, at: Span, path: str, name: str) -> Member | None:
        """A member that must be there; None after noting that it is not."""
        member = holder.get(name)
        if member is None:
            self.error("missing-field", at, path, f"The required field {name} is not there.", f"Add {name}.")
        return member

    def of_type(self, node: Node, kind: type[T], path: str) -> T | None:
        """The node's value if it has that type; None after noting that it has not."""
        if isinstance(node.value, kind):
            return node.value
        wanted, found = _TYPE_NAMES[kind], _TYPE_NAMES[type(node.value)]
        self.error("wrong-type", node.span, path, f"This must be {wanted}, and is {found}.", f"Write {wanted}.")
        return None

    def word(self, node: Node, path: str, known: Iterable[str]) -> str | None:
        """One of the words that the protocol knows here; None after noting that it is none."""
        words = tuple(known)
        value = self.of_type(node, str, path)
        if value is None or value in words:
            return value
        near = difflib.get_close_matches(value, words, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        self.error(
            "unknown-word", node.span, path, f"This is none of: {', '.join(words)}.{hint}", f"Write one of: {', '.join(words)}."
        )
        return None

    def unknown_fields(self, holder: Object, path: str, known: Iterable[str], others: Mapping[str, str]) -> None:
        """Warn of each member that is ignored. ``others`` says, of names that mean something elsewhere, what."""
        names = tuple(known)
        for member in holder.members:
            if member.name not in names:
                self._unknown_field(member, f"{path}.{member.name}" if path else member.name, names, others)

    def _unknown_field(self, member: Member, path: str, names: tuple[str, ...], others: Mapping[str, str]) -> None:
        if member.name in LATER_DRAFT:
            message = f"{member.name} is a field of a later draft and is ignored: {LATER_DRAFT[member.name]}"
            self.warning("later-draft-field", member.span, path, message, "Remove it, or do not rely on it.")
            return
        near = difflib.get_close_matches(member.name, names, 1)
        if member.name in others:
            hint = f" {others[member.name]}"
        elif near:
            hint = f" Did you mean {near[0]}?"
        elif member.name.lower() in _CREDENTIAL_NAMES:
            hint = " Credentials do not belong in this document: name a variable in authentication.tokenEnv."
        else:
            hint = ""
        self.warning(
            "unknown-field", member.span, path, f"This field is not known and is ignored.{hint}", "Remove or correct it."
        )


LATER_DRAFT: Mapping[str, str] = {
    "filters": "the backend is asked about every tool and path, not only those that it names.",
    "headers": "the requests carry no such headers.",
    "env": "the backend's process gets no such variables.",
    "content": "no content is left out of events or added to them.",
    "upload": "no content is uploaded.",
    "scope": "the registration is not bound to a scope by it.",
    "disableable": "it does not keep anybody from disabling the backend.",
}
"""Fields of the later draft that would change what the document means, and what is lost without them."""

_CREDENTIAL_NAMES = frozenset({"secret", "password", "apikey", "api_key", "token", "bearertoken", "credential", "credentials"})
