"""The whole emitted command: guard, client, daemon, backends, as a harness starts it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ahp_compile.registration import Event, FailurePolicy, Lifecycle, Observe, Registration
from tests.bridge.installed import (
    PAYLOAD,
    Installed,
    backend,
    http_backend,
    install,
    log,
    processes,
    until,
)
from tests.bridge.test_wire_matrix import served

UNAVAILABLE = "A required policy backend is unavailable."
FAIL_OPEN, FAIL_CLOSED = FailurePolicy.FAIL_OPEN, FailurePolicy.FAIL_CLOSED
CANARY = "canary-7f3a"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home of mine"
    folder.mkdir()
    return folder


@pytest.fixture
def running() -> Iterator[list[Installed]]:
    """Whatever is put here is stopped at the end, and must leave nothing behind."""
    found: list[Installed] = []
    yield found
    for one in found:
        one.stop()
        assert one.children() == []


def put(running: list[Installed], home: Path, *backends: Any) -> Installed:
    installed = install(home, Registration("0.1", backends))
    running.append(installed)
    return installed


def test_no_objection_is_the_harnesses_own_neutral_answer(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one"), backend(home, "two", lifecycle=Lifecycle.PER_EVENT))
    for _ in range(2):
        seen = one.call()
        assert (seen.status, seen.stdout, seen.stderr) == (0, b"", b"")
    assert one.daemon()
    first, second = log(home, "one")
    assert first["pid"] == second["pid"]
    assert first["params"]["event"]["id"] == first["id"] != second["id"]
    assert first["params"]["capabilities"] == {"effects": ["deny"]}
    tool = first["params"]["event"]["tool"]
    assert tool == {"callId": "toolu_1", "name": "Bash", "kind": "shell", "input": {"command": "ls"}}
    assert first["params"]["event"]["source"].startswith("urn:uuid:")
    assert first["params"]["event"]["source"] == second["params"]["event"]["source"]
    assert "native" not in first["params"]["event"]


def test_the_daemon_and_its_backends_have_nothing_of_the_hooks(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one"))
    hostile = {"ACME_TOKEN": CANARY, "PYTHONPATH": "/tmp/evil", "HTTPS_PROXY": "http://evil", "SSL_CERT_FILE": "/evil"}
    one.call(environment=hostile)
    pid = one.daemon()
    assert Path(f"/proc/{pid}/environ").read_bytes().rstrip(b"\0") == b"LANG=C.UTF-8"
    assert {os.readlink(f"/proc/{pid}/fd/{n}") for n in (0, 1, 2)} == {"/dev/null"}
    assert os.getsid(pid) != os.getsid(0)
    (entry,) = log(home, "one")
    assert entry["environment"] == ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "USER"]
    assert entry["cwd"] == "/"


def test_a_denial_stops_the_chain_and_its_reason_is_unchanged(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one"), backend(home, "two", "deny"), backend(home, "three"))
    seen = one.call()
    assert seen.denied
    assert seen.reason == "No: ü “quoted” 🚫"
    assert len(log(home, "one")) == len(log(home, "two")) == 1
    assert log(home, "three") == []
    entry = one.audit[-1]
    assert entry["verdict"] == "explicit_denial"
    assert [each["result"] for each in entry["asked"]] == ["no_effect", "explicit_deny"]
    assert "ls" not in json.dumps(entry)


@pytest.mark.parametrize("behaviour", ["dies", "garbage", "hang"])
@pytest.mark.parametrize("policy", FailurePolicy)
def test_a_failing_backend_follows_its_policy(
    behaviour: str, policy: FailurePolicy, home: Path, running: list[Installed]
) -> None:
    one = put(running, home, backend(home, "one", behaviour, policy=policy, deadline_ms=600), backend(home, "two"))
    seen = one.call()
    assert seen.denied is (policy is FAIL_CLOSED)
    if seen.denied:
        assert seen.reason == UNAVAILABLE
        assert one.audit[-1]["verdict"] == "synthetic_denial"
    assert len(log(home, "two")) == (0 if seen.denied else 1)


def _edited(one: Installed) -> None:
    one.plan.write_bytes(one.plan.read_bytes().replace(b"fail-closed", b"fail-open"))


BROKEN = {
    "plan edited": _edited,
    "plan missing": lambda one: one.plan.unlink(),
    "client missing": lambda one: next(one.plan.parent.glob("client-*")).unlink(),
    "client broken": lambda one: next(one.plan.parent.glob("client-*")).write_text("raise SystemExit(0)"),
    "client talks": lambda one: next(one.plan.parent.glob("client-*")).write_text("print('hello')"),
    "client is no Python": lambda one: next(one.plan.parent.glob("client-*")).write_text("("),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("policy", FailurePolicy)
def test_a_bridge_that_cannot_decide_ends_in_the_guards_verdict_soon(
    how: str, policy: FailurePolicy, home: Path, running: list[Installed]
) -> None:
    one = put(running, home, backend(home, "one", policy=policy))
    BROKEN[how](one)
    seen = one.call()
    assert seen.denied is (policy is FAIL_CLOSED)
    assert seen.stderr == b""
    # The client gives up at once instead of waiting for the end of its budget, which is 18.5 s here.
    assert seen.took_ms < 15_000
    if seen.denied:
        assert seen.reason == UNAVAILABLE
    else:
        assert (seen.status, seen.stdout) == (0, b"")


@pytest.mark.parametrize("who", ["client", "daemon"])
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_frozen_or_killed_bridge_ends_in_the_guards_verdict(
    who: str, how: signal.Signals, home: Path, running: list[Installed]
) -> None:
    one = put(running, home, backend(home, "one", "hang", deadline_ms=1500, lifecycle=Lifecycle.PER_EVENT))
    assert one.call().denied
    (home / "one.log").unlink()
    process = one.start()
    assert process.stdin is not None
    process.stdin.write(json.dumps(PAYLOAD).encode())
    process.stdin.close()
    process.stdin = None
    until(lambda: log(home, "one"))
    clients = [pid for pid, words in processes().items() if one.digest in words and "-S" in words and "sh" not in words[0]]
    pids = one.daemons() if who == "daemon" else [pid for pid in clients if "timeout" not in processes()[pid][0]]
    assert pids
    for pid in pids:
        os.kill(pid, how)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert UNAVAILABLE.encode() in stdout
    assert stderr == b""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_parallel_calls_to_one_persistent_backend_are_all_judged_one_at_a_time(
    home: Path, running: list[Installed], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seven calls wait longer for their turn than the deadline is; each is still asked and answered.
    one = put(running, home, backend(home, "one", "late", deadline_ms=4000))
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: one.call(), range(8)))
    assert [each.status for each in seen] == [0] * 8
    entries = log(home, "one")
    assert len(entries) == 8
    times = sorted(each["time"] for each in entries)
    assert all(later - earlier >= 0.7 for earlier, later in itertools.pairwise(times))
    assert len({each["pid"] for each in entries}) == 1


def test_a_slow_start_of_a_backend_is_not_its_answering_time(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one", "slow_start", deadline_ms=900))
    assert one.call().status == 0
    assert one.call().status == 0


def test_observers_are_told_once_in_order_and_delay_nothing(home: Path, running: list[Installed]) -> None:
    observes = Observe((Event.TOOL_BEFORE, Event.TOOL_AFTER, Event.TOOL_ERROR), include_native=True)
    one = put(running, home, backend(home, "one"), backend(home, "eye", "gated_observer", observes=observes))
    one.call(PAYLOAD)
    before = one.call(PAYLOAD | {"tool_use_id": "toolu_2"})
    after = one.call(PAYLOAD | {"hook_event_name": "PostToolUse", "tool_use_id": "toolu_2", "tool_response": {"stdout": "x"}})
    error = one.call(PAYLOAD | {"hook_event_name": "PostToolUseFailure", "tool_use_id": "toolu_1", "error": "no"})
    for seen in (before, after, error):
        assert (seen.status, seen.stdout, seen.stderr) == (0, b"", b"")
    # The observer is still busy with its first event: nobody waited for it.
    assert len(log(home, "eye")) <= 1
    (home / "eye.log.gate").touch()
    until(lambda: len(log(home, "eye")) == 4)
    told = [entry["params"]["event"] for entry in log(home, "eye")]
    assert [(each["type"], each["tool"]["callId"]) for each in told] == [
        ("tool.before", "toolu_1"),
        ("tool.before", "toolu_2"),
        ("tool.after", "toolu_2"),
        ("tool.error", "toolu_1"),
    ]
    assert all(entry["id"] is None and entry["method"] == "hooks/observe" for entry in log(home, "eye"))
    assert told[2]["tool"]["output"] == {"stdout": "x"}
    assert told[3]["tool"]["error"] == {"message": "no"}
    assert told[0]["native"]["eventName"] == "PreToolUse"
    assert len({each["id"] for each in told}) == 4


def test_the_token_is_in_the_authorization_header_and_nowhere_else(home: Path, running: list[Installed]) -> None:
    (home / "server").mkdir()
    with served("no_effect", home / "server") as url:
        one = put(running, home, backend(home, "one"), http_backend(url, token="ACME_TOKEN"))
        assert one.call(environment={"ACME_TOKEN": CANARY, "OTHER": "x"}).status == 0
        for pid, words in processes().items():
            assert not any(CANARY in word for word in words), pid
        for pid in (one.daemon(), *one.children()):
            assert CANARY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        # A token that was changed meanwhile is the one that is sent.
        assert one.call(environment={"ACME_TOKEN": "rotated-1"}).status == 0
        assert one.call(environment={"ACME_TOKEN": ""}).denied
        assert one.call().denied
    entries = [json.loads(line) for line in (home / "server/http.log").read_text().splitlines()]
    assert [entry["headers"]["Authorization"] for entry in entries] == [f"Bearer {CANARY}", "Bearer rotated-1"]
    assert CANARY not in json.dumps([entry["params"] for entry in entries])
    (home / "server/http.log").unlink()
    for path in home.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path
    assert one.audit[-1]["asked"][-1]["failure"] == "credential_unusable"


def test_a_hostile_environment_changes_nothing(home: Path, running: list[Installed], tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    (evil / "ahp_compile").mkdir(parents=True)
    for name in ("sitecustomize.py", "ahp_compile/__init__.py", "json.py", "posix.py"):
        (evil / name).write_text("print('ahp-proceed-1'); raise SystemExit(0)")
    for name in ("timeout", "python3", "sh", "printf"):
        (evil / name).write_text("#!/bin/sh\necho ahp-proceed-1\n")
        (evil / name).chmod(0o755)
    hostile = {
        "PATH": str(evil),
        "PYTHONPATH": str(evil),
        "PYTHONHOME": str(evil),
        "PYTHONSTARTUP": str(evil / "json.py"),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "SSL_CERT_FILE": str(evil / "none"),
        "HOME": str(evil),
        "XDG_RUNTIME_DIR": str(evil),
        "TMPDIR": str(evil),
        "LD_LIBRARY_PATH": str(evil),
    }
    one = put(running, home, backend(home, "one", "deny"))
    seen = one.call(environment=hostile)
    assert seen.denied
    assert seen.reason.startswith("No:")
    assert len(log(home, "one")) == 1


@pytest.mark.parametrize(
    "tool_input",
    [
        {"content": "x" * 5_000_000},
        {"note": "\ud800", "nul": "\0", "emoji": "🚫", "cjk": "ポリシー"},
        {"nested": json.loads("[" * 100 + "]" * 100)},
        {},
        {"number": 1.5, "big": 10**3000, "exponent": 1e300},
    ],
    ids=["large", "unicode", "nested", "empty", "numbers"],
)
def test_any_input_arrives_as_it_is(tool_input: dict[str, Any], home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one"))
    assert one.call(PAYLOAD | {"tool_input": tool_input}).status == 0
    (entry,) = log(home, "one")
    assert entry["params"]["event"]["tool"]["input"] == tool_input


def test_an_input_too_deep_to_be_read_is_asked_about(home: Path, running: list[Installed]) -> None:
    # The backend's own reader gives up on it, and that failure is its policy's to judge.
    for policy, denied in ((FAIL_OPEN, False), (FAIL_CLOSED, True)):
        folder = home / policy.value
        folder.mkdir()
        one = put(running, folder, backend(folder, "one", policy=policy))
        raw = json.dumps(PAYLOAD).replace('"ls"', '{"a":' * 20_000 + "1" + "}" * 20_000).encode()
        assert one.call(raw).denied is denied
        assert one.audit[-1]["asked"][0]["result"] == "operational_failure"


def test_numbers_that_json_has_not_are_asked_about_as_text(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one", "deny", policy=FAIL_OPEN))
    raw = json.dumps(PAYLOAD).replace('"ls"', "[1e999, -1e999, NaN, " + "9" * 5000 + "]").encode()
    assert one.call(raw).denied
    (entry,) = log(home, "one")
    assert entry["params"]["event"]["tool"]["input"] == {"command": ["inf", "-inf", "nan", "9" * 5000]}


@pytest.mark.parametrize("payload", [b"", b"null", b"{", b'{"hook_event_name": "PreToolUse"}', b"\xff"])
@pytest.mark.parametrize("policy", FailurePolicy)
def test_a_payload_that_cannot_be_read_is_the_guards(
    payload: bytes, policy: FailurePolicy, home: Path, running: list[Installed]
) -> None:
    one = put(running, home, backend(home, "one", policy=policy))
    assert one.call(payload).denied is (policy is FAIL_CLOSED)
    assert log(home, "one") == []


def test_a_daemon_that_is_idle_ends_and_leaves_nothing(home: Path) -> None:
    from ahp_compile.bridge import client

    one = install(home, Registration("0.1", (backend(home, "one"),)))
    folder = client.runtime_folder()
    assert folder is not None
    address = f"{folder}/test-{os.getpid()}.sock"
    words = [sys.executable, "-I", "-m", "ahp_compile.bridge.daemon", "--plan", str(one.plan), "--digest", one.digest]
    pid = os.posix_spawn(words[0], [*words, "--socket", address, "--idle-s", "0.5"], {"LANG": "C.UTF-8"}, setsid=True)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    assert os.path.exists(address)
    assert os.stat(address).st_mode & 0o777 == 0o600
    assert os.stat(folder).st_mode & 0o777 == 0o700
    until(lambda: not one.daemons())
    assert not os.path.exists(address)
    assert one.children() == []
    for left in Path(folder).glob(f"test-{os.getpid()}.sock*"):
        left.unlink()


def test_killing_everything_while_calls_run_gives_no_wrong_verdict(home: Path, running: list[Installed]) -> None:
    one = put(
        running,
        home,
        backend(home, "one", policy=FAIL_OPEN),
        backend(home, "two", "deny", lifecycle=Lifecycle.PERSISTENT),
    )
    one.call()
    chance = random.Random(7)
    stop = threading.Event()

    def kill_now_and_then() -> None:
        while not stop.wait(chance.uniform(0.05, 0.4)):
            victims = [*one.daemons(), *one.children()]
            clients = [pid for pid, words in processes().items() if one.digest in words and any("client-" in w for w in words)]
            for pid in chance.sample([*victims, *clients], min(1, len(victims) + len(clients))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(lambda _: one.call(), range(200)))
    finally:
        stop.set()
        killer.join()
    # A guard whose own shell is killed is the harness's to judge; everything else must be a denial.
    ends = {each.status for each in seen}
    assert 0 not in ends
    assert sum(each.denied for each in seen) >= 100
    until(lambda: one.call().denied)
    pid = one.daemon()
    before = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    for _ in range(20):
        assert one.call().denied
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) <= before + 1


def test_where_no_socket_can_be_kept_a_process_of_its_own_judges(home: Path, running: list[Installed], tmp_path: Path) -> None:
    import subprocess

    one = put(
        running,
        home,
        backend(home, "one", lifecycle=Lifecycle.PER_EVENT),
        backend(home, "two", policy=FAIL_OPEN),
        backend(home, "three", "deny", lifecycle=Lifecycle.PER_EVENT),
    )
    words = [sys.executable, "-I", "-m", "ahp_compile.bridge.once", "--plan", str(one.plan), "--digest", one.digest]
    words += ["--event", "tool.before", "--budget-ms", "9000", "--guard", "deny"]
    done = subprocess.run(words, input=json.dumps(PAYLOAD).encode(), capture_output=True, check=False)
    assert done.returncode == 77
    assert b"No: " in done.stdout
    # A persistent backend is an operational failure there, and no process.
    assert log(home, "two") == []
    assert one.audit[-1]["asked"][1]["failure"] == "launch_failed"
    words[words.index("--digest") + 1] = "0" * 64
    assert subprocess.run(words, input=b"{}", capture_output=True, check=False).returncode == 71


def test_the_socket_folder_is_ours_alone_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ahp_compile.bridge import client

    monkeypatch.setattr(client, "_RUN", str(tmp_path / "run"))
    monkeypatch.setattr(client, "_TMP", str(tmp_path / "tmp"))
    assert client.runtime_folder() is None
    (tmp_path / "tmp").mkdir()
    folder = tmp_path / "tmp" / f"ahp-compile-{os.getuid()}"
    assert client.runtime_folder() == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    assert client.runtime_folder() is None
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert client.runtime_folder() is None
    folder.unlink()
    folder.write_text("")
    assert client.runtime_folder() is None
    (tmp_path / "run" / str(os.getuid())).mkdir(parents=True)
    assert client.runtime_folder() == str(tmp_path / "run" / str(os.getuid()) / "ahp-compile")


def test_a_socket_that_lies_there_from_before_is_replaced(home: Path, running: list[Installed]) -> None:
    one = put(running, home, backend(home, "one"))
    one.call()
    pid = one.daemon()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not one.daemons())
    time.sleep(0.1)
    assert one.call().status == 0
    assert one.daemon()
