"""The reference semantics of a chain: what a sequence of answers means for the tool call.

The bridge executes with this module, the equivalence checker reasons with it, and the property tests hold both against
the protocol's table (AHP-COMP-001, AHP-FAIL-001, section 14). A chain is either running or stopped, so one step says it all.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from ahp_compile.registration import FailurePolicy


class FailureClass(StrEnum):
    """Every way in which an interceptor can fail to answer (section 14.1, with 17.3 and 18.1)."""

    DEADLINE = "deadline_exceeded"
    BUSY = "backend_busy"
    CONNECTION = "connection_failed"
    LAUNCH = "launch_failed"
    EXIT = "abnormal_exit"
    HTTP_STATUS = "http_status"
    REDIRECT = "redirect"
    CONTENT_TYPE = "content_type"
    CREDENTIAL = "credential_unusable"
    MALFORMED = "malformed_response"
    MISMATCHED_ID = "mismatched_id"
    ERROR_RESPONSE = "error_response"
    VERSION = "unsupported_version"
    EVENT = "unsupported_event"
    MISSING_FIELD = "missing_result_field"
    EFFECT = "unusable_effect"


@frozen
class NoEffect:
    """The backend answered with an empty effect list: no objection, and no permission either (AHP-DEC-003)."""


@frozen
class Denial:
    """The backend's one valid deny effect, with its reason unchanged."""

    reason: str
    code: str | None = None


@frozen
class Failure:
    """The backend gave no usable answer within its deadline."""

    kind: FailureClass


Answer = NoEffect | Denial | Failure


class Cause(StrEnum):
    """Why a chain ended as it did."""

    NO_OBJECTION = "no_objection"
    EXPLICIT_DENIAL = "explicit_denial"
    SYNTHETIC_DENIAL = "synthetic_denial"


@frozen
class Verdict:
    """What happens to the tool call. ``reason`` is a backend's own words, so only an explicit denial has one."""

    cause: Cause
    reason: str | None = None

    @property
    def denies(self) -> bool:
        """Whether the call must not run."""
        return self.cause is not Cause.NO_OBJECTION


PROCEED = Verdict(Cause.NO_OBJECTION)
SYNTHETIC_DENIAL = Verdict(Cause.SYNTHETIC_DENIAL)


def step(on_failure: FailurePolicy, answer: Answer) -> Verdict | None:
    """Take one interceptor's answer: the verdict that stops the chain, or None when the next interceptor is asked.

    An explicit denial denies under either policy; it is not a failure.
    """
    match answer:
        case NoEffect():
            return None
        case Denial(reason=reason):
            return Verdict(Cause.EXPLICIT_DENIAL, reason)
        case Failure():
            return None if on_failure is FailurePolicy.FAIL_OPEN else SYNTHETIC_DENIAL


def run(steps: Iterable[tuple[FailurePolicy, Answer]]) -> Verdict:
    """Run a chain over its interceptors' answers in order; lazily, so a stopped chain asks for no further answer."""
    for on_failure, answer in steps:
        verdict = step(on_failure, answer)
        if verdict is not None:
            return verdict
    return PROCEED


def guard_verdict(policies: Iterable[FailurePolicy]) -> Verdict:
    """What a bridge that could not run means for the call: denial as soon as one interceptor of the chain is fail-closed."""
    return run((policy, Failure(FailureClass.LAUNCH)) for policy in policies)
