"""The local audit: what was decided and why, as JSON lines, without tokens and without what the tool was asked to do."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
from pathlib import Path
from typing import Any

from attrs import frozen

_LIMIT_BYTES = 5_000_000
_KEPT = 3


def path_in(state_dir: str | None) -> Path:
    """The audit of a state folder, or of the user's own; the environment, which a repository can set, does not move it."""
    folder = Path(state_dir) if state_dir else Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/state/ahp-compile"
    return folder / "audit.jsonl"


@frozen
class Audit:
    """Appends lines to one file, and begins a new one when it is full."""

    path: Path

    def write(self, entry: dict[str, Any]) -> None:
        """Append one entry. Never raises: an audit that cannot be written must not change a verdict."""
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._rotate()
            line = json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n"
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)

    def _rotate(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_size < _LIMIT_BYTES:
                return
            for number in range(_KEPT - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            os.replace(self.path, f"{self.path}.1")
