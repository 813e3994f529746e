"""Install the harness releases of harnesses.toml side by side, each into a folder of its own below an ignored cache.

``python tests/live/install.py [NAME ...]``; a release that already answers with its version is left alone. The packages come
from wherever this machine's npm and pip are set up to look. Exit status 1 when one could not be installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent

_VERSION = re.compile(r"\d+(?:\.\d+)+[0-9A-Za-z.+-]*")


class Release:
    """One harness release: where it comes from and where it is installed."""

    def __init__(self, name: str, record: dict[str, str]) -> None:
        self.name = name
        self.target = record["target"]
        self.registry = record["registry"]
        self.package = record["package"]
        self.version = record["version"]
        self.folder = cache() / name
        self.executable = self.folder / record["installed"]

    def found_version(self) -> str | None:
        """What the installed executable says that it is; None when there is none or it does not say."""
        if not self.executable.exists():
            return None
        scratch = self.folder / "scratch-home"
        scratch.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(scratch), "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"}
        try:
            done = subprocess.run(
                [self.executable, "--version"], capture_output=True, text=True, timeout=120, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = _VERSION.search(done.stdout)
        return found[0] if found else None

    def install(self) -> None:
        """Install exactly this version. Raises CalledProcessError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.registry == "npm":
            command = ["npm", "install", "--prefix", str(self.folder), "--no-audit", "--no-fund", "--no-update-notifier"]
            subprocess.run(
                [*command, f"{self.package}@{self.version}"], check=True, capture_output=True, text=True, timeout=900
            )
            return
        venv.create(self.folder, with_pip=True)
        command = [str(self.folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, f"{self.package}=={self.version}"], check=True, capture_output=True, text=True, timeout=1800)


def cache() -> Path:
    """The folder of all releases: AHP_HARNESS_CACHE, or .cache/harnesses in the repository."""
    given = os.environ.get("AHP_HARNESS_CACHE")
    return Path(given).absolute() if given else HERE.resolve().parents[1] / ".cache/harnesses"


def releases() -> dict[str, Release]:
    """All releases by name."""
    records = tomllib.loads((HERE / "harnesses.toml").read_text(encoding="utf-8"))
    return {name: Release(name, record) for name, record in records.items()}


def _ensure(release: Release) -> str | None:
    """Install unless it is there; what went wrong, or None."""
    if release.found_version() == release.version:
        return None
    try:
        release.install()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return f"{release.name}: {error}\n{getattr(error, 'stderr', '')}"
    found = release.found_version()
    return None if found == release.version else f"{release.name}: wanted {release.version}, got {found}"


def main(names: list[str]) -> int:
    """Install the named releases, or all."""
    known = releases()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no release {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 1
    wanted = [known[name] for name in names] if names else list(known.values())
    with ThreadPoolExecutor(2) as pool:
        problems = [one for one in pool.map(_ensure, wanted) if one is not None]
    for release in wanted:
        print(f"{release.name}: {release.found_version() or 'missing'}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
