"""Environment templates: which variables a registration needs, without ever assigning one.

An assignment, an empty one above all, would override the real token where a harness loads such files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")
_MENTION = re.compile(r"^#\s*([A-Za-z_][A-Za-z0-9_]*)\b")
NAME = "env.example"


def template(variables: Iterable[tuple[str, str]]) -> bytes:
    """One commented line for each (variable, what it is for)."""
    return "".join(f"# {name}: {purpose}\n" for name, purpose in variables).encode()


def is_template(path: str) -> bool:
    """Whether a file is an environment template by its name."""
    return path.rsplit("/", 1)[-1] == NAME


def assigned_names(content: bytes) -> tuple[str, ...]:
    """Variables that a file would set if it were loaded."""
    return tuple(found[1] for line in _lines(content) if (found := _ASSIGNMENT.match(line)))


def mentioned_names(content: bytes) -> frozenset[str]:
    """Variables that a template's comments name."""
    return frozenset(found[1] for line in _lines(content) if (found := _MENTION.match(line)))


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").splitlines()
