"""The class: who is in it, who has more time, and what lateness costs."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

from gradebox.same_person import Person, Table, read_table
from gradebox.sources import InputError

SPOKEN = re.compile(
    r"^(?P<percent>\d+(\.\d+)?)\s*%?\s*(?:per|a|/)\s*day"
    r"(?:\s*,?\s*at most\s*(?P<cap>\d+(\.\d+)?)\s*%?)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Student:
    """A row of the roster."""

    person: Person
    extension: datetime | None = None  # instead of the due date
    submitted: datetime | None = None  # typed by the instructor, where the platform says no time


@dataclass(frozen=True)
class LatePolicy:
    """So many per cent of the earned points for each day that has begun, up to a cap."""

    due: datetime | None = None
    percent: float = 0.0
    cap: float = 100.0
    grace: timedelta = timedelta(0)

    def days(self, submitted: datetime | None, marked_late: bool, student: Student | None) -> int:
        """Days that have begun since the due date, or since the end of an extension."""
        extension = student.extension if student else None
        until = extension or self.due
        if submitted and until:
            seconds = (submitted - until - self.grace).total_seconds()
            return max(0, math.ceil(seconds / 86400))
        return int(marked_late and not extension)

    def lost(self, days: int) -> float:
        """Per cent of the earned points that so many days cost."""
        return min(self.cap, self.percent * days)


def read_late(words: str | None, due: str | None, grace_minutes: float = 0) -> LatePolicy:
    """A policy in words: "10 per day, at most 50".

    Raises:
        InputError: The words or the date cannot be read.
    """
    when, grace = read_time(due, "--due") if due else None, timedelta(minutes=grace_minutes)
    if words is None:
        return LatePolicy(when, grace=grace)
    match = SPOKEN.match(words.strip())
    if not match:
        raise InputError(f'--late is written like "10 per day, at most 50", got {words!r}')
    percent, cap = float(match["percent"]), float(match["cap"] or 100)
    if percent > 100 or cap > 100:
        raise InputError(f"--late takes at most 100 per cent of the points, got {words!r}")
    return LatePolicy(when, percent, cap, grace)


def read_time(text: str, what: str) -> datetime:
    """A date (its whole day counts) or a time; without a zone, in the zone of this machine."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"{what} is written like 2026-03-01 or 2026-03-01T18:00+01:00, got {text!r}"
        ) from error
    if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text.strip()):
        read = datetime.combine(read.date(), time(23, 59, 59))
    return read if read.tzinfo else read.astimezone()


def read_roster(path: Path) -> list[Student]:
    """A CSV file with id, name, email and, if wanted, extension and submitted. A Canvas gradebook
    or a Moodle grading worksheet will do as well.

    Raises:
        InputError: No column says who a row is about, two rows are the same person, or a date
            cannot be read.
    """
    table = read_table(path, "roster")
    found: list[Student] = []
    seen: dict[str, int] = {}
    for line, row in enumerate(table.rows, table.first_line):
        if not is_student(table, row):
            continue
        student = Student(
            table.person(row),
            _time(table, row, f"{path}, line {line}: extension", "extension", "extension until"),
            _time(table, row, f"{path}, line {line}: submitted", "submitted"),
        )
        if student.person.id in seen:
            first = seen[student.person.id]
            raise InputError(f"{path}: lines {first} and {line} are both {student.person.id!r}")
        seen[student.person.id] = line
        found.append(student)
    if not found:
        wanted = "id, name and email (and, if wanted, extension)"
        raise InputError(f"{path} names no student: it needs the columns {wanted}")
    return found


def is_student(table: Table, row: list[str]) -> bool:
    """Is this row about a student? Canvas has rows of points, and one of a test student."""
    who = table.person(row)
    canvas = table.column("sis user id") is not None or table.column("sis login id") is not None
    if canvas and (not table.cell(row, "id") or who.name == "Student, Test"):
        return False
    return bool(who.keys)


def _time(table: Table, row: list[str], what: str, *names: str) -> datetime | None:
    text = table.cell(row, *names)
    return read_time(text, what) if text else None
