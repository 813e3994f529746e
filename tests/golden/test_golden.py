"""Golden files: for each case under golden/ the exact files and the report that every target gives."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension

from ahp_compile import document, report, target
from ahp_compile.compiler import Compilation, compile_registration
from ahp_compile.judgement import Stance
from ahp_compile.placement import Placement
from ahp_compile.target import Purpose
from tests.support import CODEX_HOLES, TARGETS

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = sorted(one.parent.name for one in GOLDEN.glob("*/registration.json"))
PLACEMENT = Placement(home="/home/ada", bridge="/opt/ahp-compile/bin/python3")


class GoldenFiles(SingleFileSnapshotExtension):
    """Keeps each file under its own name in golden/CASE/TARGET/."""

    file_extension = ""

    @classmethod
    def dirname(cls, **_: Any) -> str:
        return str(GOLDEN)

    @classmethod
    def get_location(cls, *, index: Any, **_: Any) -> str:
        return str(GOLDEN / str(index))

    def is_snapshot_location(self, *, location: str) -> bool:
        return not location.endswith("/registration.json")

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Any:
        new, old = (one.decode().splitlines() for one in (serialized_data or b"", snapshot_data or b""))
        yield from difflib.unified_diff(old, new, "golden", "now", lineterm="")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_a_case_compiles_to_its_golden_files(case: str, name: str, snapshot: SnapshotAssertion) -> None:
    registration = document.read_registration("registration.json", (GOLDEN / case / "registration.json").read_bytes())
    accepted = CODEX_HOLES if name == "codex" else frozenset()
    compilation = compile_registration(registration, target.load(name), PLACEMENT, Stance(accepted=accepted))

    assert compilation.judgement.equivalent, "\n".join(report.refusal(compilation.judgement))
    golden = snapshot.use_extension(GoldenFiles)
    names = {"report.txt"}
    for artifact in compilation.artifacts:
        if artifact.purpose is not Purpose.CLIENT:
            names.add(artifact.name)
            assert _settled(artifact.content, compilation) == golden(name=f"{case}/{name}/{artifact.name}")
    text = report.render(compilation, "text").encode()
    assert _settled(text, compilation) == golden(name=f"{case}/{name}/report.txt")
    folder = GOLDEN / case / name
    assert {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()} == names


def _settled(content: bytes, compilation: Compilation) -> bytes:
    """The client is addressed by its own bytes, which no golden file is about."""
    client = next(one.name for one in compilation.artifacts if one.purpose is Purpose.CLIENT)
    return content.replace(client.encode(), b"client-XXXX.py")


def test_there_are_cases_enough() -> None:
    assert len(CASES) >= 13
