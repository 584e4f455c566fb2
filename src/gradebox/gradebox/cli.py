"""The command ``gradebox``: a folder of notebooks in, grades and a page for each student out.

    gradebox SUBMISSIONS --assignment a1-k3f9.gradebox.zip --out results --jobs 4
    gradebox canvas.zip --assignment PACKAGE --out results --roster class.csv \\
        --due 2026-03-01T23:59+01:00 --late "10 per day, at most 50"
    gradebox canvas.zip --assignment PACKAGE --out results --fill book.csv --column "Homework 1"
    gradebox moodle.zip --assignment PACKAGE --out results --question q3      (after a new package)
    gradebox --forget 4711 --out results
    gradebox FOLDER --contest MyMixing --out results   (a layer each, in STUDENT.py)

Start it again with other options whenever you like: what is marked is not marked twice.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gradebox.hosted import write_zip
from gradebox.plan import Plan
from gradebox.platforms import READERS
from gradebox.roster import read_late
from gradebox.run import Marker, run
from gradebox.sandbox import Limits, NoSandboxError, find_sandbox
from gradebox.sources import InputError
from gradebox.store import Store


def parser() -> argparse.ArgumentParser:
    read = argparse.ArgumentParser(
        prog="gradebox",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = read.add_argument
    add("submissions", nargs="?", type=Path, help="folder, or export of Canvas, Moodle, Gradescope")
    add("--assignment", type=Path, metavar="PACKAGE", help="what `make assignment` wrote")
    add("--out", type=Path, metavar="DIR", help="folder of results; all about students is in it")
    add("--platform", choices=["auto", *READERS], default="auto", help="how to read file names")
    group = read.add_argument_group("the class")
    add = group.add_argument
    add("--roster", type=Path, help="CSV: id, name, email, extension (or a gradebook)")
    add("--due", help="2026-03-01, or 2026-03-01T18:00+01:00")
    add("--late", help='what lateness costs: "10 per day, at most 50" (per cent of the points)')
    add("--grace", type=float, default=0, metavar="MINUTES", help="lateness that costs nothing")
    add("--keep", choices=["last", "best"], default="last", help="which attempt counts")
    add("--fill", type=Path, metavar="CSV", help="a copy of this gradebook with the marks in it")
    add("--column", help="the assignment's column in the Canvas gradebook")
    add("--scale", action="store_true", help="convert to the gradebook's points")
    group = read.add_argument_group("instead of marking")
    add = group.add_argument
    add("--forget", metavar="STUDENT", help="remove a student's files from --out")
    add("--gradescope-zip", type=Path, metavar="ZIP", help="write an autograder for Gradescope")
    add("--contest", metavar="CLASS", help="compare the token mixers of this name in STUDENT.py")
    add("--task", choices=["places", "labels"], default="places", help="of the contest")
    add("--seeds", type=int, default=5, help="of the contest: trainings that count, for each")
    add("--length", type=float, default=1, help="of its budget, in that of vitbook compare")
    group = read.add_argument_group("the machine")
    add = group.add_argument
    add("--jobs", type=int, default=1, help="notebooks at a time; each takes a core")
    add("--shard", default="1/1", metavar="I/N", help="only the I-th of N parts")
    add("--question", action="append", default=[], metavar="ID", help="mark only this one anew")
    add("--again", action="store_true", help="mark anew what is marked already")
    add("--seconds", type=float, help="limit for one call of a student's code")
    add("--memory", type=int, metavar="MB", help="limit for one student's process")
    add("--sandbox", choices=["auto", "bubblewrap", "landlock"], default="auto", help="which one")
    add("--unsafe", action="store_true", help="without a sandbox: only for code that you trust")
    return read


def main(
    arguments: list[str] | None = None, marker: Callable[[argparse.Namespace], Marker] | None = None
) -> int:
    """Run the command; 0 done, 1 the machine failed for some, 2 a wrong input, 130 interrupted."""
    options = parser().parse_args(arguments)
    try:
        if options.forget is not None:
            return _forget(options)
        if options.gradescope_zip is not None:
            return _gradescope(options)
        if options.contest is not None:
            return _contest(options)
        return run(_plan(options), lambda: (marker or sandboxed)(options), say=_say)
    except InputError as error:
        print(f"gradebox: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ngradebox: interrupted; start it again and it goes on here", file=sys.stderr)
        return 130


def _say(sentence: str) -> None:
    print(sentence, flush=True)


def sandboxed(options: argparse.Namespace) -> Marker:
    """The real marking. torch is loaded here, when all inputs are found good."""
    from gradebox.marking import marker
    from gradebox.package import load_package

    try:
        sandbox = find_sandbox("unsafe" if options.unsafe else options.sandbox)
        package = load_package(options.assignment)
    except (NoSandboxError, ValueError) as error:
        raise InputError(str(error)) from error
    return marker(package, _limits(options), sandbox)


def _plan(options: argparse.Namespace) -> Plan:
    for name in ("submissions", "assignment", "out"):
        if getattr(options, name) is None:
            shown = "SUBMISSIONS" if name == "submissions" else f"--{name}"
            raise InputError(f"{shown} is missing; `gradebox --help` shows how it is used")
    if options.jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {options.jobs}")
    if options.late and not options.due:
        raise InputError("--late needs --due, the time from which days are counted")
    return Plan(
        submissions=options.submissions,
        package=options.assignment,
        out=options.out,
        limits=_limits(options),
        unsafe=options.unsafe,
        platform=options.platform,
        jobs=options.jobs,
        shard=_shard(options.shard),
        roster=options.roster,
        late=read_late(options.late, options.due, options.grace),
        keep=options.keep,
        questions=tuple(options.question),
        again=options.again,
        fill=options.fill,
        column=options.column,
        scale=options.scale,
    )


def _limits(options: argparse.Namespace) -> Limits:
    chosen = {"call_s": options.seconds, "memory_mb": options.memory}
    if any(value is not None and value <= 0 for value in chosen.values()):
        raise InputError("--seconds and --memory must be greater than 0")
    return Limits(**{key: value for key, value in chosen.items() if value is not None})


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise InputError(f"--shard is written I/N with I from 1 to N, got {text!r}")
    return int(number), int(of)


def _forget(options: argparse.Namespace) -> int:
    if options.out is None or not options.out.is_dir():
        raise InputError("--forget needs --out, the folder of results")
    removed = list(Store(options.out, "").forget(options.forget))
    if not removed:
        raise InputError(f"{options.out} has no files of {options.forget!r}")
    for path in removed:
        print(f"removed {path}")
    print("grades.csv, manual.csv and the export itself may still name this student")
    return 0


def _contest(options: argparse.Namespace) -> int:
    if options.submissions is None or options.out is None:
        raise InputError("--contest needs FOLDER and --out")
    if options.seeds < 3 or options.jobs < 1 or not 0 < options.length <= 100:
        raise InputError("--contest needs at least 3 --seeds, 1 --jobs, a --length up to 100")
    from gradebox.contest import PROCESSOR_S, Rules, hold

    try:
        sandbox = find_sandbox("unsafe" if options.unsafe else options.sandbox)
    except (NoSandboxError, ValueError) as error:
        raise InputError(str(error)) from error
    limits = replace(_limits(options), total_s=PROCESSOR_S, cpu_s=PROCESSOR_S)
    rules = Rules(options.contest, options.task, options.seeds, options.length, 0, limits, sandbox)
    return hold(
        options.submissions, options.out, rules, jobs=options.jobs, again=options.again, say=_say
    )


def _gradescope(options: argparse.Namespace) -> int:
    if options.assignment is None:
        raise InputError("--gradescope-zip needs --assignment, the package")
    write_zip(options.gradescope_zip, options.assignment)
    print(f"{options.gradescope_zip}: keep it private, the hidden tests are in it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
