"""Marks into the instructor's own gradebook file, as Canvas or Moodle exported it.

Only the cells of one column change. Rows, columns, order, delimiter and line ends stay as they are.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gradebox.grades import Grade, rounded
from gradebox.roster import is_student
from gradebox.same_person import Matcher, Person, Table, read_table
from gradebox.sources import InputError

MOODLE = ("grade",)
MOODLE_MOST = ("maximum grade",)
# The columns by which a gradebook is known; Canvas's are the same in all languages.
KNOWN = {"canvas": {"student", "id"}, "moodle": {"identifier", *MOODLE, "grade can be changed"}}
NO_MARK = {"", "-"}
EXCUSED = {"ex"}


@dataclass(frozen=True)
class Gradebook:
    """A gradebook and the column that takes the marks."""

    path: Path
    table: Table
    at: int
    most: float  # points possible, as the gradebook says
    factor: float  # from the assignment's points to the gradebook's
    comma: bool  # 7,5 instead of 7.5


@dataclass(frozen=True)
class Filled:
    """What filling did."""

    data: bytes
    cells: int
    changed: list[str]  # students who had another mark there
    unmatched: list[str]  # students with a mark and no row that takes it, and why
    left: list[str]  # students in the gradebook without a final mark


def read_gradebook(path: Path, column: str | None, points: float, scale: bool) -> Gradebook:
    """Find the column for the marks, before anything is marked.

    Args:
        path: A Canvas gradebook or a Moodle grading worksheet.
        column: The assignment's column in Canvas, with or without its number in brackets.
        points: The points of the assignment.
        scale: Convert where the gradebook has other points.

    Raises:
        InputError: It is neither, the column is missing or not unique, or the points differ.
    """
    table = read_table(path, "gradebook")
    names = {name.strip().lower() for name in table.header}
    moodle = names >= KNOWN["moodle"]
    if not moodle and not names >= KNOWN["canvas"]:
        raise InputError(
            f"{path} is neither a gradebook of Canvas, with the columns Student and ID, nor a "
            "worksheet of Moodle in English: set Moodle to English and download it again. It has "
            f"{_names(table)}"
        )
    grade = table.column(*MOODLE) if moodle else None
    at = grade if grade is not None and column is None else _column(path, table, column)
    most, comma = None, False
    for row in table.rows:
        first = row[0].strip().lower() if row else ""
        if moodle:
            number = table.cell(row, *MOODLE_MOST)
        else:
            number = row[at].strip() if first == "points possible" and at < len(row) else ""
        comma = comma or bool(re.fullmatch(r"\d+,\d+", number))
        if most is None and re.fullmatch(r"\d+([.,]\d+)?", number):
            most = float(number.replace(",", "."))
    most = most or points
    if most != points and not scale:
        raise InputError(
            f"{path}: {table.header[at]!r} has {most:g} points and the assignment {points:g}; "
            "change it there, or say --scale"
        )
    return Gradebook(path, table, at, most, most / points if points else 1.0, comma)


def _column(path: Path, table: Table, column: str | None) -> int:
    """The column called so; the number that Canvas adds in brackets may be left out."""
    called = [re.sub(r"\s*\(\d+\)$", "", name).strip() for name in table.header]
    if column is None:
        raise InputError(f"{path}: name the column with --column; it has {_names(table)}")
    exact = [at for at, name in enumerate(table.header) if name.strip() == column.strip()]
    found = exact or [at for at, name in enumerate(called) if name == column.strip()]
    if len(found) != 1:
        many = "no column" if not found else "several columns"
        raise InputError(f"{path} has {many} {column!r}; it has {_names(table)}")
    return found[0]


def _names(table: Table) -> str:
    return ", ".join(repr(name) for name in table.header if name.strip())[:600]


def fill(book: Gradebook, grades: Iterable[Grade]) -> Filled:
    """Write each final mark into its student's row."""
    table = book.table
    places = [at for at, row in enumerate(table.rows) if is_student(table, row)]
    matcher = Matcher([table.person(table.rows[at]) for at in places])
    grades = list(grades)
    matcher.learn(grade.person for grade in grades)
    rows = [list(row) for row in table.rows]
    cells, changed, unmatched, done = 0, [], [], set()
    final = [(grade, grade.total) for grade in grades if grade.total is not None]
    claimed: dict[int, list[Person]] = {}
    for one in {id(grade.person): grade.person for grade in grades}.values():
        if (place := matcher.find(one)) is not None:
            claimed.setdefault(place, []).append(one)
    for grade, total in final:
        where = matcher.find(grade.person)
        if where is None:
            doubt = matcher.doubt(grade.person)
            unmatched.append(grade.person.id + (f" ({doubt})" if doubt else ""))
            continue
        rivals = [matcher.agreement(one, where) for one in claimed[where]]
        own = matcher.agreement(grade.person, where)
        if own < max(rivals) or rivals.count(own) > 1:
            unmatched.append(f"{grade.person.id} (several are found in one row)")
            continue
        row = rows[places[where]]
        if table.cell(row, "grade can be changed").lower() == "no":
            unmatched.append(f"{grade.person.id} (locked in the gradebook)")
            continue
        row += [""] * (book.at + 1 - len(row))
        before = row[book.at].strip()
        if before.lower() in EXCUSED:
            unmatched.append(f"{grade.person.id} (excused in the gradebook)")
            continue
        mark = f"{rounded(total * book.factor):g}"
        mark = mark.replace(".", ",") if book.comma else mark
        if before not in NO_MARK and not _equal(before, mark):
            changed.append(grade.person.id)
        row[book.at] = mark
        done.add(where)
        cells += 1
    left = [one.id for at, one in enumerate(matcher.people) if at not in done]
    return Filled(replace(table, rows=rows).encode(), cells, changed, unmatched, left)


def _equal(one: str, other: str) -> bool:
    try:
        return float(one.replace(",", ".")) == float(other.replace(",", "."))
    except ValueError:
        return False
