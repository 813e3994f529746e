"""The command line: compile a registration for one or more targets, and say what came of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from attrs import frozen

from ahp_compile import __version__, diagnostics, document, report, target
from ahp_compile.compiler import ClosingError, Compilation, compile_registration
from ahp_compile.engine import Party
from ahp_compile.judgement import Stance
from ahp_compile.output import FileRefused
from ahp_compile.output import write as write_folder
from ahp_compile.placement import Os, Placement, PlacementError, Scope
from ahp_compile.probe import ProbeError, describe
from ahp_compile.probe import run as run_probe
from ahp_compile.registration import Event, Registration
from ahp_compile.target import Purpose, Target, TargetError

OK, INVALID_DOCUMENT, USAGE, NOT_EQUIVALENT, FILE_REFUSED = 0, 1, 2, 3, 5
"""Exit statuses; 4 is kept for drift of an installation."""

_EXITS = """\
exit status:
  0  written and equivalent
  1  the document is invalid; nothing is written
  2  wrong usage, or a target that cannot be used
  3  not equivalent: the harness cannot keep what the document says; nothing is written for that target
  5  a file is in the way that ahp-compile did not write; nothing is written for that target
"""


class UsageError(Exception):
    """The options do not go together. The message is for the user."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (see --help)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["probe"]:
            return _probe(_probe_parser().parse_args(words[1:]))
        return _run(_parser().parse_args(words))
    except (UsageError, PlacementError, ClosingError, TargetError, ProbeError) as error:
        return _fail(USAGE, str(error))
    except FileRefused as error:
        return _fail(FILE_REFUSED, str(error))
    except OSError as error:
        return _fail(FILE_REFUSED, f"{error.filename or 'a file'}: {error.strerror}")


def _fail(status: int, message: str) -> int:
    print(f"ahp-compile: {message}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ahp-compile",
        description="Compile an Agent Hooks Protocol registration into the native hook configuration of agent harnesses, "
        "proven equivalent or refused.",
        epilog="ahp-compile probe --help tells how to try a registration out.\n\n" + _EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("registration", help="the portable document (JSON), or - for standard input")
    parser.add_argument("--target", action="append", required=True, metavar="NAME", help="a harness; may be repeated, or: all")
    parser.add_argument("-o", "--output", metavar="DIR", help="output folder (default ./ahp-out/TARGET), or - for stdout")
    parser.add_argument(
        "--report", choices=report.FORMATS, help="print the whole proof: each obligation, how it is kept, evidence"
    )
    parser.add_argument("--strict", action="store_true", help="warnings about the document are errors")
    parser.add_argument("--base-dir", metavar="DIR", help="what relative commands and cwds in the document are relative to")
    parser.add_argument("--version", action="version", version=f"ahp-compile {__version__}")
    _add_stance(parser.add_argument_group("what must hold"))
    _add_placement(parser.add_argument_group("where things will be on the machine that runs the harness (never probed)"))
    return parser


def _probe_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ahp-compile probe",
        description="Run the command that a target emits for one event in a scratch home, and show what each backend answers.",
    )
    parser.add_argument("registration", help="the portable document (JSON), or - for standard input")
    parser.add_argument("--target", required=True, metavar="NAME", help="a harness")
    parser.add_argument("--event", choices=[one.value for one in Event], default="tool.before", help="(default: tool.before)")
    parser.add_argument("--payload", metavar="FILE", help="the harness's input for it (default: a sample)")
    parser.add_argument("--strict", action="store_true", help="warnings about the document are errors")
    parser.add_argument("--base-dir", metavar="DIR", help="what relative commands and cwds in the document are relative to")
    parser.add_argument("--bridge", metavar="PYTHON", help="interpreter that has ahp-compile installed (default: this one)")
    return parser


def _probe(options: argparse.Namespace) -> int:
    one = target.load(options.target)
    registration = _read(options)
    if registration is None:
        return INVALID_DOCUMENT
    placement = Placement(home="/", bridge=options.bridge or sys.executable)
    payload = Path(options.payload).read_bytes() if options.payload else None
    event = Event(options.event)
    print(describe(one.name, event, run_probe(registration, one, placement, event, payload)), end="")
    return OK


def _add_stance(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--against",
        choices=[one.name.lower() for one in Party if one <= Party.AGENT],
        default="failure",
        help="who must not be able to break it (default: failure, that is nobody on purpose)",
    )
    group.add_argument("--accept", action="append", default=[], metavar="CODE", help="take one hole by its code")
    group.add_argument("--close", action="append", default=[], metavar="CODE", help="close a hole by native switches, or: all")
    group.add_argument(
        "--accept-evidence", choices=["documented"], help="let facts count that are known from documents only (unproven)"
    )
    group.add_argument("--trust-our-hook", action="store_true", help="also write what makes the harness trust our hooks")


def _add_placement(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--scope", choices=[one.value for one in Scope], default="user", help="whose configuration (default: user)"
    )
    group.add_argument("--home", metavar="DIR", help="home of the user (default: yours)")
    group.add_argument("--config-home", metavar="DIR", help="the harness's own folder, if not the default below the home")
    group.add_argument("--project", metavar="DIR", help="the repository, for --scope project")
    group.add_argument("--bridge", metavar="PYTHON", help="interpreter that has ahp-compile installed (default: this one)")
    group.add_argument("--plan-dir", metavar="DIR", help="folder for plans and the client (default: .local/share/ahp-compile)")
    group.add_argument("--os", choices=[*(one.value for one in Os), "windows"], default="linux", help="(default: linux)")
    group.add_argument(
        "--watchdog", metavar="FILE", default="/usr/bin/timeout", help="the timeout program (default: %(default)s)"
    )
    group.add_argument(
        "--path", metavar="PATHS", default="/usr/local/bin:/usr/bin:/bin", help="where backends' bare commands are found"
    )


def _run(options: argparse.Namespace) -> int:
    stance = Stance(Party[options.against.upper()], frozenset(options.accept), options.accept_evidence == "documented")
    placement = _placement(options)
    targets = [target.load(name) for name in _target_names(options.target)]
    if len(targets) > 1 and (options.output == "-" or options.config_home):
        raise UsageError("-o - and --config-home are for one target only")
    registration = _read(options)
    if registration is None:
        return INVALID_DOCUMENT
    job = _Job(options, registration, placement, stance, single=len(targets) == 1)
    return max([_compile(job, one) for one in targets], default=OK)


@frozen
class _Job:
    """What is the same for every target of one run."""

    options: argparse.Namespace
    registration: Registration
    placement: Placement
    stance: Stance
    single: bool


def _placement(options: argparse.Namespace) -> Placement:
    if options.os == "windows":
        raise UsageError(
            "[enforcement.no-guard] Windows: no guard exists that bounds a bridge there, so nothing can be promised"
        )
    return Placement(
        home=options.home or os.path.expanduser("~"),
        bridge=options.bridge or sys.executable,
        os=Os(options.os),
        scope=Scope(options.scope),
        config_home=options.config_home,
        project=options.project,
        plan_dir=options.plan_dir,
        watchdog=options.watchdog,
        search_path=options.path,
    )


def _target_names(wanted: Sequence[str]) -> list[str]:
    names = [name for one in wanted for name in (target.names() if one == "all" else [one])]
    return list(dict.fromkeys(names))


def _read(options: argparse.Namespace) -> Registration | None:
    name = options.registration
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    if options.base_dir is not None and not os.path.isabs(options.base_dir):
        raise UsageError("--base-dir must be an absolute path")
    reading = document.read("<stdin>" if name == "-" else name, raw, base_dir=options.base_dir, strict=options.strict)
    if reading.diagnostics:
        excerpt = sys.stderr.isatty()
        print(diagnostics.render(reading.diagnostics, reading.source, excerpt=excerpt), end="", file=sys.stderr)
    return reading.registration


def _compile(job: _Job, one: Target) -> int:
    options = job.options
    compilation = compile_registration(
        job.registration,
        one,
        job.placement,
        job.stance,
        close=frozenset(options.close),
        trust_our_hook=options.trust_our_hook,
    )
    to_stdout = options.output == "-"
    _report(compilation, options, sys.stderr if to_stdout else sys.stdout)
    if not compilation.judgement.equivalent:
        return NOT_EQUIVALENT
    if to_stdout:
        _write_stdout(compilation, one.name)
    else:
        folder = _folder(options.output, one.name, single=job.single)
        write_folder(folder, one.name, compilation.artifacts)
        if options.report != "json":
            print(f"written to {folder}")
    return OK


def _folder(output: str | None, name: str, *, single: bool) -> Path:
    if output is None:
        return Path("ahp-out") / name
    return Path(output) if single else Path(output) / name


def _write_stdout(compilation: Compilation, name: str) -> None:
    native = [one for one in compilation.artifacts if one.purpose is Purpose.NATIVE]
    if len(native) != 1:
        raise UsageError(f"{name} has {len(native)} native files, so -o needs a folder")
    sys.stdout.flush()
    sys.stdout.buffer.write(native[0].content)


def _report(compilation: Compilation, options: argparse.Namespace, stream: TextIO) -> None:
    judgement = compilation.judgement
    if options.report:
        print(report.render(compilation, options.report), end="", file=stream)
        return
    lines = [report.headline(judgement)]
    if not judgement.equivalent:
        lines += [f"  {line}" for line in report.refusal(judgement)]
    for code in sorted(set(options.accept) - {one.code for one in judgement.accepted}):
        lines.append(f"  note: --accept {code} names nothing that stands against this compile")
    if judgement.equivalent and judgement.premises:
        lines.append(f"  holds while {len(judgement.premises)} premises do; --report text lists them")
    print("\n".join(lines), file=stream)
