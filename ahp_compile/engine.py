"""The vocabulary for a target's engine: what a harness does with native hooks, each claim with its evidence.

A target states its harness in these words and the equivalence checker reasons with them; neither knows the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from attrs import Factory, evolve, frozen

from ahp_compile.placement import Placement
from ahp_compile.registration import Event

if TYPE_CHECKING:
    from ahp_compile.plan import Plan


class EvidenceKind(StrEnum):
    """How a fact about somebody else's program is known, best first."""

    RUN = "run"
    SOURCE = "source"
    DOCS = "docs"


@frozen
class Evidence:
    """How, on which version of the harness, and when (ISO date) a fact was established."""

    kind: EvidenceKind
    version: str
    date: str


@frozen
class Fact:
    """One claim about a harness. ``id`` is unique in its room and stable."""

    id: str
    claim: str
    evidence: Evidence


class Obligation(StrEnum):
    """The things that must hold for equivalence."""

    ORDER = "order"
    SUBSCRIPTION = "subscription"
    DEADLINE = "deadline"
    BACKSTOP = "backstop"
    FAILURE = "failure"
    GUARD = "guard"
    DENY = "deny"
    NO_ESCALATION = "no escalation"
    TRANSPORT = "transport"
    CREDENTIAL = "credential"
    OBSERVER = "observer"
    NATIVE_PAYLOAD = "native payload"
    EVENT = "event"


class Party(IntEnum):
    """Who can break a premise, weakest first: whoever is proof against one is proof against those before it."""

    FAILURE = 0
    REPOSITORY = 1
    AGENT = 2
    USER = 3
    ADMINISTRATOR = 4


@frozen
class Hole:
    """What the harness does against an obligation even with our files in force.

    ``code`` begins with ``enforcement.`` or ``observation.``; ``closing`` says which native switch would close it, if one does;
    ``missing`` is the event that the harness cannot deliver at all, so that the files have no hook for it.
    """

    code: str
    obligation: Obligation
    sentence: str
    fact: Fact
    closing: str | None = None
    missing: Event | None = None


@frozen
class Premise:
    """What must stay true for the proof to hold, and the weakest party that can make it false.

    ``closing`` says which native switch takes it out of that party's hands, if one does.
    """

    code: str
    obligation: Obligation
    sentence: str
    breaker: Party
    closing: str | None = None


Remainder = Hole | Premise

TOKEN_READABLE = "token-readable"
"""Name of the premise that the agent's own tools do not read the token variables; a target may have a switch for it."""


class Behaviour(StrEnum):
    """Everything that a bridge can do when it is started, as far as a guard can tell the difference."""

    PROCEEDS = "proceeds"
    DENIES = "denies"
    DENIES_AWKWARDLY = "denies with shell syntax, newlines and non-ASCII text in its reason"
    DENIES_BLANK = "denies with a blank reason"
    DENIES_IN_BLANKS = "exits 77 with nothing but white space"
    DENIES_SILENTLY = "exits 77 without a reason"
    SILENT_SUCCESS = "exits 0 without a word"
    GARBAGE_SUCCESS = "exits 0 with other words"
    TOKEN_AFTER_NOISE = "exits 0 with noise before its token"
    TOKEN_BEFORE_NOISE = "exits 0 with noise after its token"
    TOKEN_ON_FAILURE = "prints its token and exits 1"
    EXITS_1 = "exits 1"
    EXITS_2 = "exits 2, as an interpreter does for a missing file"
    EXITS_2_TALKING = "exits 2 with words on stdout"
    EXITS_3 = "exits 3"
    EXITS_70 = "exits 70"
    EXITS_71 = "exits 71"
    EXITS_255 = "exits 255"
    NOT_EXECUTABLE = "cannot be executed"
    MISSING = "is missing"
    INTERRUPTED = "is killed by SIGINT"
    KILLED = "is killed by SIGKILL"
    SEGFAULT = "is killed by SIGSEGV"
    ALARMED = "is killed by its own budget timer"
    TERMINATED = "is killed by SIGTERM"
    HANGS = "hangs"
    FROZEN = "is frozen, or hangs and ignores SIGTERM"
    LEAVES_CHILD = "exits 1 and leaves a child that holds its output"


@frozen
class ProcessAnswer:
    """What a harness sees of a command hook: ``exit_status`` None means that it never ended by itself.

    ``bound_ms`` is the time after which something outside the bridge ended it, 0 when nothing had to.
    """

    exit_status: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    holds_output: bool = False
    bound_ms: int = 0


@frozen
class CallbackAnswer:
    """What a harness sees of an in-process hook: the value returned, or that it raised (``exit_status`` stands for neither)."""

    returned: object = None
    raised: bool = False
    ends: bool = True
    bound_ms: int = 0


NativeAnswer = ProcessAnswer | CallbackAnswer


@frozen
class Invocation:
    """How a native hook starts the bridge, as read back from its words."""

    interpreter: str
    client: str
    plan: str
    digest: str
    event: str
    budget_ms: int
    guard: str


@frozen
class LiftedHook:
    """One native hook, read back from emitted bytes.

    ``selector`` is the native matcher (None when there is none), ``timeout_ms`` the native timeout as written (None when
    absent), ``switches`` are native options that bear on the verdict, ``answers`` the guard reduced to a table of outcomes.
    ``run_as`` are the words that the harness starts, or for an in-process hook those of a process that asks the same.
    """

    native_event: str
    selector: str | None
    timeout_ms: int | None
    invocation: Invocation
    answers: Mapping[Behaviour, NativeAnswer]
    switches: Mapping[str, object] = Factory(dict)
    run_as: tuple[str, ...] = ()


@frozen
class Lifted:
    """All that the emitted files say to the harness.

    ``closed`` are codes of holes that native switches in these files close, ``trusted`` whether they hold what makes the
    harness run our hooks (None where it asks for nothing), ``hidden`` names of variables that they keep from the agent's own
    tools, ``faults`` what in them is wrong for the harness whatever the plan says.
    """

    hooks: tuple[LiftedHook, ...]
    closed: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    trusted: bool | None = None
    faults: tuple[str, ...] = ()


@frozen
class Delivery:
    """Which AHP events a native hook is fired for, and whether by all tools; ``facts`` say how that is known."""

    events: frozenset[Event]
    all_tools: bool
    facts: tuple[Fact, ...]


@frozen
class Ruling:
    """What the harness does with the call after a hook's answer: blocks it, or lets it go on to the harness's own checks.

    ``reason`` is what the model is told of a block. ``escalates`` is an answer that would skip the harness's own permission
    prompt; ``disturbs`` one that changes what the model sees although nothing was blocked; ``discloses`` a block whose text
    shows the model the hook's command line or the shell's words.
    """

    blocks: bool
    facts: tuple[Fact, ...]
    reason: str = ""
    escalates: bool = False
    disturbs: bool = False
    discloses: bool = False


@frozen
class Limit:
    """The time after which the harness itself ends a hook, in milliseconds; None when it never does."""

    effective_ms: int | None
    facts: tuple[Fact, ...]


@frozen
class Engine:
    """One harness's behaviour. The functions are pure; each names the facts it rests on.

    ``delivers`` maps a native hook to events, ``rules`` says what the harness does with an answer of one hook, ``limits`` what
    timeout is in force, ``several_hooks`` how more than one hook of an event runs, ``strips`` whether a variable is kept from
    hooks, and ``remainder`` lists the holes and premises that a plan has here, given what was read back from the files.
    ``hides_tokens`` is the native switch that keeps variables from the agent's tools, if there is one; ``out_of_scope`` names
    what is no tool call of the agent.
    """

    harness: str
    version: str
    scopes: frozenset[str]
    facts: tuple[Fact, ...]
    delivers: Callable[[LiftedHook], Delivery]
    rules: Callable[[LiftedHook, NativeAnswer], Ruling]
    limits: Callable[[LiftedHook], Limit]
    strips: Callable[[str], Fact | None]
    several_hooks: Fact
    credential_facts: tuple[Fact, ...]
    event_facts: tuple[Fact, ...]
    no_escalation_facts: tuple[Fact, ...]
    remainder: Callable[[Plan, Placement, Lifted], tuple[Remainder, ...]]
    hides_tokens: str | None = None
    out_of_scope: tuple[str, ...] = ()


def each_kind(plan: Plan, remainder: Remainder) -> tuple[Remainder, ...]:
    """Name a hole or premise once for what the plan enforces and once for what it observes, as far as it does either.

    Accepting the one never accepts the other. ``remainder.code`` is given without its namespace.
    """
    enforces = any(event.interceptors for event in plan.events)
    observes = any(event.observers for event in plan.events)
    kinds = [kind for kind, wanted in (("enforcement", enforces), ("observation", observes)) if wanted]
    return tuple(evolve(remainder, code=f"{kind}.{remainder.code}") for kind in kinds)
