"""Upstream's own fixtures and schemas: all judged right, and never more leniently than upstream's schema does."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource

from ahp_compile import document
from tests.frontend.test_document import INVALID, VALID
from tests.strategies import document_of, registrations

UPSTREAM = Path(__file__).parents[1] / "upstream"
MANIFEST = json.loads((UPSTREAM / "0.1.0-draft.1/manifest.json").read_bytes())
CASES = [pytest.param(one, id=one["id"]) for one in MANIFEST["cases"]]

# What we refuse although upstream's schema accepts it: rules of the prose, and what is ambiguous.
STRICTER = {
    "duplicate-id", "duplicate-member", "overlapping-subscription", "ambiguous-path", "bad-url", "insecure-url", "bad-command",
    "literal-credential", "lone-surrogate", "bad-id", "bad-variable-name", "bad-timeout",
}  # fmt: skip


def _registry() -> Registry[Any]:
    schemas = [json.loads(path.read_bytes()) for path in (UPSTREAM / "schemas").glob("*.schema.json")]
    return Registry().with_resources((one["$id"], Resource.from_contents(one)) for one in schemas)


REGISTRY = _registry()


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((UPSTREAM / "schemas" / name).read_bytes())
    return jsonschema.Draft202012Validator(schema, registry=REGISTRY, format_checker=jsonschema.FormatChecker())


REGISTRATION = validator("registration.schema.json")


def fixture(case: dict[str, Any]) -> bytes:
    return (UPSTREAM / case["path"].removeprefix("fixtures/")).read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_byte_for_byte_upstreams(case: dict[str, Any]) -> None:
    assert hashlib.sha256(fixture(case)).hexdigest() == case["sha256"]


def test_all_fixtures_are_here() -> None:
    assert len(CASES) == 14
    files = [one for one in (UPSTREAM / "0.1.0-draft.1").rglob("*.json*") if one.name != "manifest.json"]
    assert len(files) == 14


@pytest.mark.parametrize("case", [one for one in CASES if "registration" in str(one.id)])
def test_a_registration_fixture_is_judged_as_upstream_says(case: dict[str, Any]) -> None:
    reading = document.read(case["path"], fixture(case))
    assert (reading.registration is not None) is case["expectedValid"]


@pytest.mark.parametrize("case", [one for one in CASES if "registration" not in str(one.id)])
def test_a_message_fixture_is_judged_as_upstream_says(case: dict[str, Any]) -> None:
    assert _is_valid_message(case, fixture(case)) is case["expectedValid"]


def _is_valid_message(case: dict[str, Any], content: bytes) -> bool:
    if case["binding"] == "stdio-jsonl" and (content.count(b"\n") != 1 or not content.endswith(b"\n")):
        return False
    message = json.loads(content)
    message = message.get("body", message) if case["binding"] != "stdio-jsonl" else message
    if not validator(case["schema"].rpartition("/")[2]).is_valid(message):
        return False
    event = message.get("params", {}).get("event")
    return event is None or event["id"] == message["id"]


@given(registrations())
def test_what_we_accept_upstreams_schema_accepts(registration: Any) -> None:
    assert REGISTRATION.is_valid(document_of(registration))


@pytest.mark.parametrize("value", [one[1] for one in INVALID], ids=[one[0] for one in INVALID])
def test_what_only_we_refuse_is_a_rule_of_the_prose(value: Any) -> None:
    reading = document.read("r.json", json.dumps(value).encode())
    if REGISTRATION.is_valid(value):
        assert {one.code for one in reading.diagnostics} <= STRICTER


PIECES = st.sampled_from(
    [None, True, 0, -1, 750, "", "x", "tool.before", "observe", "stdio", [], {}, ["tool.after"], {"type": "http"}]
)


@given(st.data(), registrations())
def test_a_mutated_document_is_never_accepted_against_upstreams_schema(data: st.DataObject, registration: Any) -> None:
    value = document_of(registration)
    holder: Any = value
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(holder[key], dict | list) and holder[key] and data.draw(st.booleans()):
            holder = holder[key]
            continue
        if data.draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = data.draw(PIECES)
        break
    reading = document.read("r.json", json.dumps(value).encode())
    if reading.registration is not None:
        assert REGISTRATION.is_valid(value)
    elif REGISTRATION.is_valid(value):
        assert {one.code for one in reading.diagnostics if one.severity == "error"} <= STRICTER


def test_broken_bytes_never_crash_the_reader() -> None:
    chance = random.Random(20261201)
    valid = json.dumps(VALID, indent=1).encode()
    for _ in range(4000):
        raw = bytearray(valid)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(raw))
            match chance.randrange(4):
                case 0:
                    raw[at] = chance.randrange(256)
                case 1:
                    del raw[at : at + chance.randint(1, 20)]
                case 2:
                    raw[at:at] = bytes(chance.choices(b'{}[]",:\\0e-\n\xff', k=chance.randint(1, 3)))
                case _:
                    raw[at:at] = raw[at : at + chance.randint(1, 40)]
        reading = document.read("r.json", bytes(raw))
        assert (reading.registration is None) == any(one.severity == "error" for one in reading.diagnostics)
