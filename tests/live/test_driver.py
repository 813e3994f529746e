"""The driver itself: without a hook a scripted call runs, and a hook written by hand in the harness's own words stops it.

Nothing of the compiler takes part here, so a failure is one of the driver, of the release or of what is known about it.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.live import drive
from tests.live.drive import Place
from tests.live.install import Release
from tests.live.mock_model import Call, MockModel

pytestmark = pytest.mark.live

REASON = "the hand-written hook says no"
PLUGIN = f"""
def deny(**facts):
    return {{"action": "block", "message": {REASON!r}}}


def register(ctx):
    ctx.register_hook("pre_tool_call", deny)
"""


def deny_by_hand(release: Release, place: Place) -> None:
    """Write a hook that denies every tool call, as the harness's own documentation would have it."""
    script = place.home / "deny.sh"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\necho {shlex.quote(REASON)} >&2\nexit 2\n")
    script.chmod(0o755)
    command = shlex.quote(str(script))
    match release.target:
        case "claude-code":
            entry = {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 30}]}
            (place.config_home / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
        case "codex":
            table = f"[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = {json.dumps(command)}\n"
            (place.config_home / "config.toml").write_text(f"{table}timeout = 30\n", encoding="utf-8")
        case _:
            plugin = place.config_home / "plugins" / "by-hand"
            plugin.mkdir(parents=True)
            (plugin / "plugin.yaml").write_text("name: by-hand\nversion: '1'\ndescription: denies\n")
            (plugin / "__init__.py").write_text(PLUGIN)
            (place.config_home / "config.yaml").write_text("plugins: {enabled: [by-hand]}\n")


def go(release: Release, place: Place, *turns: list[Call], **options: object) -> tuple[MockModel, drive.Run]:
    """Run the release on a script; Codex takes hooks that nobody has trusted yet."""
    if release.target == "codex":
        options = {"bypass_trust": True} | options
    with MockModel(turns) as model:
        run = drive.run(release.target, release.executable, model, place, **options)
    assert run.status == 0, run.words
    return model, run


def shell_turn(release: Release, command: str) -> list[Call]:
    return [drive.shell_call(release.target, command)]


def test_without_a_hook_every_turn_of_the_script_is_run(release: Release, place: Place) -> None:
    model, run = go(release, place, shell_turn(release, "touch first"), shell_turn(release, "echo told-to-the-model"))
    assert (place.project / "first").exists(), run.words
    first, second = model.tool_results().values()
    assert "told-to-the-model" not in first[0]
    assert "told-to-the-model" in second[0]
    assert "done" in run.stdout


def test_a_hook_written_by_hand_stops_the_call_and_the_model_is_told_why(release: Release, place: Place) -> None:
    deny_by_hand(release, place)
    model, run = go(release, place, shell_turn(release, "touch ran"))
    assert not (place.project / "ran").exists()
    ((told,),) = model.tool_results().values()
    assert REASON in told, run.words


def test_two_calls_of_one_turn_are_both_run(release: Release, simple_place: Place) -> None:
    calls = [*shell_turn(release, "touch one"), *shell_turn(release, "touch two")]
    model, run = go(release, simple_place, calls)
    assert (simple_place.project / "one").exists(), run.words
    assert (simple_place.project / "two").exists(), run.words
    assert len(model.tool_results()) == 2


@pytest.mark.parametrize("denied", [False, True])
def test_three_megabytes_of_arguments_arrive_whole(release: Release, simple_place: Place, tmp_path: Path, denied: bool) -> None:
    if denied:
        deny_by_hand(release, simple_place)
    call = drive.mcp_call(release.target)
    long = Call(call.name, json.dumps({"x": "y" * 3_000_000 + "\0"}), call.namespace)
    marker = tmp_path / "ran"
    model, run = go(release, simple_place, [long], mcp_server=drive.mcp_server(marker))
    assert marker.exists() is not denied, run.words
    assert (REASON in model.told()) is denied


@pytest.mark.parametrize("denied", [False, True])
def test_codex_in_code_mode(codex: Release, simple_place: Place, denied: bool) -> None:
    if denied:
        deny_by_hand(codex, simple_place)
    call = drive.shell_call("codex", "touch ran", code_mode=True)
    model, run = go(codex, simple_place, [call], model_name="gpt-6.2-sol")
    assert (simple_place.project / "ran").exists() is not denied, run.words
    assert (REASON in model.told()) is denied


def test_codex_runs_no_hook_that_nobody_trusted_and_says_so_when_asked(codex: Release, simple_place: Place) -> None:
    deny_by_hand(codex, simple_place)
    (entry,) = drive.codex_hooks(codex.executable, simple_place)["data"]
    (hook,) = entry["hooks"]
    assert hook["trustStatus"] == "untrusted"
    assert hook["currentHash"].startswith("sha256:")
    _, run = go(codex, simple_place, shell_turn(codex, "touch ran"), bypass_trust=False)
    assert (simple_place.project / "ran").exists(), run.words
