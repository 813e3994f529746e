"""Releases and scratch places for the live tests. A release that is not installed is reported, never silently left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.live.drive import Place
from tests.live.install import Release, releases

RELEASES = releases()


@pytest.fixture(params=sorted(RELEASES))
def release(request: pytest.FixtureRequest) -> Release:
    """Each release in turn."""
    return installed(RELEASES[request.param])


def installed(release: Release) -> Release:
    """The release, or a failure (AHP_LIVE_REQUIRED=1) or skip that names it when it is not installed."""
    if not release.executable.exists():
        message = f"{release.name} is not installed: python tests/live/install.py {release.name}"
        if os.environ.get("AHP_LIVE_REQUIRED") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return release


@pytest.fixture
def codex() -> Release:
    """The release of Codex."""
    return installed(next(one for one in RELEASES.values() if one.target == "codex"))


@pytest.fixture(params=["plain", 'it\'s a "home" ü ポリシー $X'])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Scratch folders, once with ordinary names and once with awkward ones."""
    return make_place(tmp_path / request.param)


@pytest.fixture
def simple_place(tmp_path: Path) -> Place:
    """Scratch folders with ordinary names only."""
    return make_place(tmp_path / "plain")


def make_place(root: Path) -> Place:
    """Scratch folders below ``root``; the names of some hold a space."""
    found = Place(root / "home", root / "home" / "own config", root / "my project")
    for folder in (found.home, found.config_home, found.project):
        folder.mkdir(parents=True)
    return found
