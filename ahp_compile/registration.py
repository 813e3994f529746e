"""The registration: the portable document, parsed and valid, free of how it was written.

Every wire version of the protocol is read into these same models, so nothing behind the front end knows versions.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Event(StrEnum):
    """The events that a backend may subscribe to (protocol section 10)."""

    TOOL_BEFORE = "tool.before"
    TOOL_AFTER = "tool.after"
    TOOL_ERROR = "tool.error"
    SESSION_START = "session.start"
    SESSION_END = "session.end"


class FailurePolicy(StrEnum):
    """What an operational failure of an interceptor means for the call (AHP-FAIL-001)."""

    FAIL_OPEN = "fail-open"
    FAIL_CLOSED = "fail-closed"


class Lifecycle(StrEnum):
    """How long a stdio backend's process lives (protocol section 17)."""

    PERSISTENT = "persistent"
    PER_EVENT = "per_event"


@frozen
class Stdio:
    """A backend that is started as a process: command and args go to it byte for byte, without any shell."""

    command: str
    args: tuple[str, ...]
    lifecycle: Lifecycle
    cwd: str | None = None


@frozen
class Http:
    """A backend that is asked by POST; token_env names the variable that holds its bearer token, never the token."""

    url: str
    token_env: str | None = None


Transport = Stdio | Http


@frozen
class Intercept:
    """A subscription whose answer decides; deadline_ms spans connect to parse (AHP-FAIL-002)."""

    event: Event
    deadline_ms: int
    on_failure: FailurePolicy
    include_native: bool = False


@frozen
class Observe:
    """A one-way subscription to one or more events."""

    events: tuple[Event, ...]
    include_native: bool = False


Subscription = Intercept | Observe


@frozen
class Backend:
    """One entry of the document's hooks array."""

    id: str
    transport: Transport
    subscriptions: tuple[Subscription, ...]


@frozen
class Registration:
    """A valid document: the order of backends is the order in which interceptors are asked (AHP-COMP-001)."""

    protocol_version: str
    backends: tuple[Backend, ...]
