"""Emitting the guard: the one command line that harnesses with command hooks run.

The line starts the bridge and turns whatever becomes of it into the harness's own dialect. The bridge must prove that it
decided: to let a call proceed it prints one fixed token and exits 0, to deny it prints the text for the harness and exits
77. Everything else, silence and an interpreter's own exit 2 included, is a bridge that could not run, and becomes the
chain's guard verdict. On Linux a watchdog bounds the time from outside as well.
"""

from __future__ import annotations

import shlex
from enum import Enum

from attrs import frozen

from ahp_compile.placement import Os, Placement
from ahp_compile.plan import EventPlan, Plan
from ahp_compile.target import Request

MARGIN_MS = 500
"""How much longer than the guard the harness must wait: the shell's own start and end."""


class Stream(Enum):
    """Where a harness reads the text of a denial."""

    STDOUT = 1
    STDERR = 2


@frozen
class Dialect:
    """How a harness is told of a denial by a command hook: an exit code, and a text on one of its streams.

    ``prefix`` is printed before the bridge's text, where a harness takes a blank text for no denial. ``unavailable`` is the
    whole text of a synthetic denial; it has neither a percent sign nor a backslash.
    """

    deny_exit: int
    stream: Stream
    prefix: str
    unavailable: str


def bridge_words(request: Request, event: EventPlan) -> tuple[str, ...]:
    """The bridge's command line for one event: the contract between native entries and the bridge's client."""
    return (
        request.placement.bridge,
        "-I",
        "-S",
        request.bridge.client,
        "--plan",
        request.bridge.plan,
        "--digest",
        request.bridge.digest,
        "--event",
        event.event.value,
        "--budget-ms",
        str(event.budget_ms),
        "--guard",
        "deny" if event.guard.denies else "proceed",
    )


def native_timeout_s(event: EventPlan, plan: Plan) -> int:
    """The harness's own timeout for one event in whole seconds, rounded up: later than everything that bounds the bridge."""
    return -(-(event.budget_ms + plan.timing.kill_ms + MARGIN_MS) // 1000)


def command_line(request: Request, event: EventPlan, dialect: Dialect) -> str:
    """The POSIX shell line for one event's native hook. Words are quoted exactly, whatever their characters."""
    if not event.interceptors:
        return f"exec >/dev/null 2>&1; {_bounded(request, event)}{shlex.join(bridge_words(request, event))}; exit 0"
    line = _interceptor_line(request, event, dialect)
    return line


def _interceptor_line(request: Request, event: EventPlan, dialect: Dialect) -> str:
    # The shell's own words ("Killed", paths of missing programs) must not reach the model, hence the silenced stderr; no
    # process of the bridge may hold a stream of the harness, hence the inner shell and the closed descriptor.
    keep = f"exec 3>&{dialect.stream.value} 2>/dev/null"
    judge = f"{_bounded(request, event)}/bin/sh -c {shlex.quote(_judge_script(dialect))} ahp"
    words = shlex.join(bridge_words(request, event))
    if event.guard.denies:
        otherwise = f"printf %s {shlex.quote(dialect.unavailable)} >&3; exit {dialect.deny_exit}"
    else:
        otherwise = "exit 0"
    return f"{keep}; {judge} {words} >&3 3>&-; case $? in 70) exit 0;; 77) exit {dialect.deny_exit};; *) {otherwise};; esac"


def _judge_script(dialect: Dialect) -> str:
    """Exits 70 for a proven proceed and 77 after passing on a denial's text; any other status means that nothing was proven."""
    return (
        'r=$("$@"); s=$?; '
        'if [ "$s" = 0 ] && [ "$r" = ahp-proceed-1 ]; then exit 70; fi; '
        f'if [ "$s" = 77 ] && [ -n "$r" ]; then printf %s {_double_quoted(dialect.prefix)}"$r"; exit 77; fi; '
        "exit 71"
    )


def _double_quoted(text: str) -> str:
    return f'"{text}"' if text else ""


def _bounded(request: Request, event: EventPlan) -> str:
    placement: Placement = request.placement
    if placement.os is not Os.LINUX:
        return ""
    kill, bound = _seconds(request.plan.timing.kill_ms), _seconds(event.budget_ms)
    return f"{shlex.quote(placement.watchdog)} -k {kill} {bound} "


def _seconds(milliseconds: int) -> str:
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")
