"""The plan file: canonical bytes of a plan, addressed by their own digest, and the way back.

Writing and reading share nothing but the page that describes the format, so that a mistake in one is seen by the other.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override
from cattrs.strategies import configure_tagged_union

from ahp_compile.plan import (
    PLAN_FORMAT,
    EventPlan,
    Interceptor,
    Observer,
    Plan,
    PlannedBackend,
    Timing,
)
from ahp_compile.registration import Event, FailurePolicy, Http, Lifecycle, Stdio, Transport


class PlanFileError(ValueError):
    """The bytes are not a plan file of a format version that this program knows."""


def write(plan: Plan) -> bytes:
    """Canonical bytes: UTF-8 JSON, members sorted, no spaces, one final newline; the same plan always gives the same bytes."""
    document = {
        "format": PLAN_FORMAT,
        "protocolVersion": plan.protocol_version,
        "target": plan.target,
        "searchPath": plan.search_path,
        "stateDir": plan.state_dir,
        "timing": {
            "startMs": plan.timing.start_ms,
            "killMs": plan.timing.kill_ms,
            "maxParallel": plan.timing.max_parallel,
        },
        "backends": [{"id": one.id, "transport": _transport(one.transport)} for one in plan.backends],
        "events": [_event(one) for one in plan.events],
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode() + b"\n"


def digest(content: bytes) -> str:
    """The address of a file by its bytes: 64 hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()


def _transport(transport: Transport) -> dict[str, Any]:
    match transport:
        case Stdio():
            return {
                "type": "stdio",
                "command": transport.command,
                "args": list(transport.args),
                "lifecycle": transport.lifecycle.value,
                "cwd": transport.cwd,
            }
        case Http():
            return {"type": "http", "url": transport.url, "tokenEnv": transport.token_env}


def _event(event: EventPlan) -> dict[str, Any]:
    return {
        "event": event.event.value,
        "budgetMs": event.budget_ms,
        "interceptors": [
            {
                "backend": one.backend,
                "deadlineMs": one.deadline_ms,
                "waitMs": one.wait_ms,
                "onFailure": one.on_failure.value,
                "includeNative": one.include_native,
            }
            for one in event.interceptors
        ],
        "observers": [{"backend": one.backend, "includeNative": one.include_native} for one in event.observers],
    }


def read(content: bytes) -> Plan:
    """Read a plan file's bytes. Raises PlanFileError for anything but a complete, well-typed plan of a known format."""
    try:
        document = json.loads(content, object_pairs_hook=_unique_members, parse_constant=_no_constant)
        if not isinstance(document, dict) or document.pop("format", None) != PLAN_FORMAT:
            raise PlanFileError(f"this is not a plan file of format {PLAN_FORMAT}")
        return _CONVERTER.structure(document, Plan)
    except (ValueError, RecursionError, cattrs.BaseValidationError, cattrs.StructureHandlerNotFoundError) as error:
        raise PlanFileError(f"the plan file cannot be read ({type(error).__name__})") from error


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise PlanFileError("the plan file has a member twice")
    return members


def _no_constant(word: str) -> NoReturn:
    raise PlanFileError(f"{word} is no number of JSON")


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _exactly(kind: type) -> Any:
    """cattrs coerces by default (a string "5" becomes 5); a plan is either exactly typed or no plan."""

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}")
        return value

    return structure


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    for words in (Event, FailurePolicy, Lifecycle):
        # These are strings as well, and would be taken for plain ones.
        converter.register_structure_hook(words, lambda value, kind: kind(value))
    _structure_renamed(converter, Stdio, Http)
    configure_tagged_union(Transport, converter, tag_name="type", tag_generator=lambda kind: kind.__name__.lower())
    _structure_renamed(converter, Interceptor, Observer, EventPlan, PlannedBackend, Timing, Plan)
    return converter


def _structure_renamed(converter: cattrs.Converter, *models: type[attrs.AttrsInstance]) -> None:
    for model in models:
        renames = {one.name: override(rename=_camel(one.name)) for one in attrs.fields(model)}
        structure = make_dict_structure_fn(
            model,
            converter,
            _cattrs_forbid_extra_keys=True,
            **renames,  # type: ignore[arg-type]
        )
        converter.register_structure_hook(model, structure)


_CONVERTER = _make_converter()
