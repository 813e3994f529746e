"""Running a parsed line in a simulated world, where an oracle says how each external program behaves."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from enum import Enum

from attrs import define, evolve, field, frozen

from ahp_compile.shell.syntax import (
    Case,
    Command,
    Group,
    If,
    Literal,
    Not,
    Redirection,
    Script,
    ShellUnsupported,
    Simple,
    Substitution,
    Variable,
    Word,
    parse,
)

_SPLITTING = set(" \t\n*?[\\")
_SHELLS = ("/bin/sh", "sh", "/bin/bash", "bash")
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smh]?)")
_UNIT_MS = {"": 1000, "s": 1000, "m": 60_000, "h": 3_600_000}
_UNSUPPORTED_BUILTINS = {
    ".", "alias", "bg", "break", "cd", "command", "continue", "eval", "export", "fg", "getopts", "hash", "jobs", "kill",
    "local", "read", "readonly", "return", "set", "shift", "source", "times", "trap", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "wait", "builtin", "declare", "enable", "let", "shopt", "mapfile",
}  # fmt: skip


class Ending(Enum):
    """How an external program ends."""

    EXITS = "exits"
    HANGS = "hangs until SIGTERM"
    HANGS_IGNORING_TERM = "hangs and ignores SIGTERM"
    EXITS_HOLDING_STDOUT = "exits, and a child of its group holds its stdout for ever"


@frozen
class Program:
    """How one external program behaves; a death by signal is 128 and the signal's number."""

    exit_status: int = 0
    stdout: bytes = b""
    ends: Ending = Ending.EXITS


OWN_WORDS = b"(the shell's own words)\n"
"""Stands for what a shell itself says on stderr of a program that is missing or was killed; it names paths."""

Oracle = Callable[[tuple[str, ...]], Program]


@frozen
class Result:
    """What a harness would see of the line.

    ``exit_status`` is None when the line never ends by itself; ``holds_output`` says that a background child holds stdout or
    stderr after its end; ``bound_ms`` is how long timeouts that fired took; ``invocations`` are the words of each external
    program that was started; ``assigned`` are the variables that the line sets.
    """

    exit_status: int | None
    stdout: bytes
    stderr: bytes
    holds_output: bool
    bound_ms: int
    invocations: tuple[tuple[str, ...], ...]
    assigned: frozenset[str] = frozenset()


@define(eq=False)
class _Sink:
    """Where output goes; a pipe can be held by a child that outlives the program."""

    content: bytearray = field(factory=bytearray)
    held: bool = False
    is_null: bool = False


class _Exit(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Hang(Exception):
    """Something never ends; it does when something around it sends SIGTERM, unless it ignores that."""

    def __init__(self, *, ignores_term: bool) -> None:
        super().__init__()
        self.ignores_term = ignores_term


@define
class _World:
    oracle: Oracle
    invocations: list[tuple[str, ...]] = field(factory=list)
    assigned: set[str] = field(factory=set)
    bound_ms: int = 0


@define
class _Shell:
    """One shell process: its variables, positional parameters, last status and descriptors."""

    world: _World
    sinks: dict[int, _Sink]
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(factory=dict)
    status: int = 0

    def child(self) -> _Shell:
        """A copy for a subshell; what it changes stays its own."""
        return evolve(self, sinks=dict(self.sinks), variables=dict(self.variables))

    def run(self, script: Script) -> int:
        """Run to the end of the script or to its exit."""
        try:
            self.execute(script)
        except _Exit as ended:
            self.status = ended.status
        return self.status

    def execute(self, script: Script) -> None:
        """Run the commands of a list."""
        for operator, command in script.steps:
            if (operator == "&&" and self.status != 0) or (operator == "||" and self.status == 0):
                continue
            self._command(command)

    def _command(self, command: Command) -> None:
        match command:
            case Simple():
                self.status = self._simple(command)
            case Not():
                self._command(command.command)
                self.status = 0 if self.status else 1
            case If():
                self._if(command)
            case Case():
                self._case(command)
            case Group(subshell=True):
                self.status = self.child().run(command.body)
            case Group():
                self.execute(command.body)

    def _if(self, command: If) -> None:
        self.execute(command.condition)
        if self.status == 0:
            self.status = 0
            self.execute(command.then)
        elif command.otherwise is not None:
            self.execute(command.otherwise)
        else:
            self.status = 0

    def _case(self, command: Case) -> None:
        value = self._expand(command.word)
        for patterns, body in command.arms:
            if any(pattern is None or pattern == value for pattern in patterns):
                self.execute(body)
                return
        self.status = 0

    def _simple(self, command: Simple) -> int:
        words = [field for word in command.words for field in self._fields(word)]
        if not words:
            return self._assign(command)
        name, *rest = words
        sinks = _redirected(self.sinks, command.redirections)
        if name == "exec":
            if not rest:
                self.sinks = sinks
                return 0
            raise _Exit(self._start(rest, sinks))
        if name == "exit":
            raise _Exit(self._exit_status(rest))
        if name in _BUILTINS:
            status = _BUILTINS[name](rest, sinks.get(1))
            return self._speak(status, sinks) if status != 0 and name in ("printf", "echo") else status
        if name in _UNSUPPORTED_BUILTINS:
            raise ShellUnsupported(f"the builtin {name}")
        return self._start(words, sinks)

    def _assign(self, command: Simple) -> int:
        if command.redirections and not command.assignments:
            return 0
        for name, word in command.assignments:
            self.variables[name] = self._expand(word)
            self.world.assigned.add(name)
        # An assignment's status is that of its last substitution, else 0; until then $? is that of the command before.
        substitutes = any(isinstance(part, Substitution) for _, word in command.assignments for part in word.parts)
        return self.status if substitutes else 0

    def _exit_status(self, words: list[str]) -> int:
        if not words:
            return self.status
        if len(words) > 1 or not words[0].isascii() or not words[0].isdigit() or int(words[0]) > 255:
            raise ShellUnsupported("an exit with something else than a status")
        return int(words[0])

    def _fields(self, word: Word) -> list[str]:
        """The words that one word becomes: none for an empty unquoted expansion, several for "$@"."""
        if [part for part in word.parts if part != Literal("", quoted=True)] == [Variable("@", quoted=True)]:
            return list(self.arguments)
        text, exists = "", False
        for part in word.parts:
            if isinstance(part, Variable) and part.name == "@":
                raise ShellUnsupported('"$@" as a part of a word')
            value = self._part(part)
            if not part.quoted and not isinstance(part, Literal) and _SPLITTING & set(value):
                raise ShellUnsupported("an unquoted expansion that the shell would split")
            exists = exists or part.quoted or bool(value)
            text += value
        return [text] if exists else []

    def _expand(self, word: Word) -> str:
        """A word where no splitting happens: an assignment's value, or what a case looks at."""
        if any(isinstance(part, Variable) and part.name == "@" for part in word.parts):
            raise ShellUnsupported('"$@" where one word is wanted')
        return "".join(self._part(part) for part in word.parts)

    def _part(self, part: Literal | Variable | Substitution) -> str:
        match part:
            case Literal():
                return part.text
            case Variable(name="?"):
                return str(self.status)
            case Variable():
                return self.variables.get(part.name, "")
            case Substitution():
                return self._substitute(part)

    def _substitute(self, part: Substitution) -> str:
        pipe = _Sink()
        shell = self.child()
        shell.sinks[1] = pipe
        self.status = shell.run(part.script)
        if pipe.held:
            # The shell reads to the end of the pipe, which never comes.
            raise _Hang(ignores_term=False)
        if b"\0" in pipe.content:
            raise ShellUnsupported("NUL in what a substitution reads")
        return bytes(pipe.content).decode("utf-8", "surrogateescape").rstrip("\n")

    def _start(self, words: Sequence[str], sinks: dict[int, _Sink]) -> int:
        """Start an external program: a timeout and a shell are understood, all others are the oracle's."""
        if posixpath.basename(words[0]) == "timeout" and words[0] in ("timeout", posixpath.normpath(words[0])):
            return self._timeout(words[1:], sinks)
        if words[0] in _SHELLS:
            return self._nested(words[1:], sinks)
        self.world.invocations.append(tuple(words))
        program = self.world.oracle(tuple(words))
        _write(sinks.get(1), program.stdout)
        if program.ends in (Ending.HANGS, Ending.HANGS_IGNORING_TERM):
            raise _Hang(ignores_term=program.ends is Ending.HANGS_IGNORING_TERM)
        if program.ends is Ending.EXITS_HOLDING_STDOUT and 1 in sinks:
            sinks[1].held = True
        return self._speak(program.exit_status, sinks) if program.exit_status > 125 else program.exit_status

    def _speak(self, status: int, sinks: dict[int, _Sink]) -> int:
        """The shell tells of what it could not run, of deaths, and of output that it cannot write.

        Some do so on the stderr of the command, some on their own.
        """
        for sink in {id(one): one for one in (sinks.get(2), self.sinks.get(2)) if one is not None}.values():
            _write(sink, OWN_WORDS)
        return status

    def _nested(self, words: Sequence[str], sinks: dict[int, _Sink]) -> int:
        if len(words) < 2 or words[0] != "-c":
            raise ShellUnsupported("a shell that is started in another way than with -c")
        shell = _Shell(self.world, dict(sinks), tuple(words[3:]))
        try:
            return shell.run(parse(words[1]))
        except _Hang as hang:
            # The shell in between waits, and dies of SIGTERM whatever its child does.
            raise _Hang(ignores_term=False) from hang

    def _timeout(self, words: Sequence[str], sinks: dict[int, _Sink]) -> int:
        kill_ms, limit_ms, command = _timeout_words(list(words))
        try:
            return self._start(command, sinks)
        except _Hang as hang:
            if limit_ms == 0 or (hang.ignores_term and not kill_ms):
                raise
            self.world.bound_ms += limit_ms + (kill_ms or 0 if hang.ignores_term else 0)
            return self._speak(137, sinks) if hang.ignores_term else 124


def _timeout_words(words: list[str]) -> tuple[int | None, int, list[str]]:
    kill_ms = None
    if words and words[0] in ("-k", "--kill-after"):
        kill_ms = _milliseconds(words[1] if len(words) > 1 else "")
        words = words[2:]
    elif words and words[0].startswith("--kill-after="):
        kill_ms = _milliseconds(words[0].partition("=")[2])
        words = words[1:]
    if len(words) < 2 or words[0].startswith("-"):
        raise ShellUnsupported("a timeout with other options than -k")
    return kill_ms, _milliseconds(words[0]), words[1:]


def _milliseconds(duration: str) -> int:
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ShellUnsupported("a duration that timeout may not take")
    return round(float(found[1]) * _UNIT_MS[found[2]])


def _redirected(sinks: dict[int, _Sink], redirections: Sequence[Redirection]) -> dict[int, _Sink]:
    """The descriptors after the redirections, which take effect from left to right."""
    changed = dict(sinks)
    for one in redirections:
        if one.target == "/dev/null":
            changed[one.descriptor] = _Sink(is_null=True)
        elif one.target == "&-":
            changed.pop(one.descriptor, None)
        else:
            source = int(one.target[1:])
            if source not in changed:
                raise ShellUnsupported("a redirection to a descriptor that is closed")
            changed[one.descriptor] = changed[source]
    return changed


def _write(sink: _Sink | None, content: bytes) -> bool:
    if sink is None:
        return not content
    if not sink.is_null:
        sink.content += content
    return True


def _printf(words: list[str], sink: _Sink | None) -> int:
    if not words:
        raise ShellUnsupported("a printf without a format")
    form, arguments = words[0], words[1:]
    text = ""
    while True:
        piece, arguments, consumed = _format_once(form, arguments)
        text += piece
        if not arguments or not consumed:
            break
    return 0 if _write(sink, text.encode("utf-8", "surrogateescape")) else 1


def _format_once(form: str, arguments: list[str]) -> tuple[str, list[str], bool]:
    pieces = re.split(r"(%.?|\\.?)", form, flags=re.DOTALL)
    text, consumed = "", False
    for piece in pieces:
        if piece == "%s":
            text += arguments[0] if arguments else ""
            arguments, consumed = arguments[1:], True
        elif piece == "%%":
            text += "%"
        elif piece == "\\n":
            text += "\n"
        elif piece[:1] in ("%", "\\") and piece:
            raise ShellUnsupported("a printf format other than %s")
        else:
            text += piece
    return text, arguments, consumed


def _echo(words: list[str], sink: _Sink | None) -> int:
    if any("\\" in word for word in words) or (words and words[0].startswith("-")):
        raise ShellUnsupported("an echo that shells disagree on")
    return 0 if _write(sink, (" ".join(words) + "\n").encode("utf-8", "surrogateescape")) else 1


def _test(words: list[str], sink: _Sink | None) -> int:
    match words:
        case [left, "=", right]:
            holds = left == right
        case [left, "!=", right]:
            holds = left != right
        case [left, ("-eq" | "-ne") as operator, right] if _is_number(left) and _is_number(right):
            holds = (int(left) == int(right)) == (operator == "-eq")
        case ["-n", text]:
            holds = text != ""
        case ["-z", text]:
            holds = text == ""
        case _:
            raise ShellUnsupported("a test other than =, !=, -eq, -ne, -n and -z")
    return 0 if holds else 1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _bracket(words: list[str], sink: _Sink | None) -> int:
    if words[-1:] != ["]"]:
        raise ShellUnsupported("a [ without its ]")
    return _test(words[:-1], sink)


_BUILTINS: dict[str, Callable[[list[str], _Sink | None], int]] = {
    "printf": _printf,
    "echo": _echo,
    "test": _test,
    "[": _bracket,
    ":": lambda words, sink: 0,
    "true": lambda words, sink: 0,
    "false": lambda words, sink: 1,
}


def run(line: str, oracle: Oracle) -> Result:
    """Run a line as ``sh -c`` would, with the oracle in place of every external program but timeout and the shell itself.

    Raises ShellUnsupported for a line outside the subset, or one on which dash and bash could differ.
    """
    world = _World(oracle)
    out, err = _Sink(), _Sink()
    shell = _Shell(world, {0: _Sink(is_null=True), 1: out, 2: err})
    script = parse(line)
    status: int | None
    try:
        status = shell.run(script)
    except _Hang:
        status = None
    return Result(
        status,
        bytes(out.content),
        bytes(err.content),
        out.held or err.held,
        world.bound_ms,
        tuple(world.invocations),
        frozenset(world.assigned),
    )
