"""The guard as it is emitted: what the reader says of it is what dash and bash really do, for each behaviour of the bridge."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from ahp_compile import shell as reader
from ahp_compile import target
from ahp_compile.engine import Behaviour, ProcessAnswer
from ahp_compile.lifting import REASONS, program, read_command_line
from ahp_compile.placement import Os, Placement
from ahp_compile.plan import Timing, lower
from ahp_compile.registration import FailurePolicy, Registration
from ahp_compile.target import BridgeFiles, Request
from tests import real_shell
from tests.support import one_interceptor, only_observers

COMMAND_TARGETS = ("claude-code", "codex")
AWKWARD = 'it\'s a "test" $HOME `id` ü ポリシー; * \\ &'
QUICK = Timing(start_ms=1200, kill_ms=200, max_parallel=1)
CHAINS = {
    "fail-closed": one_interceptor(FailurePolicy.FAIL_CLOSED, 100),
    "fail-open": one_interceptor(FailurePolicy.FAIL_OPEN, 100),
    "observed": only_observers(),
}


def request_for(name: str, registration: Registration, folder: Path, os: Os = Os.LINUX) -> Request:
    plan = lower(registration, name, search_path="/usr/bin:/bin", timing=QUICK)
    placement = Placement(home="/home/ada", bridge=str(folder / "python3"), os=os)
    return Request(plan, placement, BridgeFiles(f"{folder}/client.py", f"{folder}/plan;.json", "ab" * 32))


def emitted_line(name: str, request: Request) -> str:
    (artifact,) = target.load(name).emit(request)
    if name == "codex":
        entry = tomllib.loads(artifact.content.decode())["hooks"]["PreToolUse"][0]["hooks"][0]
    else:
        entry = json.loads(artifact.content)["hooks"]["PreToolUse"][0]["hooks"][0]
    return str(entry["command"])


@pytest.mark.parametrize("shell", real_shell.SHELLS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", COMMAND_TARGETS)
def test_the_table_is_what_a_real_shell_does(name: str, chain: str, shell: str, tmp_path: Path) -> None:
    assert shutil.which(real_shell.SHELLS[shell]), f"{shell} is needed for this test"
    folder = tmp_path / AWKWARD
    folder.mkdir()
    request = request_for(name, CHAINS[chain], folder)
    line = emitted_line(name, request)
    codec = target.load(name).codec
    invocation, answers = read_command_line(line, codec)
    for behaviour in Behaviour:
        real_shell.install(folder / "python3", behaviour, codec)
        seen = real_shell.run(shell, line, folder / "python3")
        answer = answers[behaviour]
        assert isinstance(answer, ProcessAnswer)
        expected = (answer.exit_status, answer.stdout, answer.stderr)
        assert (seen.exit_status, seen.stdout, seen.stderr) == expected, behaviour
        if behaviour not in (Behaviour.MISSING, Behaviour.NOT_EXECUTABLE):
            assert seen.words[0] == invocation.interpreter == request.placement.bridge
            assert seen.words[3] == invocation.client == request.bridge.client
            assert seen.words[5] == invocation.plan == request.bridge.plan


@pytest.mark.parametrize("name", COMMAND_TARGETS)
def test_without_a_watchdog_only_what_nothing_bounds_is_unbounded(name: str, tmp_path: Path) -> None:
    request = request_for(name, CHAINS["fail-closed"], tmp_path, Os.MACOS)
    line = emitted_line(name, request)
    assert "timeout" not in line
    codec = target.load(name).codec
    _, answers = read_command_line(line, codec)
    unbounded = {one for one, answer in answers.items() if isinstance(answer, ProcessAnswer) and answer.exit_status is None}
    assert unbounded == {Behaviour.HANGS, Behaviour.FROZEN, Behaviour.LEAVES_CHILD}
    for behaviour in set(Behaviour) - unbounded:
        real_shell.install(tmp_path / "python3", behaviour, codec)
        seen = real_shell.run("dash", line, tmp_path / "python3")
        answer = answers[behaviour]
        assert isinstance(answer, ProcessAnswer)
        assert (seen.exit_status, seen.stdout, seen.stderr) == (answer.exit_status, answer.stdout, answer.stderr), behaviour


WRONG = {
    "bare": "{bridge}",
    "or exit 2": "{bridge} || exit 2",
    "or a word on stderr": "{bridge} || {{ echo denied >&2; exit 2; }}",
    "exec": "exec {bridge}",
    "status only": "{bridge} >/dev/null; case $? in 0) exit 0;; *) exit 2;; esac",
    "output only": 'r=$({bridge}); if [ "$r" = ahp-proceed-1 ]; then exit 0; else exit 2; fi',
    "elif": 'r=$({bridge}); s=$?; if [ $s -eq 0 ]; then :; elif [ $s -eq 77 ]; then printf "%s|%s\\n" "$r" $s; else false; fi',
    "swapped streams": "{bridge} 3>&1 1>&2 2>&3",
    "silenced too late": "{bridge} 2>&1 >/dev/null",
    "negated": "! {bridge}; exit $?",
    "subshell": "( exit 3 ); s=$?; {{ {bridge} >/dev/null; }}; exit $s",
    "closed": "exec 1>&-; printf x; exit $?",
    "and or": "{bridge} >/dev/null && exit 9 || exit 8",
    "words": "{bridge} 'a b' \"c $HOME_NOT_SET d\" e\\ f '' $NOT_SET \"$NOT_SET\"",
}


@pytest.mark.parametrize("shell", real_shell.SHELLS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_guards_are_read_as_what_they_do(name: str, shell: str, tmp_path: Path) -> None:
    codec = target.load("codex").codec
    stand_in = tmp_path / "bridge"
    line = WRONG[name].format(bridge=str(stand_in))
    told = [*REASONS, Behaviour.PROCEEDS, Behaviour.SILENT_SUCCESS, Behaviour.EXITS_2_TALKING, Behaviour.KILLED]
    for behaviour in told:
        real_shell.install(stand_in, behaviour, codec)
        seen = real_shell.run(shell, line, stand_in)
        result = reader.run(line, lambda words, one=behaviour: program(one, codec))  # type: ignore[misc]
        status = seen.exit_status if seen.exit_status >= 0 else 128 - seen.exit_status
        told_words = tuple(one for one in result.invocations[:1]) or ((),)
        assert result.exit_status == status, behaviour
        for told, real in ((result.stdout, seen.stdout), (result.stderr, seen.stderr)):
            # What a shell says itself differs between shells; that it may say something must not be missed.
            assert told == real or reader.OWN_WORDS in told, behaviour
        assert told_words[0] == seen.words


@pytest.mark.parametrize("behaviour", REASONS)
@pytest.mark.parametrize("name", COMMAND_TARGETS)
def test_a_denial_is_told_in_the_backends_own_words(name: str, behaviour: Behaviour, tmp_path: Path) -> None:
    one = target.load(name)
    _, answers = read_command_line(emitted_line(name, request_for(name, CHAINS["fail-open"], tmp_path)), one.codec)
    answer = answers[behaviour]
    assert isinstance(answer, ProcessAnswer)
    assert answer.exit_status == 2
    if name == "codex":
        assert answer.stdout == b""
        assert REASONS[behaviour].strip() in answer.stderr.decode()
    else:
        told = json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
        assert told.strip()
        assert REASONS[behaviour].strip() in told
