"""What follows from the stored results: grades, a page for each student, sheets, the gradebook."""

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gradebox import exports, manual
from gradebox.feedback import page
from gradebox.grades import MISSING, NOT_MARKED, Attempt, Grade, decide, grades_csv, rounded, why
from gradebox.plan import Inputs, Plan
from gradebox.store import Store, file_name, write_json
from vitbook.files import write_atomically


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
    write_atomically(out / "grades.csv", grades_csv(inputs.assignment, grades))
    _summary(plan, grades, say)
    unused = manual.left_over(inputs.sheet, inputs.assignment, grades)
    if unused:
        say(f"points in manual.csv that count for nobody: {', '.join(unused[:20])}")
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
