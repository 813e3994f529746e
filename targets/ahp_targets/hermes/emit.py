"""Emit Hermes' in-process plugin, and the YAML that enables it.

Its shell hooks cannot keep a denial: a lone surrogate in a tool's arguments keeps them from starting while the tool runs.
"""

from __future__ import annotations

import json
import posixpath
from importlib.resources import files
from typing import Any

import yaml

from ahp_compile.guard import bridge_words
from ahp_compile.placement import Placement
from ahp_compile.plan import EventPlan
from ahp_compile.target import Artifact, Purpose, Request

PLUGIN = "ahp-bridge"
_SETTINGS_LINE = 'HOOKS = json.loads("{}")\n'


def emit(request: Request) -> tuple[Artifact, ...]:
    """config.yaml with the plugin enabled, and the plugin's two files."""
    home = config_home(request.placement)
    manifest = {
        "name": PLUGIN,
        "version": "1",
        "description": "Asks the policy backends of an Agent Hooks Protocol registration about tool calls",
    }
    return (
        _artifact(home, "config.yaml", _yaml({"plugins": {"enabled": [PLUGIN]}})),
        _artifact(home, f"plugins/{PLUGIN}/plugin.yaml", _yaml(manifest)),
        _artifact(home, f"plugins/{PLUGIN}/__init__.py", _plugin(request)),
    )


def config_home(placement: Placement) -> str:
    """The harness's own folder (HERMES_HOME)."""
    return placement.config_home or posixpath.join(placement.home, ".hermes")


def _artifact(home: str, name: str, content: str) -> Artifact:
    return Artifact(name, posixpath.join(home, name), content.encode(), Purpose.NATIVE)


def _yaml(document: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text


def _plugin(request: Request) -> str:
    hooks = {event.event.value: _hook(request, event) for event in request.plan.events}
    settings = ascii(json.dumps(hooks, sort_keys=True))
    source = files("ahp_targets.hermes").joinpath("plugin.py").read_text(encoding="utf-8")
    before, marker, after = source.partition(_SETTINGS_LINE)
    if not marker:
        raise AssertionError("the plugin's source has no place for its settings")
    return f"{before}HOOKS = json.loads({settings})\n{after}"


def _hook(request: Request, event: EventPlan) -> dict[str, Any]:
    return {
        "words": list(bridge_words(request, event)),
        "bound_s": event.budget_ms / 1000,
        "judges": bool(event.interceptors),
        "denies": event.guard.denies,
    }
