"""Backends at run time: one interface, and which implementation a planned backend gets."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from ahp_compile.bridge.http import HttpBackend
from ahp_compile.bridge.per_event import PerEventBackend
from ahp_compile.bridge.persistent import PersistentBackend
from ahp_compile.bridge.wire import Reply
from ahp_compile.plan import Plan, PlannedBackend
from ahp_compile.registration import Http, Lifecycle, Stdio

OBSERVE_LIMIT_MS = 30_000
"""How long one observe delivery may take; nobody waits for it."""


@frozen
class Ask:
    """One intercept request: its line, its id, how long it may wait for its turn and then take, and the tokens at hand.

    ``start_until_s`` is the moment, on the event loop's clock, up to which a program's start does not count as answering.
    """

    line: bytes
    request_id: str
    wait_ms: int
    deadline_ms: int
    start_until_s: float
    tokens: Mapping[str, str]


class Backend(Protocol):
    """What a chain needs of a backend, whatever its transport."""

    async def start(self) -> None:
        """Make ready what outlives one event; never raises."""
        ...

    async def ask(self, ask: Ask) -> Reply:
        """Put one request; never raises, and never takes longer than its waiting time and deadline."""
        ...

    async def tell(self, line: bytes, tokens: Mapping[str, str]) -> bool:
        """Deliver one notification; returns whether it was taken. Never raises."""
        ...

    async def close(self) -> None:
        """End what was started; never raises."""
        ...


def make(planned: PlannedBackend, plan: Plan) -> Backend:
    """The running side of a planned backend."""
    match planned.transport:
        case Stdio(lifecycle=Lifecycle.PERSISTENT):
            return PersistentBackend(planned.transport, environment(plan))
        case Stdio():
            return PerEventBackend(planned.transport, environment(plan))
        case Http():
            return HttpBackend(planned.transport)


def environment(plan: Plan) -> dict[str, str]:
    """What a stdio backend finds in its environment: where programs are, who the user is, and a UTF-8 locale. No tokens."""
    user = pwd.getpwuid(os.getuid())
    return {
        "PATH": plan.search_path,
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": "/tmp",
    }
