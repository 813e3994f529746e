"""The wire versions that are supported: the one place that knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from ahp_compile import rules_0_1
from ahp_compile.problems import Problems
from ahp_compile.registration import Registration
from ahp_compile.source import Object


@frozen
class WireVersion:
    """One version of the protocol: its name on the wire, and how its registration is read.

    ``read`` notes every problem and gives the registration, which only counts when there was no error.
    """

    name: str
    read: Callable[[Object, Problems], Registration]


WIRE_VERSIONS: Mapping[str, WireVersion] = {"0.1": WireVersion("0.1", rules_0_1.read)}
