"""Running command lines under real shells, with a stand-in that behaves as one of the bridge's behaviours."""

from __future__ import annotations

import subprocess
from pathlib import Path

from attrs import frozen

from ahp_compile.engine import Behaviour
from ahp_compile.lifting import program
from ahp_compile.shell import Ending
from ahp_compile.target import Codec

SHELLS = {"dash": "/bin/dash", "bash": "/bin/bash"}
_SIGNALS = {130: "INT", 137: "KILL", 139: "SEGV", 142: "ALRM", 143: "TERM"}


@frozen
class Seen:
    """What a harness would see, and the words that the stand-in was started with."""

    exit_status: int
    stdout: bytes
    stderr: bytes
    words: tuple[str, ...]


def install(path: Path, behaviour: Behaviour, codec: Codec) -> None:
    """Write the stand-in to a path: it records its words, reads its input, and then behaves."""
    wanted = program(behaviour, codec)
    output, words = path.with_name("output"), path.with_name("words")
    output.write_bytes(wanted.stdout)
    words.unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    if behaviour is Behaviour.MISSING:
        return
    # "Frozen" is stood in for by ignoring SIGTERM: both end by SIGKILL alone.
    ends = {
        Ending.EXITS: "",
        Ending.HANGS: "exec sleep 5",
        Ending.HANGS_IGNORING_TERM: "trap '' TERM; exec sleep 5",
        Ending.EXITS_HOLDING_STDOUT: "sleep 5 &",
    }[wanted.ends]
    dies = f"kill -{_SIGNALS[wanted.exit_status]} $$" if wanted.exit_status in _SIGNALS else f"exit {wanted.exit_status}"
    folder = path.parent
    path.write_text(
        "#!/bin/sh\n"
        f'for word in "$0" "$@"; do printf \'%s\\0\' "$word"; done >\'{_quoted(folder)}/words\'\n'
        "cat >/dev/null\n"
        f"cat '{_quoted(folder)}/output'\n"
        f"{ends}\n{dies}\n"
    )
    path.chmod(0o644 if behaviour is Behaviour.NOT_EXECUTABLE else 0o755)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "'\\''")


def run(shell: str, line: str, stand_in: Path) -> Seen:
    """Run a line as a harness does, with a payload on standard input."""
    done = subprocess.run(
        [SHELLS[shell], "-c", line],
        input=b'{"tool_input": {"note": "\\ud800"}}' * 3,
        capture_output=True,
        timeout=20,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        check=False,
    )
    words = stand_in.with_name("words")
    found = words.read_bytes().split(b"\0")[:-1] if words.exists() else []
    return Seen(done.returncode, done.stdout, done.stderr, tuple(one.decode() for one in found))
