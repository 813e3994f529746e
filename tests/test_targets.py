"""Finding targets, their codecs, and that each has the same shape."""

from __future__ import annotations

import ast
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from ahp_compile import target
from ahp_compile.engine import EvidenceKind
from ahp_compile.registration import Event
from ahp_compile.target import TargetError
from tests.support import TARGETS

ROOT = Path(__file__).parents[1]


def test_the_bundled_targets_are_found_by_entry_point() -> None:
    assert set(TARGETS) <= set(target.names())
    for name in TARGETS:
        assert target.load(name).name == name


def _offer(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(target, "entry_points", lambda group: entries)


BROKEN: Any = None
OTHER_INTERFACE = evolve(target.load("codex"), name="other-interface", interface=99)
NAMED_OTHERWISE = target.load("codex")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("x", "no_such_module:TARGET", "does not load"),
        ("x", "tests.test_targets:NO_SUCH_NAME", "does not load"),
        ("x", "tests.test_targets:BROKEN", "is not a Target"),
        ("other-interface", "tests.test_targets:OTHER_INTERFACE", "interface 99"),
        ("x", "tests.test_targets:NAMED_OTHERWISE", "calls itself 'codex'"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_by_name(
    name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, EntryPoint(name, value, target.GROUP))
    with pytest.raises(TargetError, match=re.escape(value.partition(":")[0])) as caught:
        target.load(name)
    assert words in str(caught.value)


def test_two_plugins_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, EntryPoint("x", "a:A", target.GROUP), EntryPoint("x", "b:B", target.GROUP))
    with pytest.raises(TargetError, match="two plugins"):
        target.load("x")


@pytest.mark.parametrize("name", TARGETS)
def test_facts_have_evidence_and_ids_of_their_own(name: str) -> None:
    facts = target.load(name).engine.facts
    assert len({one.id for one in facts}) == len(facts)
    assert all(one.evidence.version and re.fullmatch(r"\d{4}-\d\d-\d\d", one.evidence.date) for one in facts)
    assert any(one.evidence.kind is EvidenceKind.RUN for one in facts)


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)} | {
        name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names
    }


@pytest.mark.parametrize("room", ["claude_code", "codex", "hermes"])
def test_rooms_have_one_shape_and_lift_uses_nothing_of_emit(room: str) -> None:
    folder = ROOT / "targets/ahp_targets" / room
    assert {"__init__.py", "engine.py", "emit.py", "lift.py", "codec.py"} <= {one.name for one in folder.glob("*.py")}
    lifts = _imports(folder / "lift.py")
    assert not {one for one in lifts if one.endswith((".emit", ".guard", "ahp_compile.guard", ".plugin"))}
    assert not {one for one in _imports(folder / "emit.py") if one.endswith((".lift", "lifting", "shell"))}
    others = {"claude_code", "codex", "hermes"} - {room}
    for path in folder.glob("*.py"):
        assert not {one for one in _imports(path) if any(f"ahp_targets.{other}" in one for other in others)}


def test_reading_back_shares_nothing_with_emitting() -> None:
    for name in (
        "lifting.py",
        "hook_check.py",
        "equivalence.py",
        "plan_comparison.py",
        "shell/interpreter.py",
        "shell/syntax.py",
    ):
        assert "ahp_compile.guard" not in _imports(ROOT / "ahp_compile" / name)
    assert "ahp_compile.lifting" not in _imports(ROOT / "ahp_compile/guard.py")


def test_nothing_in_the_compiler_names_a_harness() -> None:
    for path in (ROOT / "ahp_compile").rglob("*.py"):
        text = path.read_text(encoding="utf-8").lower()
        assert not re.search(r"claude|codex|hermes|gemini|copilot", text), path


PAYLOADS: dict[str, dict[Event, dict[str, Any]]] = {
    "claude-code": {
        Event.TOOL_BEFORE: {
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "prompt_id": "p", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
        },
        Event.TOOL_AFTER: {
            "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "mcp__my__srv__do_it", "tool_input": {},
            "tool_use_id": "toolu_1", "tool_response": [{"text": "x"}], "mcp_server": {"name": "my__srv"},
        },
        Event.TOOL_ERROR: {
            "hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Agent", "tool_input": {},
            "tool_use_id": "toolu_1", "error": "exit 1", "agent_id": "a", "agent_type": "Explore",
        },
        Event.SESSION_START: {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup", "model": "m"},
        Event.SESSION_END: {"hook_event_name": "SessionEnd", "session_id": "s", "reason": "prompt_input_exit"},
    },
    "codex": {
        Event.TOOL_BEFORE: {
            "hook_event_name": "PreToolUse", "session_id": "s", "turn_id": "t", "model": "m", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "call_1",
        },
        Event.TOOL_AFTER: {
            "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "mcp__my_srv__do_it", "tool_input": {},
            "tool_use_id": "call_1", "tool_response": "",
        },
        Event.SESSION_END: {"hook_event_name": "SessionEnd", "session_id": "s", "reason": "other"},
    },
    "hermes": {
        Event.TOOL_BEFORE: {
            "hook_event_name": "pre_tool_call", "session_id": "s", "turn_id": "t", "tool_name": "terminal",
            "args": {"command": "ls"}, "tool_call_id": "call_1", "cwd": "/w",
        },
        Event.TOOL_AFTER: {
            "hook_event_name": "post_tool_call", "session_id": "s", "tool_name": "mcp__my_srv__do_it", "args": {},
            "tool_call_id": "call_1", "result": '{"output": "x"}', "status": "ok",
        },
        Event.TOOL_ERROR: {
            "hook_event_name": "post_tool_call", "session_id": "s", "tool_name": "browser_click", "args": {},
            "tool_call_id": "call_1", "error_message": "no", "status": "error",
        },
        Event.SESSION_END: {"hook_event_name": "on_session_finalize", "session_id": "s", "reason": "shutdown"},
    },
}  # fmt: skip
EXAMPLES = [(name, event, payload) for name, some in PAYLOADS.items() for event, payload in some.items()]


@pytest.mark.parametrize(("name", "event", "payload"), EXAMPLES, ids=[f"{name} {event}" for name, event, _ in EXAMPLES])
def test_a_payload_is_read_into_the_protocols_words(name: str, event: Event, payload: dict[str, Any]) -> None:
    native = target.load(name).codec.decode(event, payload)
    assert native.session_id == "s"
    assert (native.tool is not None) is event.value.startswith("tool.")
    if native.tool is not None:
        assert native.tool.call_id
        assert isinstance(native.tool.input, dict)
    if event is Event.TOOL_BEFORE:
        assert native.tool is not None
        assert (native.tool.kind, native.tool.input) == ("shell", {"command": "ls"})
    if event is Event.TOOL_AFTER:
        assert native.tool is not None
        assert native.tool.kind == "mcp"
        assert native.tool.mcp is not None
        assert native.tool.mcp["tool"] == "do_it"
        assert native.tool.error is None
    if event is Event.TOOL_ERROR:
        assert native.tool is not None
        assert native.tool.error in ("exit 1", "no")
        assert native.tool.output is None
    if event is Event.SESSION_END:
        assert native.outcome in ("completed", "cancelled", "error", "unknown")


@pytest.mark.parametrize(("name", "event", "payload"), EXAMPLES, ids=[f"{name} {event}" for name, event, _ in EXAMPLES])
def test_a_payload_that_says_too_little_is_no_event(name: str, event: Event, payload: dict[str, Any]) -> None:
    codec = target.load(name).codec
    needed = {"hook_event_name", "tool_name", "tool_input", "args"} | ({"session_id"} if name != "hermes" else set())
    for member in needed & set(payload):
        for value in (None, "", 7, []):
            with pytest.raises(ValueError, match=r"."):
                codec.decode(event, payload | {member: value})


def test_a_subagent_is_told() -> None:
    native = target.load("claude-code").codec.decode(Event.TOOL_ERROR, PAYLOADS["claude-code"][Event.TOOL_ERROR])
    assert native.agent == {"id": "a", "type": "Explore"}


@given(st.text(st.characters()))
def test_a_denial_is_never_empty_and_holds_its_reason(reason: str) -> None:
    for name in TARGETS:
        text = target.load(name).codec.deny(reason)
        assert text.strip()
        assert b"\0" not in text


def test_a_long_reason_is_shortened_with_a_mark() -> None:
    text = target.load("claude-code").codec.deny("ü" * 100_000)
    assert len(text) < 400_000
    assert "[\\u2026]" in text.decode()
