"""What a target is, and how targets are found.

A target is one harness as an output. Bundled and third-party targets are found alike: an entry point of the group
``ahp_compile.targets`` whose object is a Target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from attrs import frozen

from ahp_compile.engine import Engine, Lifted
from ahp_compile.placement import Placement, Scope
from ahp_compile.plan import Plan
from ahp_compile.registration import Event

INTERFACE_VERSION = 1
"""The version of everything that a target sees of this package; a target made for another one is refused."""

GROUP = "ahp_compile.targets"


class Purpose(StrEnum):
    """What an artifact is for."""

    NATIVE = "native configuration"
    PLAN = "plan"
    CLIENT = "bridge client"
    ENVIRONMENT = "environment template"


@frozen
class Artifact:
    """One file: ``name`` is its place in the output folder, ``destination`` that on the machine that runs the harness."""

    name: str
    destination: str
    content: bytes
    purpose: Purpose


@frozen
class BridgeFiles:
    """The files that every target's hooks need and that no target decides: where they will be, and the plan's digest."""

    client: str
    plan: str
    digest: str


@frozen
class Request:
    """What a target is asked to emit: the plan, where things will be, and which holes to close by native switches."""

    plan: Plan
    placement: Placement
    bridge: BridgeFiles
    close: frozenset[str] = frozenset()
    trust_our_hook: bool = False


class LiftError(Exception):
    """The emitted files do not say what a lift could understand. The message says where and why, without quoting secrets."""


@frozen
class ToolCall:
    """A tool call as a harness's payload tells it, in the protocol's words (section 3.2)."""

    call_id: str | None
    name: str
    kind: str
    input: dict[str, Any]
    output: Any = None
    error: str | None = None
    mcp: dict[str, str] | None = None


@frozen
class NativeEvent:
    """A native payload in the protocol's words; None where the harness does not say."""

    native_name: str
    session_id: str
    cwd: str | None = None
    model: str | None = None
    agent: dict[str, str] | None = None
    tool: ToolCall | None = None
    outcome: str | None = None
    turn: str | None = None


class Codec(Protocol):
    """The harness's dialect at run time."""

    provider: str

    def decode(self, event: Event, payload: dict[str, Any]) -> NativeEvent:
        """Read a native payload. Raises ValueError when a field that the protocol requires is not there."""
        ...

    def sample(self, event: Event) -> dict[str, Any]:
        """A payload as the harness would send it for one event, for trying a registration out."""
        ...

    def deny(self, reason: str) -> bytes:
        """What the bridge prints to deny, before it exits 77: the guard passes it on as it is. Never empty, never NUL."""
        ...


@frozen
class Target:
    """One harness as an output.

    ``emit`` gives the native files; ``lift`` reads a folder of files back (destination → bytes) without using anything of
    ``emit``; ``env_source`` says in one sentence where this harness's hooks get their environment from.
    """

    name: str
    interface: int
    engine: Engine
    emit: Callable[[Request], tuple[Artifact, ...]]
    lift: Callable[[Mapping[str, bytes], Placement], Lifted]
    codec: Codec
    env_source: str

    def offers(self, scope: Scope) -> bool:
        """Whether the harness has this scope."""
        return scope.value in self.engine.scopes


class TargetError(Exception):
    """A target that is unknown, or whose plugin cannot be used. The message is for the user and names the plugin."""


def names() -> tuple[str, ...]:
    """Names of all installed targets, sorted."""
    return tuple(sorted({one.name for one in entry_points(group=GROUP)}))


def load(name: str) -> Target:
    """Load one target by name. Raises TargetError when there is none, two, or its plugin is broken or for another interface."""
    found = [one for one in entry_points(group=GROUP) if one.name == name]
    if not found:
        raise TargetError(f"there is no target {name!r}; installed are: {', '.join(names()) or 'none'}")
    if len({one.value for one in found}) > 1:
        raise TargetError(f"two plugins offer a target {name!r}: {', '.join(sorted(one.value for one in found))}")
    return _load(found[0])


def _load(entry: EntryPoint) -> Target:
    try:
        target = entry.load()
    except Exception as error:
        raise TargetError(
            f"the plugin {entry.value} of target {entry.name!r} does not load: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(target, Target):
        raise TargetError(f"the plugin {entry.value} of target {entry.name!r} is not a Target")
    if target.interface != INTERFACE_VERSION:
        raise TargetError(
            f"the plugin {entry.value} is for interface {target.interface} of ahp-compile; this one has {INTERFACE_VERSION}"
        )
    if target.name != entry.name:
        raise TargetError(f"the plugin {entry.value} is registered as {entry.name!r} but calls itself {target.name!r}")
    return target
