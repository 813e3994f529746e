"""The front end: a document's bytes to a registration, or to everything that is wrong with it, in one run."""

from __future__ import annotations

import posixpath
import re

from attrs import evolve, frozen

from ahp_compile.diagnostics import Diagnostic, DocumentError, Severity, in_order
from ahp_compile.problems import Problems
from ahp_compile.registration import Registration
from ahp_compile.source import Node, Number, Object, Source, SourceProblem, Span, decode, parse
from ahp_compile.versions import WIRE_VERSIONS

_PLAIN_VERSION = re.compile(r"[A-Za-z0-9._-]{1,32}")


@frozen
class Reading:
    """What a document says: the registration, None when there is an error; the diagnostics in order; and the text itself."""

    registration: Registration | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source


def read(name: str, raw: bytes, *, base_dir: str | None = None, strict: bool = False) -> Reading:
    """Read a document. ``name`` is what messages call it.

    ``base_dir`` (absolute) fixes what relative commands and cwds are relative to; ``strict`` makes warnings errors. Never
    raises for what is in the document. Raises ValueError for a base_dir that is not absolute.
    """
    if base_dir is not None and not posixpath.isabs(base_dir):
        raise ValueError("--base-dir must be an absolute path")
    try:
        source = decode(name, raw)
    except SourceProblem as problem:
        return Reading(None, (_diagnostic(problem),), Source(name, raw.decode("utf-8", "replace")[: problem.span.end + 1]))
    problems = Problems(source, base_dir)
    registration = _read_text(source, problems)
    return _reading(registration, problems, strict=strict)


def read_registration(name: str, raw: bytes, *, base_dir: str | None = None, strict: bool = False) -> Registration:
    """The registration of a document. Raises DocumentError when it is invalid."""
    reading = read(name, raw, base_dir=base_dir, strict=strict)
    if reading.registration is None:
        raise DocumentError(reading.diagnostics)
    return reading.registration


def _read_text(source: Source, problems: Problems) -> Registration | None:
    if source.had_bom:
        message = "The document begins with a byte order mark; it is read without it."
        problems.warning("byte-order-mark", Span(0, 0), "", message, "Save the file as UTF-8 without a byte order mark.")
    try:
        root, found = parse(source)
    except SourceProblem as problem:
        problems.found.append(_diagnostic(problem))
        return None
    problems.found += [_diagnostic(one) for one in found]
    return _read_root(root, problems)


def _read_root(root: Node, problems: Problems) -> Registration | None:
    holder = problems.of_type(root, Object, "")
    if holder is None:
        return None
    version = problems.required(holder, Span(root.span.start, root.span.start + 1), "", "protocolVersion")
    if version is None:
        # Without a version the rules of the only one we know still tell what else is wrong.
        known = next(iter(WIRE_VERSIONS.values())) if len(WIRE_VERSIONS) == 1 else None
        return known.read(holder, problems) if known else None
    supported = WIRE_VERSIONS.get(version.value.value) if isinstance(version.value.value, str) else None
    if supported is None:
        _refuse_version(version.value, problems)
        return None
    return supported.read(holder, problems)


def _refuse_version(node: Node, problems: Problems) -> None:
    supported = ", ".join(f'"{one}"' for one in WIRE_VERSIONS)
    value = node.value
    if isinstance(value, str) and _PLAIN_VERSION.fullmatch(value):
        found = f'This document is of protocol version "{value}"'
    elif isinstance(value, Number) and len(value.text) < 12:
        found = f"The protocol version is the number {value.text} here, and must be a string"
    else:
        found = "This is no protocol version that is known"
    message = f"{found}; supported is {supported}."
    problems.error("unsupported-version", node.span, "protocolVersion", message, f"Write a document of version {supported}.")


def _reading(registration: Registration | None, problems: Problems, *, strict: bool) -> Reading:
    found = problems.found
    if strict:
        found = [evolve(one, severity=Severity.ERROR) for one in found]
    invalid = any(one.severity is Severity.ERROR for one in found)
    return Reading(None if invalid else registration, in_order(found), problems.source)


def _diagnostic(problem: SourceProblem) -> Diagnostic:
    return Diagnostic(problem.code, Severity.ERROR, problem.span, "", problem.message, problem.cure)
