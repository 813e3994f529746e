"""Every seeded faulty emission is refused, and the right one is not."""

from __future__ import annotations

from functools import cache

import pytest

from ahp_compile import target
from ahp_compile.compiler import Compilation
from ahp_compile.equivalence import check
from ahp_compile.judgement import Judgement, Stance
from ahp_compile.registration import FailurePolicy
from ahp_compile.target import BridgeFiles, Purpose, Request
from tests.faults import claude_code, codex, hermes
from tests.faults.common import Seeded
from tests.support import CODEX_HOLES, PLACEMENT, TARGETS, both_policies, compiled, files_of, one_interceptor

FAULTS = {"claude-code": claude_code.FAULTS, "codex": codex.FAULTS, "hermes": hermes.FAULTS}
CLOSED = {"codex": frozenset({"all"})}
STANCE = Stance(accepted=CODEX_HOLES)
SEEDED = [pytest.param(name, fault, id=f"{name}: {fault.name}") for name in TARGETS for fault in FAULTS[name]]


@cache
def right_emission(name: str, *, trusting: bool) -> Compilation:
    return compiled(both_policies(), name, close=CLOSED.get(name, frozenset()), trust_our_hook=trusting)


def judged(name: str, fault: Seeded | None, *, trusting: bool) -> Judgement:
    """Emit rightly, seed the fault into the files, and check them as if they had been emitted so."""
    compilation = right_emission(name, trusting=trusting)
    places = {one.purpose: one.destination for one in compilation.artifacts}
    digest = places[Purpose.PLAN].rpartition("-")[2].removesuffix(".json")
    request = Request(
        compilation.plan,
        PLACEMENT,
        BridgeFiles(places[Purpose.CLIENT], places[Purpose.PLAN], digest),
        frozenset({"write-stdin", "web-search", "token-readable"}) if name in CLOSED else frozenset(),
        trusting,
    )
    files = files_of(compilation)
    if fault is not None:
        seeded = fault.apply(files)
        assert seeded != files
        files = seeded
    return check(request, files, target.load(name), STANCE)


@pytest.mark.parametrize("trusting", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_the_right_emission_is_equivalent(name: str, trusting: bool) -> None:
    judgement = judged(name, None, trusting=trusting)
    assert judgement.equivalent, (judgement.defects, judgement.open_holes)


@pytest.mark.parametrize(("name", "fault"), SEEDED)
def test_a_faulty_emission_is_refused(name: str, fault: Seeded) -> None:
    judgement = judged(name, fault, trusting=fault.trusting)
    assert not judgement.equivalent
    assert judgement.defects
    assert "canary-7f3a" not in repr(judgement.defects)


@pytest.mark.parametrize("name", TARGETS)
def test_there_are_faults_enough_and_half_are_native(name: str) -> None:
    faults = FAULTS[name]
    assert len({one.name for one in faults}) == len(faults) >= 25
    assert 2 * sum(one.native for one in faults) >= len(faults)
    print(f"{name}: {len(faults)} seeded faults, {sum(one.native for one in faults)} in native files")


FAIL_OPEN_FAULTS = {
    "unproven is denied": ("*) exit 0;; esac", "*) exit 2;; esac"),
    "silent denial passed on": (' && [ -n "$r" ]', ""),
    "denial proceeds": ("77) exit 2;;", "77) exit 3;;"),
    "guard word flipped": ("--guard proceed", "--guard deny"),
    "bridge's own status passed on": ("*) exit 0;; esac", "*) exit $?;; esac"),
}


@pytest.mark.parametrize("fault", FAIL_OPEN_FAULTS)
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_fail_open_chain_must_proceed_on_the_same_list(name: str, fault: str) -> None:
    compilation = compiled(one_interceptor(FailurePolicy.FAIL_OPEN), name)
    assert compilation.judgement.equivalent
    old, new = FAIL_OPEN_FAULTS[fault]
    files = files_of(compilation)
    (path,) = (one for one in files if one.endswith(("settings.json", "config.toml")))
    text = files[path].decode()
    escaped = old.replace('"', '\\"')
    assert escaped in text
    places = {one.purpose: one.destination for one in compilation.artifacts}
    digest = places[Purpose.PLAN].rpartition("-")[2].removesuffix(".json")
    request = Request(compilation.plan, PLACEMENT, BridgeFiles(places[Purpose.CLIENT], places[Purpose.PLAN], digest))
    judgement = check(request, files | {path: text.replace(escaped, new).encode()}, target.load(name), STANCE)
    harmless = fault == "bridge's own status passed on" or (name, fault) == ("codex", "unproven is denied")
    assert judgement.equivalent is harmless, judgement.defects
