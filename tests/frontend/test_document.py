"""The rules of a registration: each valid and invalid, at its place, all in one run, and never a secret in a message."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from ahp_compile import diagnostics, document, versions
from ahp_compile.diagnostics import CODES, DocumentError, Severity
from ahp_compile.registration import Http, Intercept, Registration, Stdio
from ahp_compile.source import Position
from tests.strategies import document_of, registrations

VALID: dict[str, Any] = {
    "protocolVersion": "0.1",
    "hooks": [
        {
            "id": "com.example.cloud",
            "transport": {"type": "http", "url": "https://policy.example.com/ahp"},
            "authentication": {"type": "bearer", "tokenEnv": "ACME_TOKEN"},
            "subscriptions": [
                {"events": ["tool.before"], "mode": "intercept", "timeoutMs": 750, "failurePolicy": "fail-closed"},
                {"events": ["tool.before", "tool.after"], "mode": "observe"},
            ],
        },
        {
            "id": "com.example.local",
            "transport": {
                "type": "stdio",
                "command": "/opt/guard",
                "args": ["serve"],
                "lifecycle": "persistent",
                "cwd": "/var",
            },
            "subscriptions": [{"events": ["session.end"], "mode": "observe", "includeNative": True}],
        },
    ],
}


def read(value: Any, **options: Any) -> document.Reading:
    return document.read("r.json", json.dumps(value).encode(), **options)


def codes(value: Any, **options: Any) -> list[str]:
    return [one.code for one in read(value, **options).diagnostics]


def changed(*path: Any, to: Any = ..., without: Any = None) -> Any:
    """The valid document with the value at a path replaced, or with a member there left out."""
    value = copy.deepcopy(VALID)
    holder = value
    for step in path[:-1] if to is not ... else path:
        holder = holder[step]
    if to is not ...:
        holder[path[-1]] = to
    else:
        del holder[without]
    return value


CLOUD, LOCAL = ("hooks", 0), ("hooks", 1)
HTTP, STDIO = (*CLOUD, "transport"), (*LOCAL, "transport")
AUTH = (*CLOUD, "authentication")
CHAIN, WATCH = (*CLOUD, "subscriptions", 0), (*CLOUD, "subscriptions", 1)


def test_the_valid_document_is_valid() -> None:
    reading = read(VALID)
    assert reading.diagnostics == ()
    assert reading.registration is not None
    assert [one.id for one in reading.registration.backends] == ["com.example.cloud", "com.example.local"]


CHAINED, OBSERVED = "hooks[0].subscriptions[0]", "hooks[0].subscriptions[1]"

INVALID = [
    ("root is an array", [], ["wrong-type"], ""),
    ("root is null", None, ["wrong-type"], ""),
    ("no version", changed(without="protocolVersion"), ["missing-field"], ""),
    ("version is a number", changed("protocolVersion", to=0.1), ["unsupported-version"], "protocolVersion"),
    ("version of a draft", changed("protocolVersion", to="draft"), ["unsupported-version"], "protocolVersion"),
    ("longer version", changed("protocolVersion", to="0.1.0"), ["unsupported-version"], "protocolVersion"),
    ("no hooks", changed(without="hooks"), ["missing-field"], ""),
    ("hooks empty", changed("hooks", to=[]), ["no-hooks"], "hooks"),
    ("hooks an object", changed("hooks", to={}), ["wrong-type"], "hooks"),
    ("backend null", changed("hooks", 0, to=None), ["wrong-type"], "hooks[0]"),
    ("no id", changed(*CLOUD, without="id"), ["missing-field"], "hooks[0]"),
    ("id a number", changed(*CLOUD, "id", to=1), ["wrong-type"], "hooks[0].id"),
    *(
        (f"id {one!r}", changed(*CLOUD, "id", to=one), ["bad-id"], "hooks[0].id")
        for one in ("policy", "", "com..x", "com.x.", ".com.x", "com.1a", "com.example\n", "com.ex ample", "com.exämple")
    ),
    ("id twice", changed(*LOCAL, "id", to="com.example.cloud"), ["duplicate-id"], "hooks[1].id"),
    ("no transport", changed(*CLOUD, without="transport"), ["missing-field"], "hooks[0]"),
    ("transport a string", changed(*HTTP, to="http"), ["wrong-type"], "hooks[0].transport"),
    ("transport without type", changed(*HTTP, without="type"), ["missing-field"], "hooks[0].transport"),
    ("transport of another type", changed(*HTTP, "type", to="https"), ["unknown-word"], "hooks[0].transport.type"),
    ("type null", changed(*HTTP, "type", to=None), ["wrong-type"], "hooks[0].transport.type"),
    ("no url", changed(*HTTP, without="url"), ["missing-field"], "hooks[0].transport"),
    *(
        (f"url {one!r}", changed(*HTTP, "url", to=one), ["bad-url"], "hooks[0].transport.url")
        for one in (
            "", "policy.example.com", "ftp://x", "https://", "https:///x", "HTTPS://x", "https://x y", "https://x\n", "//x/y",
            "https://x:99999", "https://x:0", "https://x:", "https://x:a", "https://[::1", "https://x\\y", "https://x/#a",
            "https://é.example", "https://-x", "https://x/\0", "https://?x", "https://:80",
        )
    ),
    *(
        (f"url {one!r}", changed(*HTTP, "url", to=one), ["insecure-url"], "hooks[0].transport.url")
        for one in (
            "http://policy.example.com", "http://127.0.0.1.example.com", "http://128.0.0.1", "http://localhost.example.com",
            "http://[::2]/", "http://0.0.0.0", "http://0x7f.1", "http://[::ffff:8.8.8.8]/", "http://10.0.0.1",
        )
    ),
    *(
        (f"url {one!r}", changed(*HTTP, "url", to=one), ["literal-credential"], "hooks[0].transport.url")
        for one in ("https://u:p@x", "https://u@x", "http://localhost@evil.example", "https://:p@x", "https://@x")
    ),
    ("authentication a string", changed(*AUTH, to="bearer"), ["wrong-type"], "hooks[0].authentication"),
    ("authentication of another type", changed(*AUTH, "type", to="basic"), ["unknown-word"], "hooks[0].authentication.type"),
    ("no authentication type", changed(*AUTH, without="type"), ["missing-field"], "hooks[0].authentication"),
    ("no tokenEnv", changed(*AUTH, without="tokenEnv"), ["missing-field"], "hooks[0].authentication"),
    *(
        (f"tokenEnv {one!r}", changed(*AUTH, "tokenEnv", to=one), ["bad-variable-name"], "hooks[0].authentication.tokenEnv")
        for one in ("", "1A", "A-B", "A\n", "A B", "$A", "Ä")
    ),
    *(
        (f"{name} {value!r}", changed(*AUTH, name, to=value), ["literal-credential"], f"hooks[0].authentication.{name}")
        for name in ("token", "bearerToken", "value")
        for value in ("x", None, "")
    ),
    (
        "authentication on stdio",
        changed(*LOCAL, "authentication", to=VALID["hooks"][0]["authentication"]),
        ["authentication-on-stdio"],
        "hooks[1].authentication",
    ),
    ("no command", changed(*STDIO, without="command"), ["missing-field"], "hooks[1].transport"),
    ("command empty", changed(*STDIO, "command", to=""), ["bad-command"], "hooks[1].transport.command"),
    ("command an array", changed(*STDIO, "command", to=["a"]), ["wrong-type"], "hooks[1].transport.command"),
    ("NUL in command", changed(*STDIO, "command", to="/a\0b"), ["bad-command"], "hooks[1].transport.command"),
    ("NUL in bare command", changed(*STDIO, "command", to="a\0b"), ["bad-command"], "hooks[1].transport.command"),
    ("relative command", changed(*STDIO, "command", to="./guard"), ["ambiguous-path"], "hooks[1].transport.command"),
    ("relative command below", changed(*STDIO, "command", to="bin/guard"), ["ambiguous-path"], "hooks[1].transport.command"),
    ("command at home", changed(*STDIO, "command", to="~/guard"), ["ambiguous-path"], "hooks[1].transport.command"),
    ("command that is a tilde", changed(*STDIO, "command", to="~guard"), ["ambiguous-path"], "hooks[1].transport.command"),
    ("args a string", changed(*STDIO, "args", to="serve"), ["wrong-type"], "hooks[1].transport.args"),
    ("args null", changed(*STDIO, "args", to=None), ["wrong-type"], "hooks[1].transport.args"),
    ("arg a number", changed(*STDIO, "args", to=["a", 1]), ["wrong-type"], "hooks[1].transport.args[1]"),
    ("NUL in arg", changed(*STDIO, "args", to=["a\0"]), ["bad-command"], "hooks[1].transport.args[0]"),
    ("no lifecycle", changed(*STDIO, without="lifecycle"), ["missing-field"], "hooks[1].transport"),
    ("lifecycle with a hyphen", changed(*STDIO, "lifecycle", to="per-event"), ["unknown-word"], "hooks[1].transport.lifecycle"),
    ("cwd empty", changed(*STDIO, "cwd", to=""), ["ambiguous-path"], "hooks[1].transport.cwd"),
    ("cwd relative", changed(*STDIO, "cwd", to="var"), ["ambiguous-path"], "hooks[1].transport.cwd"),
    ("cwd at home", changed(*STDIO, "cwd", to="~"), ["ambiguous-path"], "hooks[1].transport.cwd"),
    ("cwd null", changed(*STDIO, "cwd", to=None), ["wrong-type"], "hooks[1].transport.cwd"),
    ("NUL in cwd", changed(*STDIO, "cwd", to="/\0"), ["bad-command"], "hooks[1].transport.cwd"),
    ("no subscriptions", changed(*CLOUD, without="subscriptions"), ["missing-field"], "hooks[0]"),
    ("subscriptions empty", changed(*CLOUD, "subscriptions", to=[]), ["no-subscriptions"], "hooks[0].subscriptions"),
    ("subscription a string", changed(*CHAIN, to="x"), ["wrong-type"], "hooks[0].subscriptions[0]"),
    ("no mode", changed(*CHAIN, without="mode"), ["missing-field"], "hooks[0].subscriptions[0]"),
    ("another mode", changed(*CHAIN, "mode", to="Intercept"), ["unknown-word"], "hooks[0].subscriptions[0].mode"),
    ("no events", changed(*CHAIN, without="events"), ["missing-field"], "hooks[0].subscriptions[0]"),
    ("events empty", changed(*CHAIN, "events", to=[]), ["bad-events"], "hooks[0].subscriptions[0].events"),
    ("events a string", changed(*CHAIN, "events", to="tool.before"), ["wrong-type"], "hooks[0].subscriptions[0].events"),
    ("event unknown", changed(*WATCH, "events", to=["tool.done"]), ["unknown-word"], "hooks[0].subscriptions[1].events[0]"),
    ("event wildcard", changed(*WATCH, "events", to=["tool.*"]), ["unknown-word"], "hooks[0].subscriptions[1].events[0]"),
    ("event null", changed(*WATCH, "events", to=[None]), ["wrong-type"], "hooks[0].subscriptions[1].events[0]"),
    (
        "event twice",
        changed(*WATCH, "events", to=["tool.after", "tool.after"]),
        ["bad-events"],
        "hooks[0].subscriptions[1].events[1]",
    ),
    (
        "intercept another event",
        changed(*CHAIN, "events", to=["tool.after"]),
        ["bad-events"],
        "hooks[0].subscriptions[0].events",
    ),
    (
        "intercept one too many",
        changed(*CHAIN, "events", to=["tool.before", "session.start"]),
        ["bad-events"],
        "hooks[0].subscriptions[0].events",
    ),
    ("no timeout", changed(*CHAIN, without="timeoutMs"), ["missing-field"], "hooks[0].subscriptions[0]"),
    *(
        (f"timeout {one!r}", changed(*CHAIN, "timeoutMs", to=one), ["bad-timeout"], "hooks[0].subscriptions[0].timeoutMs")
        for one in (0, -1, 1.5, True, "750", None, [], 2**53, 1e300)
    ),
    ("no policy", changed(*CHAIN, without="failurePolicy"), ["missing-field"], "hooks[0].subscriptions[0]"),
    (
        "another policy",
        changed(*CHAIN, "failurePolicy", to="fail_closed"),
        ["unknown-word"],
        "hooks[0].subscriptions[0].failurePolicy",
    ),
    *(
        (f"observe with {name}", changed(*WATCH, name, to=value), ["decision-field-on-observe"], f"{OBSERVED}.{name}")
        for name, value in (("timeoutMs", 1), ("timeoutMs", None), ("failurePolicy", "fail-open"), ("failurePolicy", None))
    ),
    *(
        (f"includeNative {one!r}", changed(*CHAIN, "includeNative", to=one), ["wrong-type"], f"{CHAINED}.includeNative")
        for one in ("true", 1, None)
    ),
    (
        "intercepts twice",
        changed(*CLOUD, "subscriptions", to=[VALID["hooks"][0]["subscriptions"][0]] * 2),
        ["overlapping-subscription"],
        "hooks[0].subscriptions[1].events",
    ),
    (
        "observes twice",
        changed(*CLOUD, "subscriptions", to=[{"events": ["tool.after"], "mode": "observe"}] * 2),
        ["overlapping-subscription"],
        "hooks[0].subscriptions[1].events",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected", "path"), [one[1:] for one in INVALID], ids=[one[0] for one in INVALID])
def test_an_invalid_document_is_refused_with_one_diagnostic(value: Any, expected: list[str], path: str) -> None:
    reading = read(value)
    assert reading.registration is None
    assert [one.code for one in reading.diagnostics] == expected
    assert [one.path for one in reading.diagnostics] == [path]


VALID_CHANGES = {
    "timeout with a fraction of nothing": changed(*CHAIN, "timeoutMs", to=750.0),
    "one millisecond": changed(*CHAIN, "timeoutMs", to=1),
    "the longest timeout": changed(*CHAIN, "timeoutMs", to=2**53 - 1),
    "bare command": changed(*STDIO, "command", to="guard"),
    "command with spaces and quotes": changed(*STDIO, "command", to='/opt/it\'s "here"/ü $x;'),
    "no args": changed(*STDIO, without="args"),
    "empty arg": changed(*STDIO, "args", to=["", "~", "a\nb", "./x"]),
    "no cwd": changed(*STDIO, without="cwd"),
    "id in many letters": changed(*CLOUD, "id", to="Com.Ex_ample-1.X"),
    "loopback": changed(*HTTP, "url", to="http://127.255.0.1:80/a?b=c"),
    "loopback in six": changed(*HTTP, "url", to="http://[::1]:8080"),
    "localhost": changed(*HTTP, "url", to="http://localhost"),
    "no authentication": changed(*CLOUD, without="authentication"),
    "intercepts and observes one event": VALID,
    "all events": changed(*WATCH, "events", to=["tool.before", "tool.after", "tool.error", "session.start", "session.end"]),
}


@pytest.mark.parametrize("value", VALID_CHANGES.values(), ids=list(VALID_CHANGES))
def test_a_valid_document_is_read_without_a_word(value: Any) -> None:
    reading = read(value)
    assert reading.diagnostics == ()
    assert reading.registration is not None


@given(registrations())
def test_what_a_document_says_is_what_is_read(registration: Registration) -> None:
    reading = read(document_of(registration))
    assert reading.diagnostics == ()
    assert reading.registration == registration


def test_exponents_count_as_integers() -> None:
    raw = json.dumps(VALID).replace("750", "7.5e2").encode()
    registration = document.read_registration("r.json", raw)
    assert isinstance(registration.backends[0].subscriptions[0], Intercept)
    assert registration.backends[0].subscriptions[0].deadline_ms == 750
    for text in ("1e999999999", "1E-5", "9" * 390):
        assert [one.code for one in document.read("r", raw.replace(b"7.5e2", text.encode())).diagnostics] == ["bad-timeout"]


SIX = b"""\xef\xbb\xbf{
\t"protocolVersion": "0.1",\r
\t"hooks": [\r
\t  {"id": "policy", "transport": {"type": "http", "url": "http://policy.example.com/ahp"},\r
\t   "authentication": {"type": "bearer", "token": "canary-7f3a", "tokenEnv": "ACME_TOKEN"},\r
\t   "subscriptions": [{"events": ["tool.before"], "mode": "intercpt", "timeoutMs": 750, "failurePolicy": "fail-closed"}]},\r
\t  {"id": "com.example.local", "transport": {"type": "stdio", "command": "./\xf0\x9f\x98\x80", "lifecycle": "persistent"},\r
\t   "subscriptions": [{"events": ["tool.before"], "mode": "intercept", "timeoutMs": "750", "failurePolicy": "fail-open"}]}\r
\t]\r
}\r
"""


def test_six_mistakes_are_six_diagnostics_at_their_places() -> None:
    reading = document.read("r.json", SIX)
    found = [(one.code, reading.source.position(one.span.start)) for one in reading.diagnostics]
    assert found == [
        ("byte-order-mark", Position(1, 1)),
        ("bad-id", Position(4, 11)),
        ("insecure-url", Position(4, 58)),
        ("literal-credential", Position(5, 42)),
        ("unknown-word", Position(6, 59)),
        ("ambiguous-path", Position(7, 74)),
        ("bad-timeout", Position(8, 85)),
    ]
    assert "Did you mean intercept?" in reading.diagnostics[4].message


@pytest.mark.parametrize("excerpt", [False, True])
def test_a_rendering_names_place_code_path_and_cure_and_no_secret(excerpt: bool) -> None:
    reading = document.read("r.json", SIX)
    text = diagnostics.render(reading.diagnostics, reading.source, excerpt=excerpt)
    assert "r.json:5:42: error[literal-credential]: at hooks[0].authentication.token: " in text
    assert text.count("  cure: ") == 7
    assert "canary-7f3a" not in text
    assert ('"token": "•••••••••••"' in text) is excerpt


def test_the_caret_stands_under_what_is_meant() -> None:
    raw = '{"protocolVersion": "0.1", "hooks": [\n\t{"id": "ポリシー", "transport": 1, "subscriptions": []}]}'.encode()
    reading = document.read("r.json", raw)
    lines = diagnostics.render(reading.diagnostics, reading.source, excerpt=True).splitlines()
    caret = lines[2]
    assert lines[1] == '    2 | \t{"id": "••••", "transport": 1, "subscriptions": []}]}'
    assert caret == "      | \t       ^^^^^^"


def _strings(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [one for name, inner in value.items() for one in _strings(inner, (*path, name))]
    if isinstance(value, list):
        return [one for index, inner in enumerate(value) for one in _strings(inner, (*path, index))]
    return [path] if isinstance(value, str) else []


@pytest.mark.parametrize("path", _strings(VALID), ids=str)
@pytest.mark.parametrize("secret", ["canary-7f3a", "https://canary-7f3a:canary-7f3a@x", "./canary-7f3a", "~canary-7f3a\0"])
def test_no_value_is_echoed(path: tuple[Any, ...], secret: str) -> None:
    if path == ("protocolVersion",):
        return  # the version found is named
    reading = read(changed(*path, to=secret))
    text = diagnostics.render(reading.diagnostics, reading.source, excerpt=True)
    assert "canary-7f3a" not in text
    broken = json.dumps(changed(*path, to=secret)).replace(f'"{secret}"', secret).encode()
    reading = document.read("r.json", broken)
    assert "canary-7f3a" not in diagnostics.render(reading.diagnostics, reading.source, excerpt=True)


def test_unknown_fields_are_ignored_with_a_warning_and_a_hint() -> None:
    value = changed(*CHAIN, "timeoutMS", to=5)
    value["hooks"][0]["timeoutMs"] = 5
    value["hooks"][0]["pasword"] = "x"
    value["hooks"][0]["transport"]["secret"] = "x"
    value["comment"] = {"any": ["thing"]}
    reading = read(value)
    assert reading.registration == read(VALID).registration
    assert {one.severity for one in reading.diagnostics} == {Severity.WARNING}
    hints = {one.path: one.message for one in reading.diagnostics}
    assert "Did you mean timeoutMs?" in hints["hooks[0].subscriptions[0].timeoutMS"]
    assert "belongs to a subscription" in hints["hooks[0].timeoutMs"]
    assert "Credentials do not belong" in hints["hooks[0].transport.secret"]
    assert "hooks[0].pasword" in hints
    assert "comment" in hints
    assert read(value, strict=True).registration is None


@pytest.mark.parametrize("name", ["filters", "headers", "env", "content", "upload", "scope", "disableable"])
@pytest.mark.parametrize("place", [CLOUD, HTTP, STDIO, CHAIN, ()])
def test_fields_of_the_later_draft_are_named(name: str, place: tuple[Any, ...]) -> None:
    reading = read(changed(*place, name, to={}))
    assert [one.code for one in reading.diagnostics] == ["later-draft-field"]
    assert reading.diagnostics[0].message.startswith(name)
    assert reading.registration is not None


def test_a_base_folder_fixes_relative_paths() -> None:
    value = changed(*STDIO, "command", to="./bin/../guard")
    value["hooks"][1]["transport"]["cwd"] = ""
    registration = read(value, base_dir="/srv/my policy").registration
    assert registration is not None
    transport = registration.backends[1].transport
    assert isinstance(transport, Stdio)
    assert (transport.command, transport.cwd) == ("/srv/my policy/guard", "/srv/my policy")
    with pytest.raises(ValueError, match="absolute"):
        read(value, base_dir="srv")
    assert codes(changed(*STDIO, "command", to="~/x"), base_dir="/srv") == ["ambiguous-path"]


def test_duplicate_members_are_refused_beside_everything_else() -> None:
    raw = json.dumps(VALID).replace('"mode": "observe"', '"mode": "observe", "mode": "observe", "events": []', 1).encode()
    reading = document.read("r.json", raw)
    assert [one.code for one in reading.diagnostics] == ["duplicate-member", "duplicate-member"]
    assert reading.registration is None


def test_the_supported_version_is_named_with_the_one_found() -> None:
    (found,) = read(changed("protocolVersion", to="2026-08-27")).diagnostics
    assert '"2026-08-27"' in found.message
    assert '"0.1"' in found.message
    (found,) = read(changed("protocolVersion", to="canary-7f3a " * 9)).diagnostics
    assert "canary" not in found.message


def test_another_wire_version_is_one_entry_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_newer(root: Any, problems: Any) -> Registration:
        return Registration("0.9", ())

    newer = {**versions.WIRE_VERSIONS, "0.9": versions.WireVersion("0.9", read_newer)}
    monkeypatch.setattr(document, "WIRE_VERSIONS", newer)
    assert read({"protocolVersion": "0.9"}).registration == Registration("0.9", ())
    assert read(VALID).registration is not None
    assert '"0.1", "0.9"' in read({"protocolVersion": "1"}).diagnostics[0].message


def test_every_code_is_documented() -> None:
    used = {code for _, value, _, _ in INVALID for code in codes(value)} | {
        one.code for one in document.read("r", SIX).diagnostics
    }
    assert used <= set(CODES)


def test_read_registration_raises_with_all_diagnostics() -> None:
    with pytest.raises(DocumentError) as caught:
        document.read_registration("r.json", SIX)
    assert len(caught.value.diagnostics) == 7


def test_many_backends_are_read_in_linear_time_and_told_apart() -> None:
    backend = VALID["hooks"][1]
    value = {"protocolVersion": "0.1", "hooks": [backend | {"id": f"com.example.b{n}"} for n in range(3000)]}
    registration = read(value).registration
    assert registration is not None
    assert len(registration.backends) == 3000
    assert isinstance(registration.backends[0].transport, Stdio)
    assert not isinstance(registration.backends[0].transport, Http)
