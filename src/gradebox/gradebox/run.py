"""The run: check everything, mark what is not marked yet, write what follows from it.

Marking a notebook gives a result that is stored at once; grades, pages and sheets are made from the
stored results at the end. So a run may be killed at any time and started again, a class may be
marked in shards, and a new roster, another late policy or marks given by hand cost no second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from gradebox import exports, manual
from gradebox.assignment import Assignment, read_assignment
from gradebox.collect import Found, collect
from gradebox.feedback import page
from gradebox.grades import MISSING, NOT_MARKED, Attempt, Grade, decide, grades_csv, rounded, why
from gradebox.result import Result
from gradebox.roster import LatePolicy, Student, read_roster
from gradebox.similarity import report
from gradebox.sources import InputError, NotReadableError
from gradebox.store import Store, file_name, package_key, write_json
from vitbook.files import write_atomically

Mark = Callable[[Path, Sequence[str] | None], Result]  # a notebook, some questions or all


@dataclass(frozen=True)
class Plan:
    """What the instructor asked for."""

    submissions: Path
    package: Path
    out: Path
    limits: Any
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
    similarity: bool = False


@dataclass(frozen=True)
class Inputs:
    """What the plan names, read and found good. Until here nothing has been written."""

    assignment: Assignment
    found: list[Found]
    roster: list[Student] | None
    sheet: manual.Sheet
    gradebook: exports.Gradebook | None


def read_inputs(plan: Plan) -> Inputs:
    """Read and check all inputs.

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
    if plan.shard != (1, 1) and (plan.fill or plan.similarity):
        raise InputError("--fill and --similarity need all results: leave --shard out")
    found = collect(plan.submissions, plan.platform)
    roster = read_roster(plan.roster) if plan.roster else None
    sheet = manual.read_sheet(plan.out / "manual.csv", assignment)
    gradebook = None
    if plan.fill:
        if plan.fill.resolve().parent == out:
            raise InputError(f"--fill {plan.fill} lies in --out, where the filled copy goes")
        gradebook = exports.read_gradebook(plan.fill, plan.column, assignment.points, plan.scale)
    return Inputs(assignment, found, roster, sheet, gradebook)


def run(plan: Plan, marker: Callable[[], Mark], say: Callable[[str], None] = print) -> int:
    """Mark and write; 0 when all is done, 1 when the machine failed for some.

    Args:
        plan: What to do.
        marker: Called once, when all inputs are found good: gives the function that marks.
        say: Where sentences about the run go.

    Raises:
        InputError: An input cannot be used, or there is no sandbox; nothing was written.
    """
    inputs = read_inputs(plan)
    mark = marker()
    store = Store(plan.out, package_key(plan.package, plan.limits, plan.unsafe))
    try:
        store.make()
    except OSError as error:
        raise InputError(f"--out {plan.out} cannot be written ({error.strerror})") from error
    number, of = plan.shard
    attempts, failures = mark_all(inputs.found[number - 1 :: of], plan, store, mark, say)
    if plan.shard == (1, 1):
        finish(plan, inputs, store, attempts, say)
    else:
        say(f"shard {number} of {of} is done; when all are, run the same without --shard")
    for failure in failures[:5]:
        say(f"not marked: {failure}")
    if failures:
        say(
            f"{some(len(failures), 'notebook')} not marked, by this machine's fault: start it again"
        )
    return 1 if failures else 0


def mark_all(
    found: Sequence[Found], plan: Plan, store: Store, mark: Mark, say: Callable[[str], None]
) -> tuple[list[Attempt], list[str]]:
    """A result for each attempt, and what the machine could not do."""
    keys: list[str] = []
    problems: list[str] = []
    for one in found:
        try:
            keys.append(store.keep(one.read()))
            problems.append("")
        except NotReadableError as error:
            keys.append("")
            problems.append(str(error))
    unique = list(dict.fromkeys(filter(None, keys)))
    todo = [key for key in unique if plan.again or store.load(key) is None]
    if len(todo) < len(unique):
        say(f"marked already: {len(unique) - len(todo)} of {some(len(unique), 'notebook')}")
    failures = []
    with (
        ThreadPoolExecutor(plan.jobs) as pool,
        tqdm(total=len(todo), unit="notebook", mininterval=_interval(), disable=not todo) as bar,
    ):
        waiting = {pool.submit(_mark_one, key, plan, store, mark) for key in todo}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                failures += [one.result() for one in done if one.result()]
                bar.update(len(done))
        except BaseException:  # Ctrl-C: what has begun ends, nothing else begins
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    attempts = []
    for one, key, problem in zip(found, keys, problems, strict=True):
        attempts.append(Attempt(one, key, store.load(key) if key else None, problem))
    return attempts, failures


def _interval() -> float:
    return 0.2 if sys.stderr.isatty() else 20.0


def _mark_one(key: str, plan: Plan, store: Store, mark: Mark) -> str:
    """Mark one notebook and store the result; what the machine could not do, else nothing."""
    earlier = store.earlier(key) if plan.questions else None
    only = plan.questions if earlier and earlier.status == "ok" else None
    try:
        result = mark(store.notebook(key), only)
    except Exception as error:  # one submission must not end the marking of all others
        return f"{key}.ipynb: {type(error).__name__}: {error}"
    if result.status == "crashed":
        return f"{key}.ipynb: {result.detail}"
    store.save(key, merged(earlier, result, only) if only else result)
    return ""


def merged(earlier: Result, result: Result, only: Sequence[str]) -> Result:
    """The earlier result with some questions marked anew."""
    if result.status != "ok":
        return result
    kept = {one.id: one for one in earlier.questions if one.id not in only}
    questions = [kept.get(one.id, one) for one in result.questions]
    return replace(
        result,
        questions=questions,
        points=sum(one.points or 0.0 for one in questions if not one.manual),
        notes=[*result.notes, f"marked anew: {', '.join(only)}"],
    )


def finish(
    plan: Plan,
    inputs: Inputs,
    store: Store,
    attempts: list[Attempt],
    say: Callable[[str], None],
) -> list[Grade]:
    """Write everything that follows from the results; grades.csv comes last."""
    grades = decide(attempts, inputs.roster, plan.late, plan.keep)
    grades = manual.apply(grades, inputs.sheet)
    out = plan.out
    for grade in grades:
        name = file_name(grade.person.id)
        write_json(out / "students" / f"{name}.json", student(grade))
        html = page(inputs.assignment, grade).encode("utf-8", "replace")
        write_atomically(out / "feedback" / f"{name}.html", html)
    sheet = manual.extend(inputs.sheet, inputs.assignment, grades)
    if sheet is not None:
        write_atomically(out / "manual.csv", sheet)
    if plan.similarity:
        html, table = report(inputs.assignment, grades)
        write_atomically(out / "similarity.html", html.encode("utf-8", "replace"))
        write_atomically(out / "similarity.csv", table)
        say(f"similarity report: {out / 'similarity.html'} (a hint, no proof)")
    write_atomically(out / "grades.csv", grades_csv(inputs.assignment, grades))
    _summary(plan, grades, say)
    if inputs.gradebook:
        _fill(plan, inputs.gradebook, grades, say)
    return grades


def student(grade: Grade) -> dict[str, Any]:
    """Everything about one student. For the instructor: the hidden cases are in it."""
    attempts = []
    for one in grade.attempts:
        when = one.found.submitted
        about = {"attempt": one.found.attempt, "file": one.found.file, "notebook": one.notebook}
        about |= {"submitted": when.isoformat() if when else None, "late": one.found.late}
        about |= {"status": one.status, "points": one.points, "counts": one is grade.chosen}
        about |= {"detail": "" if one.status == "ok" else why(one)}
        attempts.append(about)
    result = grade.chosen.result if grade.chosen else None
    return {
        "student": grade.person.id,
        "name": grade.person.name,
        "email": grade.person.email,
        "in_roster": grade.listed,
        "status": grade.status,
        "points": rounded(grade.earned),
        "days_late": grade.days_late,
        "per_cent_lost": grade.lost_percent,
        "total": grade.total,
        "open": grade.open,
        "by_hand": {id: vars(mark) for id, mark in grade.by_hand.items()},
        "notes": list(grade.notes),
        "attempts": attempts,
        "result": asdict(result) if result else None,
    }


def _summary(plan: Plan, grades: list[Grade], say: Callable[[str], None]) -> None:
    counted: dict[str, int] = {}
    for grade in grades:
        word = {"ok": "marked", MISSING: "missing", NOT_MARKED: "not marked"}.get(grade.status)
        counted[word or grade.status] = counted.get(word or grade.status, 0) + 1
    say(
        f"{some(len(grades), 'student')}: "
        + ", ".join(f"{n} {word}" for word, n in counted.items())
    )
    strangers = [grade.person.id for grade in grades if not grade.listed]
    if strangers:
        say(f"not in the roster: {', '.join(strangers[:10])}{' ...' if strangers[10:] else ''}")
    waiting = sum(len(grade.open) for grade in grades)
    if waiting:
        say(f"{some(waiting, 'answer')} without points by hand: fill in {plan.out / 'manual.csv'}")
    say(f"grades: {plan.out / 'grades.csv'}, pages for students: {plan.out / 'feedback'}{os.sep}")


def some(number: int, what: str) -> str:
    """ "1 student", "2 students"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _fill(
    plan: Plan, book: exports.Gradebook, grades: list[Grade], say: Callable[[str], None]
) -> None:
    filled = exports.fill(book, grades)
    path = plan.out / book.path.name
    write_atomically(path, filled.data)
    say(f"{some(filled.cells, 'mark')} written into {path}, column {book.table.header[book.at]!r}")
    for words, names in (
        ("had another mark there", filled.changed),
        ("have a mark and no row that takes it", filled.unmatched),
        ("have a row and no final mark; their cell is as it was", filled.left),
    ):
        if names:
            say(f"{len(names)} {words}: {', '.join(names[:20])}{' ...' if names[20:] else ''}")
