"""The outcome of an equivalence check: what is kept and how, and what stands against it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

from attrs import field, frozen

from ahp_compile.engine import Fact, Obligation, Party, Premise, Remainder


class By(StrEnum):
    """Who keeps an obligation."""

    HARNESS = "harness"
    BRIDGE = "bridge"
    GUARD = "guard"
    ASSUMPTION = "assumption"


@frozen
class Discharge:
    """How one obligation is kept, and on which facts about the harness that rests."""

    obligation: Obligation
    by: By
    reason: str
    facts: tuple[Fact, ...] = ()


@frozen
class Defect:
    """Something in the emitted files that is not what the document says. It cannot be accepted, only repaired."""

    obligation: Obligation
    sentence: str


@frozen
class Stance:
    """What must hold: against whom, which remainders are accepted by code, and whether documented facts count."""

    against: Party = Party.FAILURE
    accepted: frozenset[str] = frozenset()
    accept_documented: bool = False


@frozen
class Judgement:
    """The outcome of one check. ``open_holes`` and ``defects`` refuse; ``accepted`` is what the user took by name."""

    target: str
    harness: str
    version: str
    stance: Stance
    discharges: tuple[Discharge, ...]
    defects: tuple[Defect, ...]
    open_holes: tuple[Remainder, ...]
    accepted: tuple[Remainder, ...]
    premises: tuple[Premise, ...]
    unproven: tuple[Fact, ...]
    trusted: bool | None
    out_of_scope: tuple[str, ...]

    @property
    def equivalent(self) -> bool:
        """Whether the files may be written."""
        return not self.defects and not self.open_holes and (self.stance.accept_documented or not self.unproven)


@frozen
class Findings:
    """What a check collects on its way."""

    defects: list[Defect] = field(factory=list)
    facts: dict[Obligation, dict[Fact, None]] = field(factory=lambda: defaultdict(dict))
    notes: dict[Obligation, list[str]] = field(factory=lambda: defaultdict(list))

    def against(self, obligation: Obligation, sentence: str) -> None:
        """Note a defect, once."""
        defect = Defect(obligation, sentence)
        if defect not in self.defects:
            self.defects.append(defect)

    def require(self, holds: bool, obligation: Obligation, sentence: str) -> bool:
        """Note a defect unless something holds."""
        if not holds:
            self.against(obligation, sentence)
        return holds

    def rest_on(self, obligation: Obligation, facts: Iterable[Fact]) -> None:
        """Note that an obligation's discharge uses facts."""
        self.facts[obligation].update(dict.fromkeys(facts))
