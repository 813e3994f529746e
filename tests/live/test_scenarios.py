"""Every scenario of scenarios.py on every release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.install import Release
from tests.live.scenarios import SCENARIOS, Scenario, play

pytestmark = pytest.mark.live


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_scenario(release: Release, scenario: Scenario, tmp_path: Path) -> None:
    outcome = play(release, scenario, tmp_path)
    assert not outcome.leaked
    assert outcome.ran is scenario.runs, outcome.words
    assert scenario.told in outcome.told, outcome.words
