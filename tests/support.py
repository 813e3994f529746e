"""What many tests need: registrations, placements and compiles."""

from __future__ import annotations

from ahp_compile import target
from ahp_compile.compiler import Compilation, compile_registration
from ahp_compile.judgement import Stance
from ahp_compile.placement import Placement
from ahp_compile.registration import (
    Backend,
    Event,
    FailurePolicy,
    Http,
    Intercept,
    Lifecycle,
    Observe,
    Registration,
    Stdio,
)

TARGETS = ("claude-code", "codex", "hermes")

CODEX_HOLES = frozenset(
    f"{kind}.{name}" for kind in ("enforcement", "observation") for name in ("write-stdin", "web-search", "code-mode")
) | {"observation.tool-error", "observation.tool-after"}

PLACEMENT = Placement(home="/home/ada", bridge="/opt/ahp/bin/python3")


def intercept(deadline_ms: int = 750, policy: FailurePolicy = FailurePolicy.FAIL_CLOSED, *, native: bool = False) -> Intercept:
    return Intercept(Event.TOOL_BEFORE, deadline_ms, policy, native)


def both_policies() -> Registration:
    """A chain with every kind of backend in it, and observers of every event."""
    return Registration(
        "0.1",
        (
            Backend("com.example.cloud", Http("https://policy.example.com/ahp", "ACME_TOKEN"), (intercept(),)),
            Backend(
                "com.example.local",
                Stdio("/opt/Acme Tools/guard", ("serve", "two words", ""), Lifecycle.PERSISTENT, "/var/lib/guard"),
                (intercept(500, FailurePolicy.FAIL_OPEN, native=True), Observe((Event.TOOL_BEFORE, Event.TOOL_AFTER))),
            ),
            Backend("com.example.once", Stdio("guard", (), Lifecycle.PER_EVENT), (intercept(300),)),
            Backend("com.example.audit", Http("http://127.0.0.1:9000/audit"), (Observe(tuple(Event), True),)),
        ),
    )


def one_interceptor(policy: FailurePolicy = FailurePolicy.FAIL_CLOSED, deadline_ms: int = 750) -> Registration:
    return Registration(
        "0.1",
        (
            Backend(
                "com.example.guard", Stdio("/opt/guard", ("serve",), Lifecycle.PER_EVENT), (intercept(deadline_ms, policy),)
            ),
        ),
    )


def only_observers() -> Registration:
    audit = Stdio("/opt/audit", (), Lifecycle.PERSISTENT)
    return Registration("0.1", (Backend("com.example.audit", audit, (Observe(tuple(Event)),)),))


def compiled(
    registration: Registration,
    name: str,
    placement: Placement = PLACEMENT,
    stance: Stance | None = None,
    *,
    close: frozenset[str] = frozenset(),
    trust_our_hook: bool = False,
) -> Compilation:
    """Compile for a target by name; the holes that Codex has are accepted unless a stance says otherwise."""
    stance = stance or Stance(accepted=CODEX_HOLES)
    return compile_registration(registration, target.load(name), placement, stance, close=close, trust_our_hook=trust_our_hook)


def files_of(compilation: Compilation) -> dict[str, bytes]:
    return {one.destination: one.content for one in compilation.artifacts}
