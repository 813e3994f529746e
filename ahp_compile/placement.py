"""Where things will be on the machine that runs the harness: said by options, never probed.

Everything in the emitted bytes that is not in the document follows from these values alone, so one machine can compile for a
fleet.
"""

from __future__ import annotations

import posixpath
from enum import StrEnum

from attrs import Attribute, field, frozen


class Os(StrEnum):
    """The operating systems that a guard exists for."""

    LINUX = "linux"
    MACOS = "macos"


class Scope(StrEnum):
    """Whose configuration is written; it decides who can undo it."""

    USER = "user"
    PROJECT = "project"
    MANAGED = "managed"


class PlacementError(ValueError):
    """A location that cannot be written down exactly, or that a target does not have. The message is for the user."""


def _check_path(_: Placement, attribute: Attribute[str], value: str | None) -> None:
    if value is None:
        return
    option = "--" + attribute.name.replace("_", "-")
    if "\0" in value or not _is_unicode(value):
        raise PlacementError(f"{option} must be a path of Unicode text without NUL")
    if not posixpath.isabs(value):
        raise PlacementError(f"{option} must be an absolute path, since it names a place on the machine that runs the harness")


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


@frozen
class Placement:
    """The location options. All paths are absolute, POSIX, and need not exist on the machine that compiles.

    ``home`` is the user's home, ``config_home`` the harness's own configuration folder where it is not the default one
    below ``home``, ``project`` the repository for project scope, ``bridge`` the Python interpreter that has ahp-compile
    installed, ``plan_dir`` the folder for plan files and the bridge's client, ``watchdog`` the ``timeout`` program of Linux.
    Raises PlacementError for a path that is relative or not text.
    """

    home: str = field(validator=_check_path)
    bridge: str = field(validator=_check_path)
    os: Os = Os.LINUX
    scope: Scope = Scope.USER
    config_home: str | None = field(default=None, validator=_check_path)
    project: str | None = field(default=None, validator=_check_path)
    given_plan_dir: str | None = field(default=None, validator=_check_path, alias="plan_dir")
    watchdog: str = field(default="/usr/bin/timeout", validator=_check_path)
    search_path: str = "/usr/local/bin:/usr/bin:/bin"

    @property
    def plan_dir(self) -> str:
        """Where plan files and the client are: below the home, and for managed scope where only an administrator writes."""
        if self.given_plan_dir is not None:
            return self.given_plan_dir
        if self.scope is Scope.MANAGED:
            return "/etc/ahp-compile"
        return posixpath.join(self.home, ".local/share/ahp-compile")

    @property
    def state_dir(self) -> str | None:
        """Where the bridge keeps its audit; None for managed scope, where each user has an own one."""
        return None if self.scope is Scope.MANAGED else posixpath.join(self.home, ".local/state/ahp-compile")
