"""Questions that a person marks: a sheet to fill in, and its way back into the totals.

``manual.csv`` has a row for each answer: the rubric, the answer, and two empty columns, points and
comment. It is filled in where it lies, in any spreadsheet. The next run reads it, adds what is new,
and changes nothing that was typed. A mark belongs to the answer that was read: if a student hands
in another answer, a new row waits for a mark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gradebox.assignment import Assignment
from gradebox.grades import FORMULA, ByHand, Grade, harmless, rounded
from gradebox.people import Table, read_table
from gradebox.result import QuestionResult
from gradebox.sources import InputError

COLUMNS = ["student", "name", "question", "out of", "points", "comment", "rubric", "answer", "id"]
LONGEST = 20_000  # letters of an answer; a spreadsheet's cell takes 32,000

Key = tuple[str, str, str]  # student, question, answer's id


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was read, and the marks in it."""

    table: Table
    marks: dict[Key, ByHand]

    def key(self, row: list[str]) -> Key:
        student, question, id = (
            self.table.cell(row, name) for name in ("student", "question", "id")
        )
        return student, question, id


# With a byte-order mark, so that a spreadsheet takes it for UTF-8.
EMPTY = Sheet(Table(COLUMNS, [], ",", True, "\r\n"), {})


def read_sheet(path: Path, assignment: Assignment) -> Sheet:
    """The sheet of marks; an empty one if there is none yet.

    Raises:
        InputError: Points are no number, or not between 0 and the question's points.
    """
    if not path.exists():
        return EMPTY
    sheet = Sheet(read_table(path, "sheet of marks"), {})
    for column in COLUMNS:
        if sheet.table.column(column) is None:
            raise InputError(f"{path} has lost its column {column!r}")
    most = {question.id: question.points for question in assignment.questions}
    for line, row in enumerate(sheet.table.rows, 2):
        written = sheet.table.cell(row, "points")
        if not written:
            continue
        key, where = sheet.key(row), f"{path}, line {line}"
        if key[1] not in most:
            raise InputError(f"{where}: the assignment has no question {key[1]!r}")
        try:
            points = float(written.replace(",", "."))
        except ValueError as error:
            raise InputError(f"{where}: points must be a number, got {written!r}") from error
        if not 0 <= points <= most[key[1]]:
            raise InputError(
                f"{where}: {key[1]} has at most {most[key[1]]:g} points, got {written}"
            )
        sheet.marks[key] = ByHand(points, sheet.table.cell(row, "comment"))
    return sheet


def apply(grades: Iterable[Grade], sheet: Sheet) -> list[Grade]:
    """The grades with what a person gave."""
    found = []
    for grade in grades:
        given = {one.id: sheet.marks.get(_key(grade, one)) for one in grade.questions if one.manual}
        found.append(replace(grade, by_hand={id: mark for id, mark in given.items() if mark}))
    return found


def extend(sheet: Sheet, assignment: Assignment, grades: Iterable[Grade]) -> bytes | None:
    """The sheet with a row for each answer that counts; nothing if a person has nothing to mark.
    What stands in it stays as it is, the instructor's own columns too."""
    rubrics = {question.id: question.rubric for question in assignment.questions}
    known = {sheet.key(row) for row in sheet.table.rows}
    names = [name.strip().lower() for name in sheet.table.header]
    rows = list(sheet.table.rows)
    for grade in grades:
        for one in grade.questions:
            unanswered = one.status == "missing"
            if not one.manual or unanswered or _key(grade, one) in known:
                continue
            student, question, id = _key(grade, one)
            cells = {"student": student, "question": question, "id": id}
            cells |= {"name": harmless(grade.person.name), "out of": str(rounded(one.possible))}
            cells |= {"rubric": rubrics.get(question, ""), "answer": _readable(one.answer)}
            rows.append([cells.get(name, "") for name in names])
    return replace(sheet.table, rows=rows).encode() if rows else None


def _key(grade: Grade, question: QuestionResult) -> Key:
    return harmless(grade.person.id), question.id, answer_id(question.answer)


def answer_id(answer: str) -> str:
    """A short name for an answer; spaces at its ends do not count."""
    return hashlib.sha256(answer.strip().encode("utf-8", "replace")).hexdigest()[:10]


def _readable(answer: str) -> str:
    """An answer as a cell: no control characters, and no line that a spreadsheet takes for a
    formula; one that expects other separators may begin a row with any line."""
    text = "".join(one for one in answer[:LONGEST] if one.isprintable() or one in "\n\t").strip()
    return FORMULA.sub(r"\1'\2", text)
