"""Questions that a person marks: a sheet to fill in, and its way back into the totals.

``manual.csv`` has a row for each answer: the rubric, the answer, and two empty columns, points and
comment. It is filled in where it lies, in any spreadsheet. The next run reads it, adds what is new,
and changes nothing that was typed. A mark belongs to the answer that was read: if a student hands
in another answer, a new row waits for a mark. Which answer of whom that was says the id, a word
that no spreadsheet takes for a number; it may make 123 of a student's number 00123. Where a row
says of another answer than its id, columns were sorted without the rest: nothing is read. What was
typed and belongs to no answer that counts is named.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gradebox.assignment import Assignment
from gradebox.grades import ByHand, Grade, harmless, rounded, without_formulas
from gradebox.result import QuestionResult
from gradebox.same_person import Table, read_table
from gradebox.sources import InputError
from gradebox.words import quoted

COLUMNS = ["student", "name", "question", "out of", "points", "comment", "rubric", "answer", "id"]
COMPARED = ["student", "name", "question", "answer"]  # with those of the id's answer
LONGEST = 20_000  # letters of an answer; a spreadsheet's cell takes 32,000

PICTURE = "[A picture that a table cannot show is in work/submissions/{}.ipynb]\n"
OLD = re.compile(r"[0-9a-f]{10}")  # an id of 0.1.0, which names the answer only


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was read, and the marks in it: key of an answer -> line and mark."""

    table: Table
    marks: dict[str, tuple[int, ByHand]]

    def key(self, row: list[str]) -> str:
        id = self.table.cell(row, "id")
        if not OLD.fullmatch(id):
            return id
        return old_key(self.table.cell(row, "student"), self.table.cell(row, "question"), id)


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
    for line, row in enumerate(sheet.table.rows, sheet.table.first_line):
        written = sheet.table.cell(row, "points")
        if not written:
            continue
        key, where = sheet.key(row), f"{path}, line {line}"
        question = sheet.table.cell(row, "question")
        if question not in most:
            raise InputError(f"{where}: the assignment has no question {question!r}")
        try:
            points = float(written.replace(",", ".").replace("_", "no number"))
        except ValueError as error:
            raise InputError(f"{where}: points must be a number, got {written!r}") from error
        if not 0 <= points <= most[question]:
            raise InputError(
                f"{where}: {question} has at most {most[question]:g} points, got {written}"
            )
        mark = ByHand(points, sheet.table.cell(row, "comment"))
        first, other = sheet.marks.get(key, (line, mark))
        if mark != other:
            raise InputError(f"{where}: the same answer has another mark in line {first}")
        sheet.marks[key] = line, mark
    return sheet


def apply(grades: Iterable[Grade], sheet: Sheet) -> list[Grade]:
    """The grades with what a person gave.

    Raises:
        InputError: A mark stands in a row that is about another answer than its id says.
    """
    grades = list(grades)
    _check_rows(grades, sheet)
    found = []
    for grade in grades:
        given = {}
        for one in grade.questions:
            for key in keys(grade, one) & sheet.marks.keys():
                given[one.id] = sheet.marks[key][1]
        found.append(replace(grade, by_hand=given))
    return found


def _check_rows(grades: list[Grade], sheet: Sheet) -> None:
    """Nothing in a row with a mark may be that of another answer than its id."""
    answers = [(grade, one) for grade in grades for one in grade.questions if one.manual]
    all_cells = [cells(*answer) for answer in answers]
    seen = {name: {_plain(one[name]) for one in all_cells} for name in COMPARED}
    owners = {key: at for at, answer in enumerate(answers) for key in keys(*answer)}
    for key, (line, _) in sheet.marks.items():
        if key not in owners:
            continue
        mine = all_cells[owners[key]]
        row = sheet.table.rows[line - sheet.table.first_line]
        for column in COMPARED:
            cell = _plain(sheet.table.cell(row, column))
            others = seen[column] if column == "student" else seen[column] & {cell}
            if is_same(cell, _plain(mine[column])):
                continue
            if cell and any(is_same(cell, other) for other in others):
                whose = f"an answer of {quoted(mine['student'])} to {mine['question']}"
                raise InputError(
                    f"manual.csv, line {line}: its {column} is {quoted(cell)}, and its id that of "
                    f"{whose}. Were some columns sorted or moved without the others? Nothing was "
                    "written; put them back"
                )


def is_same(cell: str, written: str) -> bool:
    """May a spreadsheet have made this cell of what was written? 123 of 00123, 4.7118E+06 of
    4711815."""
    if cell == written:
        return True
    try:
        number, exact = float(cell.replace(",", ".")), float(written)
    except ValueError:
        return False
    digits = sum(map(str.isdigit, cell.partition("e")[0]))
    return number == (float(f"{exact:.{max(digits - 1, 0)}e}") if "e" in cell else exact)


def _plain(text: str) -> str:
    return " ".join(text.split()).lstrip("'").casefold()


def left_over(sheet: Sheet, assignment: Assignment, grades: Iterable[Grade]) -> list[str]:
    """What was typed and counts for nobody, in words."""
    used = set().union(*(keys(grade, one) for grade in grades for one in grade.questions))
    by_us = {question.id for question in assignment.questions if not question.manual}
    said = []
    for key, (line, _) in sheet.marks.items():
        row = sheet.table.rows[line - sheet.table.first_line]
        student, question = (sheet.table.cell(row, name) for name in ("student", "question"))
        if key not in used:
            why = "the grader marks it" if question in by_us else "no such answer counts"
            said.append(f"line {line} ({quoted(student)}, {question}: {why})")
    return said


def extend(sheet: Sheet, assignment: Assignment, grades: Iterable[Grade]) -> bytes | None:
    """The sheet with a row for each answer that counts; nothing if a person has nothing to mark.
    What stands in it stays as it is, the instructor's own columns too."""
    rubrics = {question.id: question.rubric for question in assignment.questions}
    known = {sheet.key(row) for row in sheet.table.rows}
    names = [name.strip().lower() for name in sheet.table.header]
    rows = list(sheet.table.rows)
    for grade in grades:
        for one in grade.questions:
            if not one.manual or one.status == "missing" or keys(grade, one) & known:
                continue
            written = cells(grade, one) | {"rubric": rubrics.get(one.id, "")}
            rows.append([written.get(name, "") for name in names])
    return replace(sheet.table, rows=rows).encode() if rows else None


def cells(grade: Grade, question: QuestionResult) -> dict[str, str]:
    """What the sheet says of an answer."""
    seen = PICTURE.format(grade.chosen.notebook) if grade.chosen and _drawn(question) else ""
    return {
        "student": harmless(grade.person.id),
        "name": harmless(grade.person.name),
        "question": question.id,
        "out of": str(rounded(question.possible)),
        "answer": seen + _readable(question.answer),
        "id": answer_id(grade, question),
    }


def keys(grade: Grade, question: QuestionResult) -> set[str]:
    """By what an answer that a person marks can be found in the sheet."""
    if not question.manual:
        return set()
    digest = hashlib.sha256(question.answer.strip().encode("utf-8", "replace")).hexdigest()
    old = old_key(harmless(grade.person.id), question.id, digest[:10])
    return {answer_id(grade, question), old}


def answer_id(grade: Grade, question: QuestionResult) -> str:
    """A short name for an answer of a student, which no spreadsheet changes; spaces at the ends of
    the answer do not count."""
    parts = repr((grade.person.id, question.id, question.answer.strip()))
    return f"a{hashlib.sha256(parts.encode('utf-8', 'replace')).hexdigest()[:15]}"


def old_key(student: str, question: str, digest: str) -> str:
    return "\n".join((student, question, digest))


def _drawn(question: QuestionResult) -> bool:
    """Is a picture in this answer, pasted, linked or in HTML?"""
    return bool(re.search(r"!\[|\[picture |<(?:img|svg)\b", question.answer, re.IGNORECASE))


def _readable(answer: str) -> str:
    """An answer as a cell: no control characters, and no line that a spreadsheet takes for a
    formula; one that expects other separators may begin a row with any line."""
    text = "".join(one for one in answer[:LONGEST] if one.isprintable() or one in "\n\t").strip()
    return without_formulas(text)
