"""Reading native hooks back: words to an invocation of the bridge, and a guard to a table of outcomes.

Nothing here is shared with the emitting side, constants included, so that a mistake there is not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ahp_compile import shell
from ahp_compile.engine import Behaviour, Invocation, ProcessAnswer
from ahp_compile.shell import Ending, Program
from ahp_compile.target import Codec, LiftError

REASONS: Mapping[Behaviour, str] = {
    Behaviour.DENIES: "Deleting the archive is not allowed.",
    Behaviour.DENIES_AWKWARDLY: 'It\'s "no": $HOME `id` $(id) 100% %s \\n \\\\ ;|&\nzweite Zeile: ü, ポリシー, 🚫',
    Behaviour.DENIES_BLANK: " \t ",
}
"""What a stand-in backend says when a table of outcomes is made."""

_STATUS: Mapping[Behaviour, tuple[int, bytes]] = {
    Behaviour.PROCEEDS: (0, b"ahp-proceed-1\n"),
    Behaviour.DENIES_IN_BLANKS: (77, b" \t "),
    Behaviour.DENIES_SILENTLY: (77, b""),
    Behaviour.SILENT_SUCCESS: (0, b""),
    Behaviour.GARBAGE_SUCCESS: (0, b"Traceback (most recent call last)\n"),
    Behaviour.TOKEN_AFTER_NOISE: (0, b"warning\nahp-proceed-1\n"),
    Behaviour.TOKEN_BEFORE_NOISE: (0, b"ahp-proceed-1\nahp-proceed-1\n"),
    Behaviour.TOKEN_ON_FAILURE: (1, b"ahp-proceed-1\n"),
    Behaviour.EXITS_1: (1, b""),
    Behaviour.EXITS_2: (2, b""),
    Behaviour.EXITS_2_TALKING: (2, b"can't open file\n"),
    Behaviour.EXITS_3: (3, b""),
    Behaviour.EXITS_70: (70, b""),
    Behaviour.EXITS_71: (71, b""),
    Behaviour.EXITS_255: (255, b""),
    Behaviour.NOT_EXECUTABLE: (126, b""),
    Behaviour.MISSING: (127, b""),
    Behaviour.INTERRUPTED: (130, b""),
    Behaviour.KILLED: (137, b""),
    Behaviour.SEGFAULT: (139, b""),
    Behaviour.ALARMED: (142, b""),
    Behaviour.TERMINATED: (143, b""),
}

_ENDING: Mapping[Behaviour, Ending] = {
    Behaviour.HANGS: Ending.HANGS,
    Behaviour.FROZEN: Ending.HANGS_IGNORING_TERM,
    Behaviour.LEAVES_CHILD: Ending.EXITS_HOLDING_STDOUT,
}


def program(behaviour: Behaviour, codec: Codec) -> Program:
    """A stand-in for the bridge that shows one behaviour; a denial is printed as the codec words it."""
    if behaviour in REASONS:
        return Program(77, codec.deny(REASONS[behaviour]))
    if behaviour in _ENDING:
        return Program(1, ends=_ENDING[behaviour])
    status, stdout = _STATUS[behaviour]
    return Program(status, stdout)


def read_command_line(line: str, codec: Codec) -> tuple[Invocation, Mapping[Behaviour, ProcessAnswer]]:
    """Reduce a shell line to the bridge's invocation and a table of what the harness sees for each behaviour of the bridge.

    Raises LiftError when the line is outside the understood subset, or does not start exactly one bridge in every case.
    """
    started: set[tuple[tuple[str, ...], ...]] = set()
    answers = {}
    for behaviour in Behaviour:
        result = _run(line, program(behaviour, codec))
        exported = [name for name in result.assigned if name != name.lower()]
        if exported:
            raise LiftError(f"a hook's command line sets {exported[0]}, which the bridge could inherit")
        started.add(result.invocations)
        answers[behaviour] = ProcessAnswer(
            result.exit_status, result.stdout, result.stderr, result.holds_output, result.bound_ms or 0
        )
    return read_words(_only_words(started)), answers


def _run(line: str, stand_in: Program) -> shell.Result:
    try:
        return shell.run(line, lambda words: stand_in)
    except shell.ShellUnsupported as error:
        raise LiftError(f"the command line of a hook cannot be read back: {error}") from error


def read_exec_form(words: Sequence[str], codec: Codec) -> tuple[Invocation, Mapping[Behaviour, ProcessAnswer]]:
    """The same for a hook that the harness starts without a shell: nothing stands between the bridge and the harness."""
    answers = {}
    for behaviour in Behaviour:
        stand_in = program(behaviour, codec)
        ends = stand_in.ends not in (Ending.HANGS, Ending.HANGS_IGNORING_TERM)
        answers[behaviour] = ProcessAnswer(
            stand_in.exit_status if ends else None,
            stand_in.stdout,
            holds_output=stand_in.ends is Ending.EXITS_HOLDING_STDOUT,
        )
    return read_words(words), answers


def _only_words(started: set[tuple[tuple[str, ...], ...]]) -> tuple[str, ...]:
    if len(started) != 1:
        raise LiftError("a hook's command line does not always start the same programs")
    (programs,) = started
    if len(programs) != 1:
        raise LiftError(f"a hook's command line starts {len(programs)} programs instead of one bridge")
    return programs[0]


def read_words(words: Sequence[str]) -> Invocation:
    """Read the bridge's command line. Raises LiftError for any other words than the contract's, in its order."""
    flags = ("--plan", "--digest", "--event", "--budget-ms", "--guard")
    if len(words) != 4 + 2 * len(flags) or list(words[1:3]) != ["-I", "-S"] or tuple(words[4::2]) != flags:
        raise LiftError("a hook does not start the bridge with the words of its contract")
    plan, digest, event, budget, guard = words[5::2]
    if not (budget.isascii() and budget.isdigit()):
        raise LiftError("a hook's --budget-ms is not a number")
    return Invocation(words[0], words[3], plan, digest, event, int(budget), guard)


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For json.loads' ``object_pairs_hook``: the object, or a LiftError when it has a member twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise LiftError("a JSON object has a member twice")
    return members
