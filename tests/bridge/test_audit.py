"""The local audit: private, rotated, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ahp_compile.bridge import audit
from ahp_compile.bridge.audit import Audit, path_in


def test_entries_are_lines_in_a_file_of_the_users_own(tmp_path: Path) -> None:
    one = Audit(tmp_path / "state" / "audit.jsonl")
    one.write({"a": "ü"})
    one.write({"b": 1})
    assert [json.loads(line) for line in one.path.read_text().splitlines()] == [{"a": "ü"}, {"b": 1}]
    assert one.path.stat().st_mode & 0o777 == 0o600
    assert one.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_full_file_makes_way_and_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_LIMIT_BYTES", 100)
    one = Audit(tmp_path / "audit.jsonl")
    for number in range(60):
        one.write({"number": number, "filler": "x" * 20})
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3"]
    assert all(path.stat().st_size < 200 for path in files)
    assert json.loads(one.path.read_text().splitlines()[-1])["number"] == 59
    newest_old = json.loads((tmp_path / "audit.jsonl.1").read_text().splitlines()[-1])["number"]
    assert newest_old < 59


def test_an_audit_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    Audit(tmp_path / "file" / "audit.jsonl").write({"a": 1})


def test_the_place_follows_from_the_plan_or_the_user_and_not_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")
    assert path_in("/srv/state") == Path("/srv/state/audit.jsonl")
    assert not str(path_in(None)).startswith("/nowhere")
