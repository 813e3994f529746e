"""Hypothesis strategies: registrations, and the documents that say them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

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
    Subscription,
    Transport,
)

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
labels = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,6}", fullmatch=True)
ids = st.lists(labels, min_size=2, max_size=4).map(".".join)
deadlines = st.integers(1, 600_000)
paths = text.map(lambda one: "/" + one)
commands = st.one_of(paths, st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True))
stdio = st.builds(
    Stdio, commands, st.lists(text, max_size=4).map(tuple), st.sampled_from(Lifecycle), st.one_of(st.none(), paths)
)
urls = st.sampled_from(
    [
        "https://policy.example.com",
        "https://a.example:8443/ahp?x=1",
        "http://127.0.0.1:9/a",
        "http://[::1]/",
        "http://localhost:1",
    ]
)
http = st.builds(Http, urls, st.one_of(st.none(), st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)))
transports: st.SearchStrategy[Transport] = st.one_of(stdio, http)


@st.composite
def subscriptions(draw: st.DrawFn) -> tuple[Subscription, ...]:
    """Each (event, mode) at most once."""
    found: list[Subscription] = []
    if draw(st.booleans()):
        found.append(Intercept(Event.TOOL_BEFORE, draw(deadlines), draw(st.sampled_from(FailurePolicy)), draw(st.booleans())))
    events = draw(st.lists(st.sampled_from(Event), unique=True, max_size=5, min_size=0 if found else 1))
    cut = draw(st.integers(0, len(events)))
    found += [Observe(tuple(some), draw(st.booleans())) for some in (events[:cut], events[cut:]) if some]
    return tuple(draw(st.permutations(found)))


@st.composite
def registrations(draw: st.DrawFn) -> Registration:
    names = draw(st.lists(ids, min_size=1, max_size=5, unique=True))
    return Registration("0.1", tuple(Backend(name, draw(transports), draw(subscriptions())) for name in names))


def document_of(registration: Registration) -> dict[str, Any]:
    """The portable document that says a registration, optional fields left out where they have their default."""
    return {"protocolVersion": registration.protocol_version, "hooks": [_backend(one) for one in registration.backends]}


def _backend(backend: Backend) -> dict[str, Any]:
    document: dict[str, Any] = {"id": backend.id, "transport": _transport(backend.transport)}
    if isinstance(backend.transport, Http) and backend.transport.token_env is not None:
        document["authentication"] = {"type": "bearer", "tokenEnv": backend.transport.token_env}
    document["subscriptions"] = [_subscription(one) for one in backend.subscriptions]
    return document


def _transport(transport: Transport) -> dict[str, Any]:
    if isinstance(transport, Http):
        return {"type": "http", "url": transport.url}
    document: dict[str, Any] = {"type": "stdio", "command": transport.command, "lifecycle": transport.lifecycle.value}
    if transport.args:
        document["args"] = list(transport.args)
    if transport.cwd is not None:
        document["cwd"] = transport.cwd
    return document


def _subscription(subscription: Subscription) -> dict[str, Any]:
    match subscription:
        case Intercept():
            document: dict[str, Any] = {
                "mode": "intercept",
                "events": [subscription.event.value],
                "timeoutMs": subscription.deadline_ms,
                "failurePolicy": subscription.on_failure.value,
            }
        case Observe():
            document = {"mode": "observe", "events": [one.value for one in subscription.events]}
    return document | ({"includeNative": True} if subscription.include_native else {})
