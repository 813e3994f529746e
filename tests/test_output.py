"""Writing into a folder: whole or not at all, and never over what is not ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ahp_compile.output import MANIFEST, FileRefused, write
from ahp_compile.target import Artifact, Purpose

ARTIFACTS = (
    Artifact("settings.json", "/home/ada/.claude/settings.json", b'{"hooks": {}}\n', Purpose.NATIVE),
    Artifact("plugins/one/two.py", "/home/ada/two.py", "ü\n".encode(), Purpose.NATIVE),
)


def changed(content: bytes) -> tuple[Artifact, ...]:
    return (Artifact("settings.json", "/home/ada/.claude/settings.json", content, Purpose.NATIVE), ARTIFACTS[1])


def test_files_and_a_manifest_are_written(tmp_path: Path) -> None:
    write(tmp_path / "new folder", "claude-code", ARTIFACTS)
    for artifact in ARTIFACTS:
        assert (tmp_path / "new folder" / artifact.name).read_bytes() == artifact.content
    manifest = json.loads((tmp_path / "new folder" / MANIFEST).read_bytes())
    assert [one["destination"] for one in manifest["files"]] == [one.destination for one in ARTIFACTS]


def test_a_second_run_changes_nothing_and_an_update_replaces_ours(tmp_path: Path) -> None:
    write(tmp_path, "claude-code", ARTIFACTS)
    os.utime(tmp_path / "settings.json", ns=(1, 1))
    write(tmp_path, "claude-code", ARTIFACTS)
    assert (tmp_path / "settings.json").stat().st_mtime_ns == 1
    write(tmp_path, "claude-code", changed(b"new"))
    assert (tmp_path / "settings.json").read_bytes() == b"new"
    assert not list(tmp_path.glob(".ahp-compile-*"))


@pytest.mark.parametrize("ours_before", [False, True])
def test_a_foreign_or_edited_file_is_refused_and_nothing_is_written(tmp_path: Path, ours_before: bool) -> None:
    if ours_before:
        write(tmp_path, "claude-code", ARTIFACTS)
    (tmp_path / "settings.json").write_bytes(b'{"mine": true}')
    with pytest.raises(FileRefused, match=r"settings\.json"):
        write(tmp_path, "claude-code", changed(b"new"))
    assert (tmp_path / "settings.json").read_bytes() == b'{"mine": true}'
    assert (tmp_path / MANIFEST).exists() is ours_before


def test_links_folders_and_foreign_manifests_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/settings.json").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "b/settings.json").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / MANIFEST).write_text("{}")
    for folder in "abc":
        with pytest.raises(FileRefused):
            write(tmp_path / folder, "claude-code", ARTIFACTS)
    assert not (tmp_path / "elsewhere").exists()
