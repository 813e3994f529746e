"""Running one event: its chain, by the reference semantics, and the hand-over to its observers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from ahp_compile import semantics
from ahp_compile.bridge import event as events
from ahp_compile.bridge import wire
from ahp_compile.bridge.audit import Audit
from ahp_compile.bridge.backend import Ask, Backend
from ahp_compile.bridge.observers import Observers
from ahp_compile.bridge.wire import Reply
from ahp_compile.plan import EventPlan, Interceptor, Plan
from ahp_compile.registration import Event
from ahp_compile.semantics import PROCEED, Denial, Failure, Verdict
from ahp_compile.target import Codec


@frozen
class Judge:
    """What stays the same from event to event in one bridge."""

    plan: Plan
    codec: Codec
    backends: Mapping[str, Backend]
    observers: Observers
    audit: Audit
    source: str

    async def judge(self, event: Event, payload: dict[str, Any], tokens: Mapping[str, str]) -> Verdict:
        """Run one event to its verdict. Raises ValueError when the plan or the payload says too little to ask anybody."""
        planned = self.plan.event(event)
        if planned is None:
            raise ValueError(f"the plan has no {event}")
        native = self.codec.decode(event, payload)
        document = events.build(event, native, self.source)
        with_native = events.with_native(document, self.codec.provider, native, payload)
        self._hand_over(planned, document, with_native, tokens)
        return await self._run_chain(planned, document, with_native, tokens)

    def _hand_over(
        self, planned: EventPlan, document: dict[str, Any], with_native: dict[str, Any], tokens: Mapping[str, str]
    ) -> None:
        for observer in planned.observers:
            told = with_native if observer.include_native else document
            self.observers.hand_over(observer.backend, wire.observe(told), tokens, document)

    async def _run_chain(
        self, planned: EventPlan, document: dict[str, Any], with_native: dict[str, Any], tokens: Mapping[str, str]
    ) -> Verdict:
        asked: list[dict[str, Any]] = []
        verdict = PROCEED
        # All starts of one event share the one allowance that the budget has for them.
        start_until_s = asyncio.get_running_loop().time() + self.plan.timing.start_ms / 1000
        for interceptor in planned.interceptors:
            told = with_native if interceptor.include_native else document
            began = time.monotonic()
            reply = await self._ask(interceptor, told, start_until_s, tokens)
            asked.append(_account(interceptor, reply, began))
            stopped = semantics.step(interceptor.on_failure, reply.answer)
            if stopped is not None:
                verdict = stopped
                break
        if planned.interceptors:
            self.audit.write(_entry(self.plan, document, verdict, asked))
        return verdict

    async def _ask(
        self, interceptor: Interceptor, told: dict[str, Any], start_until_s: float, tokens: Mapping[str, str]
    ) -> Reply:
        ask = Ask(wire.intercept(told), told["id"], interceptor.wait_ms, interceptor.deadline_ms, start_until_s, tokens)
        return await self.backends[interceptor.backend].ask(ask)


def _account(interceptor: Interceptor, reply: Reply, began: float) -> dict[str, Any]:
    """One interceptor's part in the audit, in the inspector's result words."""
    account: dict[str, Any] = {"backend": interceptor.backend, "ms": round((time.monotonic() - began) * 1000, 1)}
    match reply.answer:
        case Denial(code=code):
            account |= {"result": "explicit_deny"} | ({"code": code} if code else {})
        case Failure(kind=kind):
            account |= {"result": "operational_failure", "failure": kind.value, "policy": interceptor.on_failure.value}
        case _:
            account["result"] = "no_effect"
    if reply.error_code is not None:
        account["error"] = reply.error_code
    if reply.supported:
        account["supported"] = list(reply.supported)
    return account


def _entry(plan: Plan, document: Mapping[str, Any], verdict: Verdict, asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "target": plan.target,
        "event": document["id"],
        "type": document["type"],
        "session": document["session"]["id"],
        "call": document.get("tool", {}).get("callId"),
        "verdict": verdict.cause.value,
        "asked": asked,
    }
