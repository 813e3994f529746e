"""The whole way, on real harnesses: a document of the seed's shape, the real bridge, backends that obey or misbehave.

    python -m tests.live.scenarios [RELEASE ...]

plays every scenario on every installed release and prints a table. A tool call runs if a marker file appears.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from ahp_compile import target
from ahp_compile.compiler import Compilation, compile_registration
from ahp_compile.judgement import Stance
from ahp_compile.placement import Placement
from ahp_compile.registration import Backend, FailurePolicy, Http, Lifecycle, Registration, Stdio
from ahp_compile.target import Purpose
from tests.bridge.installed import PROGRAM, processes, until
from tests.bridge.test_wire_matrix import served
from tests.live import drive
from tests.live.drive import Place
from tests.live.install import Release, releases
from tests.live.mock_model import MockModel
from tests.support import CODEX_HOLES, intercept

TOKEN = "canary-7f3a"
CLOSED, OPEN = FailurePolicy.FAIL_CLOSED, FailurePolicy.FAIL_OPEN
DENIED, UNAVAILABLE = "No: ü “quoted” 🚫", "policy backend is unavailable"


@frozen
class Scenario:
    """What the two backends and the bridge do, and what must become of the call.

    The first backend is http, the second a persistent stdio one; ``told`` is what the model must be told of a denial.
    """

    name: str
    runs: bool
    first: str = "no_effect"
    second: str = "no_effect"
    bridge: str | None = None
    policies: tuple[FailurePolicy, FailurePolicy] = (CLOSED, OPEN)
    told: str = ""


_BRIDGES = {
    "is missing": None,
    "is not executable": "not executable",
    "is killed in mid-call": "sleep 0.3; kill -9 $$",
    "hangs": "exec sleep 60",
    "is stopped": "kill -STOP $$",
    "exits 0 silently": "exit 0",
    "prints garbage": "echo hello",
    "exits 2": "exit 2",
}

SCENARIOS = (
    Scenario("no objection", True),
    Scenario("the second denies", False, second="deny", told=DENIED),
    Scenario("the first denies", False, first="deny", told=DENIED),
    *(
        Scenario(f"the fail-closed one {behaviour}", False, first=behaviour, told=UNAVAILABLE)
        for behaviour in ("refused", "hang", "status_500", "garbage")
    ),
    *(
        Scenario(f"the fail-open one {behaviour}", True, second=behaviour)
        for behaviour in ("missing", "hang", "dies", "garbage")
    ),
    *(
        Scenario(f"bridge {name}, a fail-closed member", False, bridge=script or "", told=UNAVAILABLE)
        for name, script in _BRIDGES.items()
    ),
    *(
        Scenario(f"bridge {name}, all fail-open", True, bridge=script or "", policies=(OPEN, OPEN))
        for name, script in _BRIDGES.items()
    ),
)


@frozen
class Outcome:
    """What became of a scenario."""

    ran: bool
    told: str
    words: str
    leaked: bool

    def is_right(self, scenario: Scenario) -> bool:
        """Whether it is what must be."""
        return self.ran is scenario.runs and scenario.told in self.told and not self.leaked


def play(release: Release, scenario: Scenario, root: Path) -> Outcome:
    """Play one scenario on one release in scratch folders below ``root``."""
    place = Place(root / "home", root / "home/config", root / "project")
    for folder in (place.home, place.config_home, place.project):
        folder.mkdir(parents=True)
    with _first(scenario, root) as first:
        compilation = _install(release, scenario, place, first, root)
        marker = place.project / "ran"
        try:
            with MockModel([[drive.shell_call(release.target, "touch ran")]]) as model:
                run = drive.run(release.target, release.executable, model, place, environment={"ACME_TOKEN": TOKEN})
        finally:
            _stop(compilation)
        told = model.told()
        leaked = TOKEN in json.dumps(model.requests) or TOKEN in run.words
    return Outcome(marker.exists(), told + json.dumps(told, ensure_ascii=False).replace('\\"', '"'), run.words, leaked)


@contextlib.contextmanager
def _first(scenario: Scenario, root: Path) -> Iterator[Http]:
    if scenario.first == "refused":
        yield Http("http://127.0.0.1:9/ahp", "ACME_TOKEN")
        return
    with served(scenario.first, root) as url:
        yield Http(url, "ACME_TOKEN")


def _install(release: Release, scenario: Scenario, place: Place, first: Http, root: Path) -> Compilation:
    command = "/nowhere/review" if scenario.second == "missing" else sys.executable
    second = Stdio(command, ("-S", PROGRAM, "persistent", scenario.second, str(root / "second.log")), Lifecycle.PERSISTENT)
    registration = Registration(
        "0.1",
        (
            Backend("com.example.policy", first, (intercept(750, scenario.policies[0]),)),
            Backend("com.example.local-review", second, (intercept(500, scenario.policies[1]),)),
        ),
    )
    placement = Placement(
        home=str(place.home),
        config_home=str(place.config_home),
        bridge=_bridge(scenario, root),
        plan_dir=str(place.home / "plans"),
    )
    close = frozenset({"all"}) if release.target == "codex" else frozenset()
    compilation = compile_registration(
        registration, target.load(release.target), placement, Stance(accepted=CODEX_HOLES), close=close, trust_our_hook=True
    )
    assert compilation.judgement.equivalent
    for artifact in compilation.artifacts:
        path = Path(artifact.destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(artifact.content)
    return compilation


def _bridge(scenario: Scenario, root: Path) -> str:
    """The real interpreter, or something else in its place."""
    if scenario.bridge is None:
        return sys.executable
    path = root / "python3"
    if scenario.bridge:
        path.write_text(f"#!/bin/sh\n{scenario.bridge}\n")
        path.chmod(0o644 if scenario.bridge == "not executable" else 0o755)
    return str(path)


def _stop(compilation: Compilation) -> None:
    plan = next(one.destination for one in compilation.artifacts if one.purpose is Purpose.PLAN)

    def daemons() -> list[int]:
        return [pid for pid, words in processes().items() if plan in words and "ahp_compile.bridge.daemon" in words]

    for pid in daemons():
        os.kill(pid, signal.SIGTERM)
        # A stand-in that stopped itself hears the other signal only now.
        os.kill(pid, signal.SIGCONT)
    until(lambda: not daemons())


def main(names: list[str]) -> int:
    """Print a table of scenarios by releases; exit status 1 when a cell is wrong."""
    wanted = [one for name, one in releases().items() if not names or name in names]
    played = [one for one in wanted if one.executable.exists()]
    for one in wanted:
        if one not in played:
            print(f"{one.name} is not installed: python tests/live/install.py {one.name}")
    print("| scenario | must | " + " | ".join(one.name for one in played) + " |")
    print("| --- | --- |" + " --- |" * len(played))
    wrong = 0
    for scenario in SCENARIOS:
        cells = []
        for release in played:
            with tempfile.TemporaryDirectory() as folder:
                outcome = play(release, scenario, Path(folder))
            right = outcome.is_right(scenario)
            wrong += not right
            cells.append(("runs" if outcome.ran else "stops") + ("" if right else " WRONG"))
        print(f"| {scenario.name} | {'runs' if scenario.runs else 'stops'} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{len(SCENARIOS) * len(played)} cells, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
