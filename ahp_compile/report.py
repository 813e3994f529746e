"""The report of a compile, for people (text, Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ahp_compile.compiler import Compilation
from ahp_compile.engine import Fact, Hole, Premise, Remainder
from ahp_compile.judgement import Judgement

FORMATS = ("text", "json", "markdown")


def headline(judgement: Judgement) -> str:
    """The outcome in one line; it never says equivalent without saying against whom."""
    what = f"{judgement.target} ({judgement.harness} {judgement.version})"
    against = judgement.stance.against.name.lower()
    if not judgement.equivalent:
        return f"{what}: REFUSED, not equivalent against {against}"
    except_for = f", except for what was accepted: {', '.join(_codes(judgement.accepted))}" if judgement.accepted else ""
    unproven = ", UNPROVEN in part (facts known from documents only)" if judgement.unproven else ""
    inactive = " [NOT ACTIVE UNTIL TRUSTED]" if judgement.trusted is False else ""
    return f"{what}: equivalent against {against}{except_for}{unproven}{inactive}"


def render(compilation: Compilation, form: str) -> str:
    """The whole report in one of FORMATS, with a final newline."""
    if form == "json":
        return json.dumps(as_document(compilation), ensure_ascii=False, indent=2) + "\n"
    lines = _markdown(compilation) if form == "markdown" else _text(compilation)
    return "\n".join(lines) + "\n"


def refusal(judgement: Judgement) -> Iterator[str]:
    """Why a compile is refused, a line each, with what can be done about it."""
    for defect in judgement.defects:
        yield f"defect ({defect.obligation}): {defect.sentence}"
    for hole in judgement.open_holes:
        yield f"{hole.code} ({hole.obligation}): {hole.sentence}"
        yield f"    {_remedy(hole)}"
    if judgement.unproven and not judgement.stance.accept_documented:
        for fact in judgement.unproven:
            yield f"unproven ({fact.id}): {fact.claim} [{_evidence(fact)}]"
        yield "    --accept-evidence documented takes facts that no run has shown"


def _remedy(remainder: Remainder) -> str:
    close = f"close it with --close {remainder.code} ({remainder.closing}), or " if remainder.closing else ""
    kept = f"{close}take it with --accept {remainder.code}"
    if isinstance(remainder, Premise):
        kept += f"; it can be broken by: {remainder.breaker.name.lower()}"
    return kept


def _codes(remainders: tuple[Remainder, ...]) -> list[str]:
    return [one.code for one in remainders]


def _evidence(fact: Fact) -> str:
    return f"{fact.evidence.kind} {fact.evidence.version}, {fact.evidence.date}"


def _text(compilation: Compilation) -> Iterator[str]:
    judgement = compilation.judgement
    yield headline(judgement)
    yield ""
    for discharge in judgement.discharges:
        yield f"  {discharge.obligation:<15} {discharge.by:<8} {discharge.reason}"
        for fact in discharge.facts:
            yield f"{'':<27}{fact.claim} [{_evidence(fact)}]"
    for title, lines in _sections(judgement):
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)
    yield ""
    yield "files:"
    for artifact in compilation.artifacts:
        yield f"  {artifact.name} → {artifact.destination} ({artifact.purpose})"


def _markdown(compilation: Compilation) -> Iterator[str]:
    judgement = compilation.judgement
    yield f"## {headline(judgement)}"
    yield ""
    yield "| obligation | kept by | how | evidence |"
    yield "| --- | --- | --- | --- |"
    for discharge in judgement.discharges:
        evidence = "<br>".join(f"{_cell(fact.claim)} ({_evidence(fact)})" for fact in discharge.facts)
        yield f"| {discharge.obligation} | {discharge.by} | {_cell(discharge.reason)} | {evidence} |"
    for title, lines in _sections(judgement):
        yield ""
        yield f"### {title.capitalize()}"
        yield ""
        yield from (f"- {line.strip()}" for line in lines)
    yield ""
    yield "### Files"
    yield ""
    for artifact in compilation.artifacts:
        yield f"- `{artifact.name}` → `{artifact.destination}` ({artifact.purpose})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _sections(judgement: Judgement) -> Iterator[tuple[str, list[str]]]:
    against = list(refusal(judgement))
    if against and not judgement.equivalent:
        yield "what stands against it", against
    if judgement.accepted:
        yield "accepted by name", [f"{one.code} ({one.obligation}): {one.sentence}" for one in judgement.accepted]
    if judgement.premises:
        lines = [f"{one.code} (broken by: {one.breaker.name.lower()}): {one.sentence}" for one in judgement.premises]
        yield "holds while", lines
    if judgement.out_of_scope:
        yield "out of scope", list(judgement.out_of_scope)


def as_document(compilation: Compilation) -> dict[str, Any]:
    """The report as JSON data; member names and codes are stable."""
    judgement = compilation.judgement
    return {
        "target": judgement.target,
        "harness": judgement.harness,
        "version": judgement.version,
        "equivalent": judgement.equivalent,
        "against": judgement.stance.against.name.lower(),
        "active": judgement.trusted is not False,
        "obligations": [
            {
                "obligation": one.obligation,
                "by": one.by,
                "reason": one.reason,
                "evidence": [_fact(fact) for fact in one.facts],
            }
            for one in judgement.discharges
        ],
        "defects": [{"obligation": one.obligation, "sentence": one.sentence} for one in judgement.defects],
        "open": [_remainder(one) for one in judgement.open_holes],
        "accepted": [_remainder(one) for one in judgement.accepted],
        "premises": [_remainder(one) for one in judgement.premises],
        "unproven": [_fact(one) for one in judgement.unproven],
        "outOfScope": list(judgement.out_of_scope),
        "files": [{"name": one.name, "destination": one.destination, "purpose": one.purpose} for one in compilation.artifacts],
    }


def _fact(fact: Fact) -> dict[str, str]:
    evidence = fact.evidence
    return {
        "id": fact.id,
        "claim": fact.claim,
        "kind": evidence.kind,
        "version": evidence.version,
        "date": evidence.date,
    }


def _remainder(remainder: Remainder) -> dict[str, Any]:
    document: dict[str, Any] = {
        "code": remainder.code,
        "kind": "hole" if isinstance(remainder, Hole) else "premise",
        "obligation": remainder.obligation,
        "sentence": remainder.sentence,
        "closing": remainder.closing,
    }
    if isinstance(remainder, Hole):
        document["evidence"] = _fact(remainder.fact)
    else:
        document["breaker"] = remainder.breaker.name.lower()
    return document
