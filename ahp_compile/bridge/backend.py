"""What a chain needs of a running backend, whatever its transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from ahp_compile.bridge.wire import Reply

OBSERVE_LIMIT_S = 30.0
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
