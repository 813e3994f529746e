"""Observers: told in order, one queue per backend, and never waited for (AHP section 13, obligation observer)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import define, field

from ahp_compile.bridge.audit import Audit
from ahp_compile.bridge.backend import Backend

_QUEUE_LENGTH = 1000


@define(eq=False)
class Observers:
    """One queue and one worker for each observing backend, so that before precedes after for every call."""

    backends: Mapping[str, Backend]
    audit: Audit
    _queues: dict[str, asyncio.Queue[tuple[bytes, Mapping[str, str], Mapping[str, Any]]]] = field(factory=dict)
    _workers: list[asyncio.Task[None]] = field(factory=list)

    def hand_over(self, backend: str, line: bytes, tokens: Mapping[str, str], document: Mapping[str, Any]) -> None:
        """Queue one notification. A full queue drops it, and the audit says so: a slow observer must not fill the memory."""
        queue = self._queues.get(backend)
        if queue is None:
            queue = self._queues[backend] = asyncio.Queue(_QUEUE_LENGTH)
            self._workers.append(asyncio.create_task(self._work(backend, queue)))
        try:
            queue.put_nowait((line, tokens, document))
        except asyncio.QueueFull:
            self._lost(backend, document, "queue_full")

    @property
    def idle(self) -> bool:
        """Whether every notification was delivered or given up."""
        return all(queue._unfinished_tasks == 0 for queue in self._queues.values())  # type: ignore[attr-defined]

    async def drain(self, limit_s: float) -> None:
        """Wait until all that was handed over is delivered, but no longer than the limit in seconds."""
        joins = [asyncio.create_task(queue.join()) for queue in self._queues.values()]
        if joins:
            await asyncio.wait(joins, timeout=limit_s)
        for task in (*joins, *self._workers):
            task.cancel()

    async def _work(self, backend: str, queue: asyncio.Queue[tuple[bytes, Mapping[str, str], Mapping[str, Any]]]) -> None:
        while True:
            line, tokens, document = await queue.get()
            try:
                taken = await self.backends[backend].tell(line, tokens)
            except Exception:
                taken = False
            finally:
                queue.task_done()
            if not taken:
                self._lost(backend, document, "not_taken")

    def _lost(self, backend: str, document: Mapping[str, Any], why: str) -> None:
        self.audit.write(
            {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "event": document["id"],
                "type": document["type"],
                "observer": backend,
                "result": "operational_failure",
                "failure": why,
            }
        )
