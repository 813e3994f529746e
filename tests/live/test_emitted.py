"""What is emitted is loaded by the real harness: the native command fires on a tool call, with exactly the plan's words.

A stand-in takes the place of the bridge: it records its words and input and answers as it is told.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ahp_compile import guard, target
from ahp_compile.compiler import Compilation, compile_registration
from ahp_compile.judgement import Stance
from ahp_compile.placement import Placement
from ahp_compile.registration import Event, Registration
from ahp_compile.target import BridgeFiles, Purpose, Request
from tests.live import drive
from tests.live.drive import Place
from tests.live.install import Release
from tests.live.mock_model import MockModel
from tests.support import CODEX_HOLES, both_policies, one_interceptor

pytestmark = pytest.mark.live

REASON = 'Not today: "quotes", $HOME, `id`, ü ポリシー 🚫'
COMPLAINTS = ("invalid setting", "unknown configuration", "is not trusted", "failed to parse", "ignoring hook", "warning:")


class StandIn:
    """An executable in the place of the bridge's interpreter; for in-process targets a module in the place of its client."""

    def __init__(self, path: Path, client: Path | None = None) -> None:
        self.path = path
        self.client = client
        self.folder = path.parent
        path.parent.mkdir(parents=True, exist_ok=True)

    def answers(self, status: int, output: bytes) -> None:
        """Record, print, and exit so."""
        (self.folder / "output").write_bytes(output)
        if self.client is not None:
            self.client.write_text(
                "import time\n"
                "def ask(words, payload, bound_s, environment):\n"
                f"    here = {str(self.folder)!r} + '/'\n"
                "    n = str(time.time_ns())\n"
                "    open(here + 'words.' + n, 'wb').write(b''.join(word.encode() + b'\\0' for word in words))\n"
                "    open(here + 'input.' + n, 'wb').write(payload)\n"
                "    assert b'PATH' in environment and bound_s > 0\n"
                f"    return {status}, open(here + 'output', 'rb').read()\n"
            )
            return
        here = str(self.folder).replace("'", "'\\''")
        self.path.write_text(
            "#!/bin/sh\n"
            f"cd '{here}' || exit 71\n"
            "n=$$\n"
            'for word in "$0" "$@"; do printf \'%s\\0\' "$word"; done >words.$n\n'
            "cat >input.$n\n"
            f"cat output\nexit {status}\n"
        )
        self.path.chmod(0o755)

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each start."""
        found = sorted(self.folder.glob("words.*"), key=lambda one: one.stat().st_mtime_ns)
        return [tuple(word.decode() for word in one.read_bytes().split(b"\0")[:-1]) for one in found]

    def inputs(self, event: str) -> list[bytes]:
        """What each start for one event was given."""
        return [
            self.folder.joinpath(one.name.replace("words", "input")).read_bytes()
            for one in sorted(self.folder.glob("words.*"))
            if event.encode() in one.read_bytes().split(b"\0")
        ]


def installed(registration: Registration, release: Release, place: Place) -> tuple[Compilation, StandIn]:
    """Compile for the place, with the stand-in for the bridge, and put each file where it belongs."""
    stand_in = StandIn(place.home / "bin of mine" / "python3")
    placement = Placement(
        home=str(place.home),
        config_home=str(place.config_home),
        bridge=str(stand_in.path),
        plan_dir=str(place.home / "plans; here"),
    )
    close = frozenset({"all"}) if release.target == "codex" else frozenset()
    compilation = compile_registration(
        registration, target.load(release.target), placement, Stance(accepted=CODEX_HOLES), close=close, trust_our_hook=True
    )
    assert compilation.judgement.equivalent, compilation.judgement.defects
    for artifact in compilation.artifacts:
        path = Path(artifact.destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(artifact.content)
    if release.target == "hermes":
        client = next(one.destination for one in compilation.artifacts if one.purpose is Purpose.CLIENT)
        stand_in = StandIn(stand_in.path, Path(client))
    return compilation, stand_in


def planned_words(compilation: Compilation, placement: Placement, event: Event) -> tuple[str, ...]:
    """The words that the plan says for one event."""
    places = {one.purpose: one.destination for one in compilation.artifacts}
    digest = places[Purpose.PLAN].rpartition("-")[2].removesuffix(".json")
    bridge = BridgeFiles(places[Purpose.CLIENT], places[Purpose.PLAN], digest)
    planned = compilation.plan.event(event)
    assert planned is not None
    return guard.bridge_words(Request(compilation.plan, placement, bridge), planned)


def go(release: Release, place: Place, command: str = "touch ran", **options: object) -> tuple[bool, MockModel, drive.Run]:
    """Let the model ask for one shell command; whether it ran, what the model saw, and what the harness said."""
    marker = place.project / "ran"
    marker.unlink(missing_ok=True)
    call = drive.shell_call(release.target, command, code_mode=options.get("model_name") == "gpt-6.2-sol")
    with MockModel([[call]]) as model:
        run = drive.run(release.target, release.executable, model, place, **options)
    return marker.exists(), model, run


def test_no_objection_lets_the_call_run_and_the_words_are_the_plans(release: Release, place: Place) -> None:
    compilation, stand_in = installed(one_interceptor(), release, place)
    stand_in.answers(0, b"ahp-proceed-1\n")
    ran, _, run = go(release, place)
    assert ran, run.words
    placement = Placement(home=str(place.home), bridge=str(stand_in.path))
    assert stand_in.words == [planned_words(compilation, placement, Event.TOOL_BEFORE)]
    (payload,) = stand_in.inputs("tool.before")
    call = target.load(release.target).codec.decode(Event.TOOL_BEFORE, json.loads(payload)).tool
    assert call is not None
    assert call.kind == "shell"
    assert "touch ran" in json.dumps(call.input)
    assert call.call_id
    for complaint in COMPLAINTS:
        assert complaint not in run.stderr.lower(), run.stderr


def test_a_denial_stops_the_call_and_its_reason_reaches_the_model(release: Release, place: Place) -> None:
    _, stand_in = installed(one_interceptor(), release, place)
    stand_in.answers(77, target.load(release.target).codec.deny(REASON))
    ran, model, run = go(release, place)
    assert not ran
    assert stand_in.words, run.words
    assert (
        REASON in model.told()
        or json.dumps(REASON)[1:-1] in model.told()
        or REASON in json.dumps(model.told(), ensure_ascii=False).replace('\\\\\\"', '"').replace('\\"', '"')
    )


@pytest.mark.parametrize("status", [0, 1, 2, 77])
def test_a_bridge_that_proves_nothing_ends_in_the_guards_verdict(release: Release, tmp_path: Path, status: int) -> None:
    place = Place(tmp_path / "home", tmp_path / "home/config", tmp_path / "project")
    place.project.mkdir(parents=True)
    _, stand_in = installed(one_interceptor(), release, place)
    stand_in.answers(status, b"")
    ran, model, run = go(release, place)
    assert not ran
    assert stand_in.words, run.words
    assert "policy backend is unavailable" in model.told()
    assert "ahp-compile" not in model.told()
    assert str(stand_in.path) not in model.told()


def test_a_missing_bridge_denies(release: Release, place: Place) -> None:
    _, stand_in = installed(one_interceptor(), release, place)
    if stand_in.client is not None:
        stand_in.client.unlink()
    ran, model, _ = go(release, place)
    assert not ran
    assert "policy backend is unavailable" in model.told()
    assert str(place.home) not in model.told()


def test_a_lone_surrogate_in_an_argument_does_not_keep_the_call_from_being_judged(release: Release, place: Place) -> None:
    _, stand_in = installed(one_interceptor(), release, place)
    stand_in.answers(77, target.load(release.target).codec.deny(REASON))
    ran, model, run = go(release, place, command="touch ran # \ud800")
    assert not ran, run.words
    if release.target == "codex" and "failed to parse function arguments" in run.words:
        return  # refused by the harness itself, before any hook
    assert "Not today" in model.told()
    (payload,) = stand_in.inputs("tool.before")
    json.loads(payload.decode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("denied", [False, True])
def test_a_tool_of_an_mcp_server_is_judged(release: Release, tmp_path: Path, denied: bool) -> None:
    place = Place(tmp_path / "home", tmp_path / "home/config", tmp_path / "project")
    place.project.mkdir(parents=True)
    _, stand_in = installed(one_interceptor(), release, place)
    codec = target.load(release.target).codec
    stand_in.answers(*((77, codec.deny(REASON)) if denied else (0, b"ahp-proceed-1\n")))
    marker = place.project / "ran"
    server = [sys.executable, str(Path(__file__).with_name("mcp_server.py")), str(marker)]
    with MockModel([[drive.mcp_call(release.target)]]) as model:
        run = drive.run(release.target, release.executable, model, place, mcp_server=server)
    assert marker.exists() is not denied, (run.words, model.told())
    (payload,) = stand_in.inputs("tool.before")
    call = codec.decode(Event.TOOL_BEFORE, json.loads(payload)).tool
    assert call is not None
    assert call.kind == "mcp"
    assert call.mcp is not None
    assert call.mcp["server"].replace("-", "_") == "my_srv"
    assert call.mcp["tool"] == "do_it"


def test_observed_events_fire_once_each_and_change_nothing(release: Release, place: Place) -> None:
    _, stand_in = installed(both_policies(), release, place)
    stand_in.answers(0, b"ahp-proceed-1\n")
    ran, _, run = go(release, place)
    assert ran, run.words
    events = [words[words.index("--event") + 1] for words in stand_in.words]
    assert sorted(events) == ["session.end", "session.start", "tool.after", "tool.before"], run.words
    codec = target.load(release.target).codec
    before, after = (codec.decode(Event(one), json.loads(stand_in.inputs(one)[0])) for one in ("tool.before", "tool.after"))
    assert before.tool is not None
    assert after.tool is not None
    assert before.tool.call_id == after.tool.call_id
    assert before.session_id == after.session_id
    for one in ("session.start", "session.end"):
        assert codec.decode(Event(one), json.loads(stand_in.inputs(one)[0])).session_id == before.session_id


def test_codex_itself_trusts_what_we_say_is_trusted(place: Place) -> None:
    from tests.live.conftest import RELEASES
    from tests.live.conftest import installed as require

    release = require(RELEASES["codex-0_171_0"])
    installed(both_policies(), release, place)
    listed = drive.codex_hooks(release.executable, place)
    text = json.dumps(listed)
    (entry,) = listed["data"] if "data" in listed else listed["entries"]
    assert {one["trustStatus"] for one in entry["hooks"]} == {"trusted"}, text
    assert len(entry["hooks"]) == 4, text
    assert not entry.get("warnings"), text
    assert not entry.get("errors"), text


def test_codex_in_code_mode_is_judged_too(place: Place) -> None:
    from tests.live.conftest import RELEASES
    from tests.live.conftest import installed as require

    release = require(RELEASES["codex-0_171_0"])
    _, stand_in = installed(one_interceptor(), release, place)
    stand_in.answers(77, target.load("codex").codec.deny(REASON))
    ran, _, run = go(release, place, model_name="gpt-6.2-sol")
    assert not ran
    assert stand_in.words, run.words
