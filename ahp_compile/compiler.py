"""One compile: a registration and a target to files, with the judgement on whether they are equivalent."""

from __future__ import annotations

import posixpath
from importlib.resources import files

from attrs import frozen

from ahp_compile import plan_file
from ahp_compile.engine import Remainder
from ahp_compile.equivalence import check
from ahp_compile.formats import env
from ahp_compile.judgement import Judgement, Stance
from ahp_compile.placement import Placement, PlacementError
from ahp_compile.plan import Plan, lower
from ahp_compile.registration import Registration
from ahp_compile.target import Artifact, BridgeFiles, Purpose, Request, Target

ALL = "all"
"""The word that closes everything that native switches can close."""


class ClosingError(ValueError):
    """A hole that was to be closed is not there, or no native switch closes it. The message is for the user."""


@frozen
class Compilation:
    """The files of one target and what was found when they were read back."""

    plan: Plan
    artifacts: tuple[Artifact, ...]
    judgement: Judgement


def compile_registration(
    registration: Registration,
    target: Target,
    placement: Placement,
    stance: Stance,
    *,
    close: frozenset[str] = frozenset(),
    trust_our_hook: bool = False,
) -> Compilation:
    """Compile for one target. The files are returned whatever the judgement; only those judged equivalent may be written.

    ``close`` are codes of holes (or ``all``) to close by native switches. Raises PlacementError when the target has no such
    place and ClosingError when a code cannot be closed.
    """
    if not target.offers(placement.scope):
        offered = ", ".join(sorted(target.engine.scopes))
        raise PlacementError(f"{target.name} has no {placement.scope} scope; it offers: {offered}")
    plan = lower(registration, target.name, search_path=placement.search_path, state_dir=placement.state_dir)
    request = _request(plan, placement, frozenset(), trust_our_hook=trust_our_hook)
    compilation = _emit_and_check(request, target, stance)
    if not close:
        return compilation
    switches = _switches(close, compilation.judgement, target)
    request = _request(plan, placement, switches, trust_our_hook=trust_our_hook)
    return _emit_and_check(request, target, stance)


def _request(plan: Plan, placement: Placement, close: frozenset[str], *, trust_our_hook: bool) -> Request:
    digest = plan_file.digest(plan_file.write(plan))
    bridge = BridgeFiles(
        client=posixpath.join(placement.plan_dir, f"client-{plan_file.digest(_client())[:16]}.py"),
        plan=posixpath.join(placement.plan_dir, f"plan-{digest}.json"),
        digest=digest,
    )
    return Request(plan, placement, bridge, close, trust_our_hook)


def _client() -> bytes:
    return files("ahp_compile.bridge").joinpath("client.py").read_bytes()


def _emit_and_check(request: Request, target: Target, stance: Stance) -> Compilation:
    artifacts = (*target.emit(request), *_common_artifacts(request, target))
    judgement = check(request, {one.destination: one.content for one in artifacts}, target, stance)
    return Compilation(request.plan, artifacts, judgement)


def _common_artifacts(request: Request, target: Target) -> tuple[Artifact, ...]:
    bridge = request.bridge
    artifacts = [
        Artifact(posixpath.basename(bridge.plan), bridge.plan, plan_file.write(request.plan), Purpose.PLAN),
        Artifact(posixpath.basename(bridge.client), bridge.client, _client(), Purpose.CLIENT),
    ]
    template = env.template((name, _need(request.plan, name, target)) for name in request.plan.token_variables())
    if template:
        destination = posixpath.join(request.placement.plan_dir, target.name, env.NAME)
        artifacts.append(Artifact(env.NAME, destination, template, Purpose.ENVIRONMENT))
    return tuple(artifacts)


def _need(plan: Plan, variable: str, target: Target) -> str:
    backends = [one.id for one in plan.backends if getattr(one.transport, "token_env", None) == variable]
    return f"bearer token of {', '.join(backends)}, read at call time from {target.env_source}"


def _switches(close: frozenset[str], judgement: Judgement, target: Target) -> frozenset[str]:
    """The names, without namespace, of what the codes close. A switch closes a hole for enforcement and observation alike."""
    closable = {one.code: one for one in _remainders(judgement) if one.closing is not None}
    wanted = frozenset(closable) if ALL in close else close
    for code in sorted(wanted - set(closable)):
        known = ", ".join(sorted(closable)) or "nothing"
        raise ClosingError(f"no native switch of {target.name} closes {code}; closable here: {known}")
    return frozenset(code.partition(".")[2] for code in wanted)


def _remainders(judgement: Judgement) -> tuple[Remainder, ...]:
    return (*judgement.open_holes, *judgement.accepted, *judgement.premises)
