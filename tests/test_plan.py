"""Lowering, and the plan file there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ahp_compile import plan_file
from ahp_compile.plan import Plan, Timing, lower
from ahp_compile.registration import Event, FailurePolicy, Registration
from tests.strategies import registrations
from tests.support import both_policies, one_interceptor, only_observers


def lowered(registration: Registration) -> Plan:
    return lower(registration, "claude-code", search_path="/usr/bin:/bin")


def test_document_order_is_chain_order_and_each_number_is_there() -> None:
    event = lowered(both_policies()).event(Event.TOOL_BEFORE)

    assert event is not None
    assert [one.backend for one in event.interceptors] == ["com.example.cloud", "com.example.local", "com.example.once"]
    assert [one.deadline_ms for one in event.interceptors] == [750, 500, 300]
    # Seven other calls may be before this one at the persistent backend; nobody queues for the other two.
    assert [one.wait_ms for one in event.interceptors] == [0, 7 * 500, 0]
    assert event.budget_ms == 750 + 500 + 3500 + 300 + 2000 + 500
    assert [one.backend for one in event.observers] == ["com.example.local", "com.example.audit"]


def test_only_subscribed_events_are_planned() -> None:
    plan = lowered(one_interceptor())
    assert [one.event for one in plan.events] == [Event.TOOL_BEFORE]
    assert plan.event(Event.SESSION_END) is None


def test_an_observed_event_has_only_the_time_to_hand_over() -> None:
    plan = lowered(only_observers())
    assert {one.budget_ms for one in plan.events} == {Timing().start_ms}
    assert not any(one.guard.denies for one in plan.events)


@pytest.mark.parametrize(("policy", "denies"), [(FailurePolicy.FAIL_OPEN, False), (FailurePolicy.FAIL_CLOSED, True)])
def test_the_guard_follows_the_chain(policy: FailurePolicy, denies: bool) -> None:
    event = lowered(one_interceptor(policy)).event(Event.TOOL_BEFORE)
    assert event is not None
    assert event.guard.denies is denies


def test_token_variables_are_those_of_the_event() -> None:
    plan = lowered(both_policies())
    assert plan.token_variables() == ("ACME_TOKEN",)
    assert plan.token_variables(plan.event(Event.TOOL_BEFORE)) == ("ACME_TOKEN",)
    assert plan.token_variables(plan.event(Event.SESSION_END)) == ()


@given(registrations())
def test_a_plan_comes_back_from_its_file(registration: Registration) -> None:
    plan = lowered(registration)
    content = plan_file.write(plan)
    assert plan_file.read(content) == plan
    assert plan_file.write(plan_file.read(content)) == content
    assert hash(plan) == hash(plan_file.read(content))


@given(registrations(), registrations())
def test_different_plans_have_different_addresses(one: Registration, other: Registration) -> None:
    contents = [plan_file.write(lowered(registration)) for registration in (one, other)]
    assert (plan_file.digest(contents[0]) == plan_file.digest(contents[1])) == (lowered(one) == lowered(other))


def test_a_plan_file_is_canonical() -> None:
    content = plan_file.write(lowered(both_policies()))
    assert content.endswith(b"}\n")
    assert json.dumps(json.loads(content), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() == content[:-1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"deadlineMs":750', b'"deadlineMs":"750"'),
        (b'"deadlineMs":750', b'"deadlineMs":true'),
        (b'"deadlineMs":750', b'"deadlineMs":750.0'),
        (b'"deadlineMs":750', b'"deadlineMs":NaN'),
        (b'"deadlineMs":750', b'"deadlineMs":750,"deadlineMs":751'),
        (b'"deadlineMs":750', b'"deadlineMs":750,"more":1'),
        (b'"deadlineMs":750,', b""),
        (b'"format":1', b'"format":2'),
        (b'"format":1', b'"format":"1"'),
        (b'"fail-closed"', b'"fail-shut"'),
        (b'"type":"http"', b'"type":"ftp"'),
        (b'"tool.before"', b'"tool.during"'),
        (b'"includeNative":false', b'"includeNative":0'),
        (b'"timing":', b'"tming":'),
    ],
)
def test_anything_but_a_complete_typed_plan_is_refused(old: bytes, new: bytes) -> None:
    content = plan_file.write(lowered(both_policies()))
    assert old in content
    with pytest.raises(plan_file.PlanFileError):
        plan_file.read(content.replace(old, new, 1))


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format":1}'])
def test_other_files_are_no_plans(content: bytes) -> None:
    with pytest.raises(plan_file.PlanFileError):
        plan_file.read(content)
