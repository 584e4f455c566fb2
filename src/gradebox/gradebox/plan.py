"""What the instructor asked for, and what it names: all read and checked before anything starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gradebox import exports, manual
from gradebox.assignment import Assignment, read_assignment
from gradebox.collect import Found, collect
from gradebox.roster import LatePolicy, Student, read_roster
from gradebox.sandbox import Limits
from gradebox.sources import InputError


@dataclass(frozen=True)
class Plan:
    """What the instructor asked for."""

    submissions: Path
    package: Path
    out: Path
    limits: Limits
    unsafe: bool = False
    platform: str = "auto"
    jobs: int = 1
    shard: tuple[int, int] = (1, 1)
    roster: Path | None = None
    late: LatePolicy = field(default_factory=LatePolicy)
    keep: str = "last"
    questions: tuple[str, ...] = ()
    again: bool = False
    fill: Path | None = None
    column: str | None = None
    scale: bool = False


@dataclass(frozen=True)
class Inputs:
    """What the plan names, read and found good. Until here nothing has been written."""

    assignment: Assignment
    found: list[Found]
    roster: list[Student] | None
    sheet: manual.Sheet
    gradebook: exports.Gradebook | None


def read_inputs(plan: Plan, say: Callable[[str], None] = print) -> Inputs:
    """Read and check all inputs, and say how they were read.

    Raises:
        InputError: One of them cannot be used.
    """
    assignment = read_assignment(plan.package)
    known = [question.id for question in assignment.questions]
    for question in plan.questions:
        if question not in known:
            raise InputError(f"there is no question {question!r}; there are {', '.join(known)}")
    source, out = plan.submissions.resolve(), plan.out.resolve()
    if source.is_dir() and out.is_relative_to(source):
        raise InputError(f"--out {plan.out} lies inside the submissions; choose another folder")
    if plan.out.exists() and not plan.out.is_dir():
        raise InputError(f"--out {plan.out} is a file")
    if plan.shard != (1, 1) and plan.fill:
        raise InputError("--fill needs all results: leave --shard out")
    found = collect(plan.submissions, plan.platform, say)
    roster = read_roster(plan.roster) if plan.roster else None
    sheet = manual.read_sheet(plan.out / "manual.csv", assignment)
    gradebook = None
    if plan.fill:
        if plan.fill.resolve().parent == out:
            raise InputError(f"--fill {plan.fill} lies in --out, where the filled copy goes")
        gradebook = exports.read_gradebook(plan.fill, plan.column, assignment.points, plan.scale)
    return Inputs(assignment, found, roster, sheet, gradebook)
