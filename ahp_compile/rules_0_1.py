"""The registration of protocol version 0.1: every rule of section 19, and of 6, 13, 17 and 18 as far as they bear on it."""

from __future__ import annotations

import posixpath
import re
from decimal import Decimal, InvalidOperation

from attrs import define, field

from ahp_compile.endpoint import check_url
from ahp_compile.problems import Problems
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
from ahp_compile.source import Member, Node, Number, Object, Span

_ID = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL_CREDENTIALS = ("token", "bearerToken", "value")
_LONGEST_MS = 2**53 - 1
_MOST_DIGITS = 16
_EVENTS = tuple(one.value for one in Event)

_BACKEND_FIELDS = ("id", "transport", "authentication", "subscriptions")
_TRANSPORT_FIELDS = {"stdio": ("type", "command", "args", "lifecycle", "cwd"), "http": ("type", "url")}
_AUTHENTICATION_FIELDS = ("type", "tokenEnv", *_LITERAL_CREDENTIALS)
_SUBSCRIPTION_FIELDS = ("events", "mode", "timeoutMs", "failurePolicy", "includeNative")

_BELONGS = {
    **dict.fromkeys(_SUBSCRIPTION_FIELDS, "It belongs to a subscription."),
    **dict.fromkeys(("command", "args", "lifecycle", "cwd"), "It belongs to a stdio transport."),
    "url": "It belongs to an http transport.",
    "tokenEnv": "It belongs to authentication.",
    "authentication": "It belongs to the backend, beside transport.",
    "subscriptions": "It belongs to the backend, beside transport.",
    "transport": "It belongs to a backend.",
    "hooks": "It belongs to the document's root.",
}
_PLACEHOLDER = Stdio("", (), Lifecycle.PER_EVENT)


@define
class _Reading:
    """What is known while one document is read."""

    problems: Problems
    ids: dict[str, Span] = field(factory=dict)


def read(root: Object, problems: Problems) -> Registration:
    """Read a root object. Every problem is noted; the registration counts only when no error was."""
    problems.unknown_fields(root, "", ("protocolVersion", "hooks"), _BELONGS)
    reading = _Reading(problems)
    hooks = problems.required(root, Span(0, 1), "", "hooks")
    nodes = problems.of_type(hooks.value, list, "hooks") if hooks is not None else None
    if hooks is not None and nodes is not None and not nodes:
        problems.error("no-hooks", hooks.value.span, "hooks", "The hooks array is empty.", "Name at least one backend.")
    backends = [_backend(reading, node, f"hooks[{index}]") for index, node in enumerate(nodes or [])]
    return Registration("0.1", tuple(one for one in backends if one is not None))


def _backend(reading: _Reading, node: Node, path: str) -> Backend | None:
    problems = reading.problems
    holder = problems.of_type(node, Object, path)
    if holder is None:
        return None
    problems.unknown_fields(holder, path, _BACKEND_FIELDS, _BELONGS)
    start = Span(node.span.start, node.span.start + 1)
    identity = problems.required(holder, start, path, "id")
    transport = problems.required(holder, start, path, "transport")
    subscriptions = problems.required(holder, start, path, "subscriptions")
    return Backend(
        _id(reading, identity, f"{path}.id") if identity else "",
        _transport(problems, transport.value, holder.get("authentication"), path) if transport else _PLACEHOLDER,
        _subscriptions(problems, subscriptions.value, f"{path}.subscriptions") if subscriptions else (),
    )


def _id(reading: _Reading, member: Member, path: str) -> str:
    problems, span = reading.problems, member.value.span
    value = problems.of_type(member.value, str, path)
    if value is None:
        return ""
    if not _ID.fullmatch(value):
        message = "A backend id is at least two labels joined by dots, each beginning with a letter."
        problems.error("bad-id", span, path, message, "Write a reverse-DNS name such as com.example.policy.")
    elif value in reading.ids:
        line = problems.line_of(reading.ids[value])
        message = f"This id is already the one of the backend in line {line}."
        problems.error("duplicate-id", span, path, message, "Give each backend an id of its own.")
    reading.ids.setdefault(value, span)
    return value


def _transport(problems: Problems, node: Node, authentication: Member | None, path: str) -> Transport:
    token_env = _authentication(problems, authentication.value, f"{path}.authentication") if authentication else None
    path = f"{path}.transport"
    holder = problems.of_type(node, Object, path)
    kind = problems.required(holder, Span(node.span.start, node.span.start + 1), path, "type") if holder else None
    word = problems.word(kind.value, f"{path}.type", _TRANSPORT_FIELDS) if kind else None
    if holder is None or word is None:
        return _PLACEHOLDER
    problems.unknown_fields(holder, path, _TRANSPORT_FIELDS[word], _BELONGS)
    if word == "http":
        return _http(problems, node, holder, path, token_env)
    if authentication is not None:
        message = "A stdio backend has no authentication: only http requests carry a token."
        problems.error(
            "authentication-on-stdio", authentication.span, path.replace("transport", "authentication"), message, "Remove it."
        )
    return _stdio(problems, node, holder, path)


def _authentication(problems: Problems, node: Node, path: str) -> str | None:
    holder = problems.of_type(node, Object, path)
    if holder is None:
        return None
    problems.unknown_fields(holder, path, _AUTHENTICATION_FIELDS, _BELONGS)
    for name in _LITERAL_CREDENTIALS:
        member = holder.get(name)
        if member is not None:
            message = "A credential may not stand in the document, whatever its value."
            cure = "Put the token into an environment variable and name that in tokenEnv; treat this token as disclosed."
            problems.error("literal-credential", member.span, f"{path}.{name}", message, cure)
    start = Span(node.span.start, node.span.start + 1)
    kind = problems.required(holder, start, path, "type")
    if kind is not None:
        problems.word(kind.value, f"{path}.type", ("bearer",))
    variable = problems.required(holder, start, path, "tokenEnv")
    if variable is None:
        return None
    name_path = f"{path}.tokenEnv"
    value = problems.of_type(variable.value, str, name_path)
    if value is not None and not _VARIABLE.fullmatch(value):
        message = "This is no name of an environment variable."
        cure = "Write the variable's name, not the token: letters, digits and underscores, no digit first."
        problems.error("bad-variable-name", variable.value.span, name_path, message, cure)
    return value


def _http(problems: Problems, node: Node, holder: Object, path: str, token_env: str | None) -> Http:
    member = problems.required(holder, Span(node.span.start, node.span.start + 1), path, "url")
    url = problems.of_type(member.value, str, f"{path}.url") if member else None
    if member is not None and url is not None:
        check_url(problems, url, member.value.span, f"{path}.url")
    return Http(url or "", token_env)


def _stdio(problems: Problems, node: Node, holder: Object, path: str) -> Stdio:
    start = Span(node.span.start, node.span.start + 1)
    command = problems.required(holder, start, path, "command")
    lifecycle = problems.required(holder, start, path, "lifecycle")
    cwd, args = holder.get("cwd"), holder.get("args")
    word = problems.word(lifecycle.value, f"{path}.lifecycle", Lifecycle) if lifecycle else None
    return Stdio(
        _command(problems, command.value, f"{path}.command") if command else "",
        _args(problems, args.value, f"{path}.args") if args else (),
        Lifecycle(word) if word else Lifecycle.PER_EVENT,
        _cwd(problems, cwd.value, f"{path}.cwd") if cwd else None,
    )


def _command(problems: Problems, node: Node, path: str) -> str:
    command = problems.of_type(node, str, path)
    if command is None:
        return ""
    if command == "":
        problems.error("bad-command", node.span, path, "The command is empty.", "Name a program.")
        return ""
    if "/" not in command and not command.startswith("~") and "\\" not in command:
        return _without_nul(problems, command, node, path)
    return _path(problems, command, node, path)


def _cwd(problems: Problems, node: Node, path: str) -> str | None:
    cwd = problems.of_type(node, str, path)
    return None if cwd is None else _path(problems, cwd, node, path)


def _path(problems: Problems, value: str, node: Node, path: str) -> str:
    """An absolute path, or one that --base-dir fixes; nothing at run time knows what another would be relative to."""
    if value.startswith("~"):
        message = "A leading ~ means a home only to a shell, and none sees this."
        problems.error("ambiguous-path", node.span, path, message, "Write the path in full.")
        return value
    if posixpath.isabs(value):
        return _without_nul(problems, value, node, path)
    if problems.base_dir is None:
        message = "This path is relative, and the harness's own directory changes while it runs."
        problems.error("ambiguous-path", node.span, path, message, "Write the path in full, or say --base-dir DIR.")
        return value
    return _without_nul(problems, posixpath.normpath(posixpath.join(problems.base_dir, value)), node, path)


def _args(problems: Problems, node: Node, path: str) -> tuple[str, ...]:
    nodes = problems.of_type(node, list, path) or []
    values = []
    for index, one in enumerate(nodes):
        value = problems.of_type(one, str, f"{path}[{index}]")
        if value is not None:
            values.append(_without_nul(problems, value, one, f"{path}[{index}]"))
    return tuple(values)


def _without_nul(problems: Problems, value: str, node: Node, path: str) -> str:
    if "\0" in value:
        message = "A NUL character cannot be passed to a program."
        problems.error("bad-command", node.span, path, message, "Remove the \\u0000.")
    return value


def _subscriptions(problems: Problems, node: Node, path: str) -> tuple[Subscription, ...]:
    nodes = problems.of_type(node, list, path)
    if nodes is None:
        return ()
    if not nodes:
        message = "A backend without subscriptions is never asked."
        problems.error("no-subscriptions", node.span, path, message, "Add a subscription, or remove the backend.")
    taken: dict[tuple[str, str], Span] = {}
    found = [_subscription(problems, one, f"{path}[{index}]", taken) for index, one in enumerate(nodes)]
    return tuple(one for one in found if one is not None)


def _subscription(problems: Problems, node: Node, path: str, taken: dict[tuple[str, str], Span]) -> Subscription | None:
    holder = problems.of_type(node, Object, path)
    if holder is None:
        return None
    problems.unknown_fields(holder, path, _SUBSCRIPTION_FIELDS, _BELONGS)
    start = Span(node.span.start, node.span.start + 1)
    native = _include_native(problems, holder, path)
    mode = problems.required(holder, start, path, "mode")
    word = problems.word(mode.value, f"{path}.mode", ("intercept", "observe")) if mode else None
    member = problems.required(holder, start, path, "events")
    events = _events(problems, member.value, f"{path}.events") if member else ()
    if word is None:
        return None
    for event, span in events:
        _check_overlap(problems, taken, (event.value, word), span, f"{path}.events")
    if word == "observe":
        _forbid_decision_fields(problems, holder, path)
        return Observe(tuple(event for event, _ in events), native)
    for event, span in events:
        if event is not Event.TOOL_BEFORE:
            message = f"{event} cannot be intercepted: only tool.before can."
            problems.error("bad-events", span, f"{path}.events", message, 'Write ["tool.before"], or observe this event.')
    deadline_ms = _timeout(problems, holder, start, path)
    policy = problems.required(holder, start, path, "failurePolicy")
    policy_word = problems.word(policy.value, f"{path}.failurePolicy", FailurePolicy) if policy else None
    return Intercept(Event.TOOL_BEFORE, deadline_ms, FailurePolicy(policy_word or "fail-closed"), native)


def _include_native(problems: Problems, holder: Object, path: str) -> bool:
    member = holder.get("includeNative")
    if member is None:
        return False
    return problems.of_type(member.value, bool, f"{path}.includeNative") or False


def _events(problems: Problems, node: Node, path: str) -> list[tuple[Event, Span]]:
    nodes = problems.of_type(node, list, path)
    if nodes is not None and not nodes:
        problems.error(
            "bad-events", node.span, path, "The events array is empty.", f"Name one or more of: {', '.join(_EVENTS)}."
        )
    events: list[tuple[Event, Span]] = []
    for index, one in enumerate(nodes or []):
        here = f"{path}[{index}]"
        if isinstance(one.value, str) and "*" in one.value:
            message = "Version 0.1 has no wildcards or matchers: events are named one by one."
            problems.error("unknown-word", one.span, here, message, f"Name one or more of: {', '.join(_EVENTS)}.")
            continue
        word = problems.word(one, here, _EVENTS)
        if word is None:
            continue
        if any(event.value == word for event, _ in events):
            problems.error("bad-events", one.span, here, "This event is named twice.", "Name it once.")
        else:
            events.append((Event(word), one.span))
    return events


def _check_overlap(problems: Problems, taken: dict[tuple[str, str], Span], key: tuple[str, str], span: Span, path: str) -> None:
    if key in taken:
        line = problems.line_of(taken[key])
        message = f"This backend already subscribes to {key[0]} in mode {key[1]}, in line {line}."
        problems.error("overlapping-subscription", span, path, message, "Keep one of the two subscriptions.")
    taken.setdefault(key, span)


def _forbid_decision_fields(problems: Problems, holder: Object, path: str) -> None:
    for name in ("timeoutMs", "failurePolicy"):
        member = holder.get(name)
        if member is not None:
            message = "An observer decides nothing, so it has no such field."
            problems.error("decision-field-on-observe", member.span, f"{path}.{name}", message, f"Remove {name}, or intercept.")


def _timeout(problems: Problems, holder: Object, start: Span, path: str) -> int:
    member = problems.required(holder, start, path, "timeoutMs")
    if member is None:
        return 1
    here, node = f"{path}.timeoutMs", member.value
    milliseconds = _whole(node.value.text) if isinstance(node.value, Number) else None
    if milliseconds is None or not 1 <= milliseconds <= _LONGEST_MS:
        message = "timeoutMs is a positive whole number of milliseconds."
        problems.error("bad-timeout", node.span, here, message, "Write a number such as 750, without quotes.")
        return 1
    return milliseconds


def _whole(text: str) -> int | None:
    """The integer that a number is, 750.0 and 7.5e2 included; None for a fraction and for anything beyond 2^53."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    # The size comes first: arithmetic on an exponent of a billion would overflow or take for ever.
    if number.adjusted() > _MOST_DIGITS or number != number.to_integral_value() or abs(number) > _LONGEST_MS:
        return None
    return int(number)
