"""The reader of shell lines: words, refusals, and the corners of its subset."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahp_compile.shell import OWN_WORDS, Ending, Program, Result, ShellUnsupported, run


def result(line: str, program: Program | None = None) -> Result:
    return run(line, lambda words: program or Program())


words = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), max_size=5)


@given(words)
def test_quoted_words_come_back_word_for_word(some: list[str]) -> None:
    line = shlex.join(["/opt/x", *some])
    assert result(line).invocations == (("/opt/x", *some),)


@given(words)
@settings(max_examples=25)
def test_quoted_words_are_what_real_shells_pass(some: list[str]) -> None:
    some = [one.replace("\r", "") for one in some]
    line = shlex.join(["printf", "%s\\n", *(f"<{one}>" for one in some), "end"])
    for shell in ("/bin/dash", "/bin/bash"):
        real = subprocess.run([shell, "-c", line], capture_output=True, check=True, env={"LANG": "C.UTF-8"})
        assert real.stdout == result(line).stdout


@pytest.mark.parametrize(
    "line",
    [
        "a | b", "a &", "a & b", "`a`", "x $((1+1))", "x <<E\nE", "f() { a; }", "for a in b; do c; done", "while a; do b; done",
        "until a; do b; done", "trap a TERM", "eval a", ". a", "set -e", "x > file", "x >> /dev/null", "x < in", "x 2>&y",
        "x *",        "x a?b", "x [ab]", "x ~/a", "x {a,b}", "x ${a:-b}", "x ${#a}", "x $1", "x $@", "x $$", "x $!", "x $#",
        "A=b x", "cd /",        "read a", "export A=b", "echo -n a", "echo 'a\\nb'", "printf %d 1", "printf '\\t'", "[ a -lt b ]", "[ a -a b ]", "[ a",
        "test", "sh -x -c a", "sh script", "bash -lc a", "timeout -s KILL 1 a", "timeout --foreground 1 a", "timeout x a",
        "timeout 1", "exit a", "exit 300", "exit 1 2", "if a; then b", "if a; fi", "case a in b) c", "{ a", "( a", "a)", "fi",
        "then", "'open", '"open', "a \\", "a;; b", "a &&", "|| a", "a |& b", "x $(a", 'x "$@"y', 'a="$@"', "[[ a ]]", "!",
        "# a",        "x >&9", "a\\\nb", "wait", "unset a", "local a", "command a", "time a", "x {a", "case a in a?) b;; esac",
        "if a; then b; fi c",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(line: str) -> None:
    with pytest.raises(ShellUnsupported):
        result(line)


def test_a_refusal_does_not_quote_the_line() -> None:
    for line in (
        "x canary > canary",
        "canary=1 x",
        "x `canary`",
        "x ${canary:-canary}",
        "exit canary",
        "timeout canary x",
        "x canary*",
    ):
        with pytest.raises(ShellUnsupported) as caught:
            result(line)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("value", ["a b", "a*", "[a]", "a\tb", "a\\b"])
def test_an_unquoted_expansion_that_would_be_split_is_refused(value: str) -> None:
    with pytest.raises(ShellUnsupported, match="split"):
        result(f"a={shlex.quote(value)}; x $a")
    assert result(f'a={shlex.quote(value)}; x "$a"').invocations == (("x", value),)
    assert result(f"a={shlex.quote(value)}; case $a in {shlex.quote(value)}) exit 4;; esac").exit_status == 4


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("", 0), ("exit 3", 3), ("false", 1), ("! false", 0), ("false; true", 0), ("true && false", 1), ("false || exit 5", 5),
        ("false && exit 5", 1), ("true || exit 5", 0), ("if false; then exit 1; fi", 0),
        ("if false; then :; else exit 6; fi", 6),        ("if false; then :; elif true; then exit 7; fi", 7),
        ("false; exit", 1), ("a=1; exit", 0), ("false; a=$?; exit $a", 1),
        ("a=$(exit 9); exit $?", 9), ("a=$(exit 9)b; b=1; exit $?", 0), ("( exit 4 ); exit $?", 4), ("{ exit 4; }; exit 5", 4),
        ("case 3 in 1|3) exit 8;; *) exit 9;; esac", 8), ("case x in y) exit 1;; esac", 0), ("false; case x in y) :;; esac", 0),
        ("[ a = a ] && [ a != b ] && [ -n a ] && [ -z '' ] && [ 07 -eq 7 ] && exit 11", 11), ("test a = b", 1),
        ("exec 1>&-; printf x", 1), ("exec 1>&-; printf ''", 0), ("exec exit", 0), ("sh -c 'exit 12'; exit $?", 12),
        ("/bin/sh -c '\"$@\"; exit 13' name x", 13), ("a=(", None), ("timeout 0 true", 0), ("timeout 5 sh -c 'exit 14'", 14),
    ],
)  # fmt: skip
def test_statuses_are_those_of_real_shells(line: str, status: int | None) -> None:
    if status is None:
        with pytest.raises(ShellUnsupported):
            result(line)
        return
    assert result(line).exit_status == status
    if "exec exit" in line or " x" in line.replace("printf x", "").replace("case x", "") or line.startswith("timeout 0"):
        return
    for shell in ("/bin/dash", "/bin/bash"):
        real = subprocess.run([shell, "-c", line], capture_output=True, check=False)
        assert real.returncode == status, shell


def test_timeouts_end_what_hangs_and_count() -> None:
    hangs, stubborn = Program(ends=Ending.HANGS), Program(ends=Ending.HANGS_IGNORING_TERM)
    assert result("x", hangs).exit_status is None
    assert result("timeout 2 x; exit $?", hangs) == Result(124, b"", b"", False, 2000, (("x",),))
    assert result("timeout 2 x", stubborn).exit_status is None
    assert result("timeout -k 0.5 2 x; exit $?", stubborn) == Result(137, b"", OWN_WORDS, False, 2500, (("x",),))
    assert result("timeout 0 x", hangs).exit_status is None
    # The shell in between dies of SIGTERM, whatever its child does.
    assert result("timeout 2 sh -c 'x; exit 1'; exit $?", stubborn).exit_status == 124


def test_a_child_that_holds_the_output() -> None:
    holds = Program(1, b"out", Ending.EXITS_HOLDING_STDOUT)
    assert result("x", holds).holds_output
    assert not result("x >/dev/null", holds).holds_output
    assert result("a=$(x); exit 3", holds).exit_status is None
    assert result("timeout 1 sh -c 'a=$(x); exit 3'; exit $?", holds).exit_status == 124
    assert result("a=$(timeout 1 x); exit 3", holds).exit_status is None


def test_redirections_take_effect_from_left_to_right() -> None:
    says = Program(0, b"out")
    assert (result("x 2>&1", says).stdout, result("x 2>&1", says).stderr) == (b"out", b"")
    assert result("x >&2", says).stderr == b"out"
    assert result("exec 3>&2 2>/dev/null; x >&3 3>&-; printf err >&2", says).stderr == b"out"
    assert result("x >/dev/null 2>&1; x 2>&1 >/dev/null", says).stdout == b""


def test_what_a_line_sets_is_told() -> None:
    assert result("a=1; B=2; c=$(d=3; x)").assigned == {"a", "B", "c", "d"}


def test_nul_in_a_substitution_is_refused() -> None:
    with pytest.raises(ShellUnsupported, match="NUL"):
        result("a=$(x)", Program(0, b"a\0b"))
