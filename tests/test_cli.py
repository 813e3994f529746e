"""The command line, as its users meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ahp_compile import cli

EXAMPLE = Path(__file__).parents[1] / "examples/registration.json"
PLACE = ["--home", "/home/ada", "--bridge", "/opt/ahp/bin/python3"]


def run(*arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        status = cli.main([str(one) for one in arguments])
    except SystemExit as ended:
        status = int(ended.code or 0)
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.parametrize("name", ["claude-code", "hermes"])
def test_the_example_compiles(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(EXAMPLE, "--target", name, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert (status, err) == (0, "")
    assert f"{name} (" in out
    assert "equivalent against failure" in out
    manifest = json.loads((tmp_path / "out/ahp-compile.json").read_bytes())
    assert {one["name"] for one in manifest["files"]} == {
        str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*") if one.is_file()
    } - {"ahp-compile.json"}


def test_a_hole_refuses_until_it_is_closed_or_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ("-o", tmp_path / "out", *PLACE)
    status, out, _ = run(EXAMPLE, "--target", "codex", *here, capsys=capsys)
    assert status == 3
    for code in ("enforcement.write-stdin", "enforcement.web-search", "enforcement.code-mode"):
        assert f"{code} (subscription)" in out
    assert not (tmp_path / "out").exists()
    status, out, _ = run(EXAMPLE, "--target", "codex", "--close", "all", *here, capsys=capsys)
    assert status == 3
    assert "enforcement.web-search" not in out
    accepting = ("--close", "all", "--accept", "enforcement.code-mode")
    status, out, _ = run(EXAMPLE, "--target", "codex", *accepting, *here, "--report", "text", capsys=capsys)
    assert status == 0
    assert "except for what was accepted: enforcement.code-mode" in out
    assert "[NOT ACTIVE UNTIL TRUSTED]" in out
    assert "unified_exec_tty = false" in (tmp_path / "out/config.toml").read_text()
    status, out, _ = run(EXAMPLE, "--target", "codex", *accepting, *here, "--trust-our-hook", capsys=capsys)
    assert status == 0
    assert "NOT ACTIVE" not in out


def test_accepting_one_kind_never_accepts_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_observers = EXAMPLE.with_name("with-observers.json")
    accepted = [f"--accept=enforcement.{one}" for one in ("write-stdin", "web-search", "code-mode")]
    status, out, _ = run(with_observers, "--target", "codex", "-o", tmp_path / "out", *accepted, *PLACE, capsys=capsys)
    assert status == 3
    assert "observation.tool-error" in out
    assert "observation.write-stdin" in out
    assert "enforcement.write-stdin (" not in out


def test_an_invalid_document_names_its_problems_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(EXAMPLE.read_text().replace("750", '"750"').replace("persistent", "for ever"))
    status, out, err = run(broken, "--target", "all", "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert (status, out) == (1, "")
    assert err.count("error[") == 2
    assert f"{broken}:" in err
    assert not (tmp_path / "out").exists()


def test_warnings_are_errors_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(EXAMPLE.read_text().replace('"mode"', '"filters": {}, "mode"', 1))
    status, _, err = run(odd, "--target", "claude-code", "-o", tmp_path / "a", *PLACE, capsys=capsys)
    assert status == 0
    assert "warning[later-draft-field]" in err
    status, _, err = run(odd, "--target", "claude-code", "-o", tmp_path / "b", "--strict", *PLACE, capsys=capsys)
    assert status == 1
    assert "error[later-draft-field]" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nobody"], "there is no target 'nobody'"),
        (["--target", "claude-code", "--home", "here"], "absolute"),
        (["--target", "claude-code", "--scope", "project"], "--project"),
        (["--target", "hermes", "--scope", "managed"], "hermes has no managed scope; it offers: user"),
        (["--target", "claude-code", "--close", "enforcement.none"], "no native switch of claude-code closes enforcement.none"),
        (["--target", "claude-code", "--os", "windows"], "enforcement.no-guard"),
        (["--target", "all", "-o", "-"], "one target"),
        (["--target", "hermes", "-o", "-"], "-o needs a folder"),
        (["--target", "claude-code", "--base-dir", "x"], "absolute"),
        (["--target", "claude-code", "--against", "user"], "invalid choice"),
        ([], "--target"),
    ],
)
def test_wrong_usage_is_status_2_with_a_reason(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run(EXAMPLE, *PLACE, *arguments, capsys=capsys)
    assert status == 2
    assert words in err


def test_a_missing_document_and_a_foreign_file_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(tmp_path / "none.json", "--target", "claude-code", capsys=capsys)
    assert status == 5
    assert "none.json" in err
    (tmp_path / "settings.json").write_text('{"mine": true}')
    status, _, err = run(EXAMPLE, "--target", "claude-code", "-o", tmp_path, *PLACE, capsys=capsys)
    assert status == 5
    assert "was not written by ahp-compile" in err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["settings.json"]


@pytest.mark.parametrize(("party", "status"), [("failure", 0), ("repository", 3), ("agent", 3)])
def test_against_whom_decides_which_premises_are_holes(
    party: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, _ = run(EXAMPLE, "--target", "claude-code", "--against", party, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert found == status
    assert f"against {party}" in out
    assert ("enforcement.hooks-switched-off" in out) is (party != "failure")
    assert ("enforcement.same-user" in out) is (party == "agent")


def test_managed_scope_takes_premises_out_of_the_repositorys_hands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    managed = ("--scope", "managed", "--against", "repository")
    status, out, _ = run(EXAMPLE, "--target", "claude-code", *managed, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert status == 3
    assert "hooks-switched-off" not in out
    assert "foreign-rewrite" not in out
    assert "enforcement.token-replaced" in out
    accepted = ("--accept", "enforcement.token-replaced", "--accept", "enforcement.hook-environment")
    status, out, _ = run(EXAMPLE, "--target", "claude-code", *managed, *accepted, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert status == 0
    settings = json.loads((tmp_path / "out/managed-settings.json").read_bytes())
    assert settings["allowManagedHooksOnly"] is True
    assert "--plan /etc/ahp-compile/plan-" in settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]


def test_codex_managed_scope_pins_the_hooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accepted = [f"--accept=enforcement.{one}" for one in ("write-stdin", "web-search", "code-mode")]
    managed = ("--scope", "managed", *accepted)
    status, out, _ = run(EXAMPLE, "--target", "codex", *managed, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert (status, "NOT ACTIVE" in out) == (0, False)
    text = (tmp_path / "out/requirements.toml").read_text()
    assert "hooks = true" in text
    assert "allow_managed_hooks_only = true" in text


@pytest.mark.parametrize(("name", "status"), [("claude-code", 0), ("codex", 3), ("hermes", 0)])
def test_a_frozen_bridge_is_a_named_hole_where_nothing_bounds_it(
    name: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = [f"--accept=enforcement.{one}" for one in ("write-stdin", "web-search", "code-mode")]
    found, out, _ = run(EXAMPLE, "--target", name, "--os", "macos", *accepted, "-o", tmp_path / "out", *PLACE, capsys=capsys)
    assert found == status
    assert ("enforcement.frozen-bridge (guard)" in out) is (status == 3)


def test_one_native_file_goes_to_stdout(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main([str(EXAMPLE), "--target", "claude-code", "-o", "-", *PLACE]) == 0
    told = capsysbinary.readouterr()
    assert set(json.loads(told.out)) == {"hooks"}
    assert b"equivalent" in told.err


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_report_holds_every_obligation_with_its_evidence(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(EXAMPLE, "--target", "claude-code", "--report", form, "-o", tmp_path / "o", *PLACE, capsys=capsys)
    assert status == 0
    for word in ("order", "backstop", "guard", "deny", "no escalation", "credential", "2.1.332", "2026-12-01"):
        assert word in out
    if form == "json":
        document = json.loads(out)
        assert document["equivalent"] is True
        assert len(document["obligations"]) == 12
        assert all(one["sentence"] for one in document["premises"])


def test_a_note_tells_of_an_acceptance_that_names_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(
        EXAMPLE, "--target", "claude-code", "--accept", "enforcement.wrong", "-o", tmp_path / "o", *PLACE, capsys=capsys
    )
    assert "--accept enforcement.wrong names nothing" in out


@pytest.mark.parametrize("name", ["claude-code", "codex", "hermes"])
def test_bytes_follow_from_document_target_and_options_alone(name: str, tmp_path: Path) -> None:
    found = []
    for seed, locale, home in (("0", "C", "/nowhere"), ("4711", "C.UTF-8", str(tmp_path))):
        folder = tmp_path / f"seed {seed}"
        folder.mkdir()
        words = [sys.executable, "-m", "ahp_compile", str(EXAMPLE), "--target", name, "-o", "out", *PLACE, "--trust-our-hook"]
        words += ["--accept=enforcement.code-mode", *(["--close=all"] if name == "codex" else [])]
        environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed, "LC_ALL": locale, "HOME": home, "TZ": f"X{seed[0]}"}
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
        files = sorted(one for one in (folder / "out").rglob("*") if one.is_file())
        found.append({str(one.relative_to(folder)): one.read_bytes() for one in files})
    assert found[0] == found[1]
    assert len(found[0]) >= 5
