"""The plan: the IR that every target compiles, and the lowering of a registration into it.

A plan says for each event which interceptors are asked, in order and for how long, and which observers are told. It holds
every number that a harness's own hook timeout is derived from, and nothing that is particular to one harness but its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ahp_compile import semantics
from ahp_compile.registration import (
    Event,
    FailurePolicy,
    Intercept,
    Lifecycle,
    Observe,
    Registration,
    Stdio,
    Transport,
)

PLAN_FORMAT = 1
"""Version of the plan file; a bridge that does not know it falls back to the guard's verdict."""


@frozen
class Interceptor:
    """One backend's turn in a chain.

    ``wait_ms`` is how long it may wait for a busy persistent backend before its turn counts as an operational failure;
    ``deadline_ms`` then spans connect to parse (AHP-FAIL-002).
    """

    backend: str
    deadline_ms: int
    wait_ms: int
    on_failure: FailurePolicy
    include_native: bool = False


@frozen
class Observer:
    """One backend that is told of an event and never waited for."""

    backend: str
    include_native: bool = False


@frozen
class EventPlan:
    """What one event means: a chain of interceptors, a set of observers, and the time all of it may take.

    ``budget_ms`` is how long the bridge may take from its first instruction to its answer.
    """

    event: Event
    interceptors: tuple[Interceptor, ...]
    observers: tuple[Observer, ...]
    budget_ms: int = 0

    @property
    def backends(self) -> frozenset[str]:
        """Ids of all backends that have a part in this event."""
        return frozenset({one.backend for one in self.interceptors} | {one.backend for one in self.observers})

    @property
    def guard(self) -> semantics.Verdict:
        """The verdict when the bridge itself could not run (obligation guard)."""
        return semantics.guard_verdict(one.on_failure for one in self.interceptors)


@frozen
class PlannedBackend:
    """How to reach one backend, exactly as the document says."""

    id: str
    transport: Transport


@frozen
class Timing:
    """The allowances around a chain, in milliseconds.

    ``start_ms`` is for starting the bridge and its persistent backends, ``kill_ms`` for ending what overran, and
    ``max_parallel`` is how many tool calls a harness may make at once: so many can queue for one persistent backend.
    """

    start_ms: int = 2000
    kill_ms: int = 500
    max_parallel: int = 8


@frozen
class Plan:
    """Everything that the bridge and the checker need to know about one registration on one target.

    ``state_dir`` is where the audit is kept; None is below the home of whoever runs the harness.
    """

    protocol_version: str
    target: str
    timing: Timing
    search_path: str
    state_dir: str | None
    backends: tuple[PlannedBackend, ...]
    events: tuple[EventPlan, ...]

    def event(self, event: Event) -> EventPlan | None:
        """The plan of one event, or None when no backend subscribed to it: there is then no AHP step at all."""
        return next((one for one in self.events if one.event is event), None)

    def token_variables(self, event: EventPlan | None = None) -> tuple[str, ...]:
        """Names of the variables that hold bearer tokens, sorted: all, or those that one event's backends need."""
        wanted = event.backends if event else None
        names = {
            token
            for backend in self.backends
            if (wanted is None or backend.id in wanted) and (token := getattr(backend.transport, "token_env", None))
        }
        return tuple(sorted(names))


def lower(
    registration: Registration,
    target: str,
    *,
    search_path: str,
    state_dir: str | None = None,
    timing: Timing | None = None,
) -> Plan:
    """Lower a valid registration for one target (its name): document order becomes chain order (AHP-COMP-001).

    ``search_path`` is where bare commands will be looked up, ``state_dir`` where the audit is kept; ``timing`` are the
    allowances around the deadlines.
    """
    timing = timing or Timing()
    events = (_plan_event(registration, event, timing) for event in Event)
    return Plan(
        protocol_version=registration.protocol_version,
        target=target,
        timing=timing,
        search_path=search_path,
        state_dir=state_dir,
        backends=tuple(PlannedBackend(one.id, one.transport) for one in registration.backends),
        events=tuple(one for one in events if one.interceptors or one.observers),
    )


def _plan_event(registration: Registration, event: Event, timing: Timing) -> EventPlan:
    interceptors = []
    observers = []
    for backend in registration.backends:
        for subscription in backend.subscriptions:
            match subscription:
                case Intercept() if subscription.event is event:
                    wait_ms = _wait_ms(backend.transport, subscription.deadline_ms, timing)
                    interceptors.append(
                        Interceptor(
                            backend.id,
                            subscription.deadline_ms,
                            wait_ms,
                            subscription.on_failure,
                            subscription.include_native,
                        )
                    )
                case Observe() if event in subscription.events:
                    observers.append(Observer(backend.id, subscription.include_native))
    return EventPlan(event, tuple(interceptors), tuple(observers), budget_ms(interceptors, timing))


def _wait_ms(transport: Transport, deadline_ms: int, timing: Timing) -> int:
    """A persistent backend has one outstanding request (section 17), so every other parallel call may be before this one."""
    if isinstance(transport, Stdio) and transport.lifecycle is Lifecycle.PERSISTENT:
        return (timing.max_parallel - 1) * deadline_ms
    return 0


def budget_ms(interceptors: Sequence[Interceptor], timing: Timing) -> int:
    """How long the bridge may take for one event, in milliseconds; without interceptors it only hands the event over."""
    if not interceptors:
        return timing.start_ms
    return sum(one.wait_ms + one.deadline_ms for one in interceptors) + timing.start_ms + timing.kill_ms
