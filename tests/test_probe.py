"""Trying a registration out from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ahp_compile import cli
from ahp_compile.bridge import client

BACKEND = str(Path(__file__).parents[1] / "examples/backend.py")


def document(tmp_path: Path, word: str) -> str:
    chain = {"events": ["tool.before"], "mode": "intercept", "timeoutMs": 2000}
    hooks = [
        {
            "id": "com.example.gone",
            "transport": {"type": "http", "url": "http://127.0.0.1:9/"},
            "subscriptions": [{**chain, "failurePolicy": "fail-open"}],
        },
        {
            "id": "com.example.kept",
            "transport": {
                "type": "stdio",
                "command": sys.executable,
                "args": [BACKEND, "persistent", word],
                "lifecycle": "persistent",
            },
            "subscriptions": [{**chain, "failurePolicy": "fail-closed"}, {"events": ["tool.after"], "mode": "observe"}],
        },
    ]
    path = tmp_path / "registration.json"
    path.write_text(json.dumps({"protocolVersion": "0.1", "hooks": hooks}))
    return str(path)


@pytest.mark.parametrize("name", ["claude-code", "codex", "hermes"])
@pytest.mark.parametrize(("word", "verdict"), [("ls", "explicit_denial"), ("rm", "no_objection")])
def test_each_backends_answer_is_shown(
    name: str, word: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["probe", document(tmp_path, word), "--target", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{name}, tool.before: {verdict}; exit ")
    assert "com.example.gone                 operational_failure" in out
    assert "failure connection_failed, policy fail-open" in out
    assert ("explicit_deny" in out) is (word == "ls")
    assert ("may not be used with" in out) is (word == "ls")


def test_a_payload_of_ones_own_and_observed_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text(
        json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "rm"}})
    )
    path = document(tmp_path, "rm")
    assert cli.main(["probe", path, "--target", "claude-code", "--payload", str(payload)]) == 0
    assert "explicit_denial" in capsys.readouterr().out
    assert cli.main(["probe", path, "--target", "claude-code", "--event", "tool.after"]) == 0
    assert "handed over; exit 0" in capsys.readouterr().out
    assert cli.main(["probe", path, "--target", "claude-code", "--event", "session.end"]) == 2
    assert "no hook for session.end" in capsys.readouterr().err


def test_nothing_is_left_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(client.runtime_folder() or "")
    before = {one.name for one in folder.glob("*.sock")}
    cli.main(["probe", document(tmp_path, "ls"), "--target", "codex"])
    assert {one.name for one in folder.glob("*.sock")} <= before
