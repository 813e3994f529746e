"""Writing a compilation into a folder, without ever overwriting what ahp-compile did not write there."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from ahp_compile.target import Artifact

MANIFEST = "ahp-compile.json"
"""The file in an output folder that says what was written: name, where it belongs, and its digest."""


class FileRefused(Exception):
    """A file is in the way and not ours to overwrite. The message names it; nothing was written."""


def write(folder: Path, target: str, artifacts: tuple[Artifact, ...]) -> None:
    """Write all artifacts and the manifest. A file that is already as wanted is left alone, its times included.

    Raises FileRefused when a file exists that we did not write or that was changed since, and OSError when writing fails.
    """
    ours = _digests_of(folder / MANIFEST)
    for artifact in artifacts:
        _refuse_foreign(folder / artifact.name, artifact, ours)
    _refuse_foreign_manifest(folder / MANIFEST)
    for artifact in artifacts:
        _replace(folder / artifact.name, artifact.content)
    _replace(folder / MANIFEST, _manifest(target, artifacts))


def _digests_of(manifest: Path) -> set[str]:
    try:
        document = json.loads(manifest.read_bytes())
        return {one["sha256"] for one in document["files"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def _refuse_foreign(path: Path, artifact: Artifact, ours: set[str]) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileRefused(f"{path} is not a plain file; nothing was written")
    if path.exists():
        found = path.read_bytes()
        if found != artifact.content and hashlib.sha256(found).hexdigest() not in ours:
            raise FileRefused(
                f"{path} was not written by ahp-compile, or was changed since: move it away or choose another folder with -o; "
                "nothing was written"
            )


def _refuse_foreign_manifest(path: Path) -> None:
    if path.exists() and not _digests_of(path):
        raise FileRefused(f"{path} is not a manifest of ahp-compile; nothing was written")


def _manifest(target: str, artifacts: tuple[Artifact, ...]) -> bytes:
    files = [
        {
            "name": one.name,
            "destination": one.destination,
            "purpose": one.purpose,
            "sha256": hashlib.sha256(one.content).hexdigest(),
        }
        for one in artifacts
    ]
    return json.dumps({"target": target, "files": files}, ensure_ascii=False, indent=2).encode() + b"\n"


def _replace(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # A reader sees the old file or the new one, never half of it.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".ahp-compile-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
