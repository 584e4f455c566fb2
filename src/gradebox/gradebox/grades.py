"""From results to grades: which attempt counts, what lateness costs, what a person gave."""

import csv
import io
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gradebox.assignment import Assignment
from gradebox.collect import Found
from gradebox.result import QuestionResult, Result
from gradebox.roster import LatePolicy, Student
from gradebox.same_person import Matcher, Person, person
from gradebox.words import quoted

# Where a spreadsheet may see the beginning of a cell, and what makes it a formula there, full-width
# signs too. What is no formula matches as well: so each space is looked at once.
SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20\u2212"
FORMULA = re.compile(rf"""((?:^|[;\t])[ \t"';]*+)([{SIGNS}]?)""", re.MULTILINE)
NOT_MARKED = "not-marked"  # the machine failed: another run tries again
MISSING = "missing"
MOST_NAMED = 6  # files in a note
# What became of a submission, in words for everybody.
STATUS = {
    "ok": "marked",
    "unreadable": "the notebook cannot be read",
    "wrong-assignment": "the notebook belongs to another assignment",
    "wrong-variant": "the notebook belongs to another variant of this assignment",
    "no-answers": "no question's cell was found in the notebook",
    NOT_MARKED: "not marked yet",
    MISSING: "nothing was handed in",
}
# What became of a question without points, in a word.
ZERO = {"untouched": "as handed out", "missing": "no answer", "failed": "stopped", "ok": "wrong"}


@dataclass(frozen=True)
class Attempt:
    """One notebook of a student and what came of it."""

    found: Found
    notebook: str  # its key in the store; "" where it could not be read
    result: Result | None  # nothing where the machine failed
    problem: str = ""

    @property
    def status(self) -> str:
        if self.problem:
            return "unreadable"
        return self.result.status if self.result else NOT_MARKED

    @property
    def points(self) -> float:
        return self.result.points if self.result and self.status == "ok" else 0.0

    @property
    def answered(self) -> int:
        """Questions to which something was written."""
        if self.result is None or self.status != "ok":
            return 0
        return sum(one.status not in {"untouched", "missing"} for one in self.result.questions)


@dataclass(frozen=True)
class ByHand:
    """What a person gave for an answer."""

    points: float
    comment: str = ""


@dataclass(frozen=True)
class Grade:
    """A student's marks."""

    person: Person
    attempts: tuple[Attempt, ...]
    chosen: Attempt | None
    listed: bool = True  # in the roster, or there is none
    submitted: datetime | None = None
    days_late: int = 0
    lost_percent: float = 0.0
    notes: tuple[str, ...] = ()
    by_hand: Mapping[str, ByHand] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return self.chosen.status if self.chosen else MISSING

    @property
    def questions(self) -> list[QuestionResult]:
        result = self.chosen.result if self.chosen and self.status == "ok" else None
        return list(result.questions) if result else []

    def points(self, question: QuestionResult) -> float | None:
        """The points for one question; nothing while a person has to mark it. Where nothing was
        written, nobody has to."""
        if question.manual and (question.id in self.by_hand or question.status != "missing"):
            given = self.by_hand.get(question.id)
            return given.points if given else None
        return question.points or 0.0

    @property
    def open(self) -> list[str]:
        """Questions that a person still has to mark."""
        return [one.id for one in self.questions if self.points(one) is None]

    @property
    def earned(self) -> float:
        """Points so far, before lateness."""
        return sum(self.points(one) or 0.0 for one in self.questions)

    @property
    def total(self) -> float | None:
        """The final points; nothing while something is open. A notebook that could not be marked
        has no points, not even 0: what becomes of it is for the instructor to decide."""
        if self.open or self.status != "ok":
            return None
        return rounded(self.earned * (1 - self.lost_percent / 100))


def rounded(points: float) -> float:
    """To a hundredth, with whole numbers whole."""
    points = round(points + 1e-9, 2)
    return int(points) if points == int(points) else points


def decide(
    attempts: Iterable[Attempt], roster: list[Student] | None, late: LatePolicy, keep: str
) -> list[Grade]:
    """A grade for each student of the roster, and for each who handed in and is not in it.

    Args:
        attempts: All attempts of all students.
        roster: The class; nothing if there is no list.
        late: What lateness costs.
        keep: "last" or "best": which attempt counts.
    """
    students: dict[int | str, list[Attempt]] = defaultdict(list)
    attempts = list(attempts)
    matcher = Matcher([one.person for one in roster or []])
    matcher.learn(map(_handed_in_by, attempts))
    doubtful: dict[int, list[str]] = defaultdict(list)
    for attempt in attempts:
        who = _handed_in_by(attempt)
        at = matcher.find(who)
        students[who.id if at is None else at].append(attempt)
        for perhaps in matcher.perhaps(who) if at is None else ():
            doubtful[perhaps].append(quoted(f"{who.id} ({who.name})"))
    others = told_apart(students, roster or [])
    for other, at in others.items():
        who = _handed_in_by(students[other][0])
        doubtful[at].append(quoted(f"{who.id} ({who.name})"))
    grades = []
    for at, student in enumerate(roster or []):
        grade = _grade(student.person, students.pop(at, []), student, late, keep)
        if at in doubtful and not grade.attempts:
            asked = f"decide: is {', '.join(sorted(set(doubtful[at])))} the same person?"
            grade = replace(grade, notes=(*grade.notes, asked))
        grades.append(grade)
    taken = {_as_seen(grade.person.id) for grade in grades}
    for key in sorted(students, key=str):
        who = _handed_in_by(students[key][0])
        doubt = "one in the roster is also called so" if key in others else matcher.doubt(who)
        who = replace(who, id=_free(who, taken))
        grade = _grade(who, students[key], None, late, keep)
        if roster is not None:
            notes = (*grade.notes, "not in the roster", *([f"decide: {doubt}"] if doubt else []))
            grade = replace(grade, listed=False, notes=notes)
        grades.append(grade)
    return grades


def _handed_in_by(attempt: Attempt) -> Person:
    return person(attempt.found.student, attempt.found.name, attempt.found.email)


def _free(who: Person, taken: set[str]) -> str:
    """An id that in a table looks like that of no other row; it is taken with that."""
    id, number = who.id, 1
    while _as_seen(id) in taken:
        id = f"{who.id} ({who.name})" if number == 1 else f"{who.id} ({who.name}, {number})"
        number += 1
    taken.add(_as_seen(id))
    return id


def _as_seen(id: str) -> str:
    return unicodedata.normalize("NFC", harmless(id))


def told_apart(students: dict[int | str, list[Attempt]], roster: list[Student]) -> dict[str, int]:
    """Where several people hand in under the name of one, the row is for who has its number, if
    somebody has it: a name can be chosen on most platforms. Of numbers that differ only in small
    and capital letters it is the one that is spelled as in the roster. The others, whose keys are
    given with the place in the roster, get rows of their own."""
    others: dict[str, int] = {}
    for at, student in enumerate(roster):
        people = {one.found.student for one in students.get(at, [])}
        if len(people) < 2:
            continue
        known = {one for one in people if ("id", one.casefold()) in student.person.keys}
        spelled = Counter(map(str.casefold, known))
        people -= {one for one in known if spelled[one.casefold()] == 1}
        people -= {student.person.id}
        attempts = students.pop(at)
        for one in attempts:
            mine = one.found.student not in people
            students[at if mine else one.found.student].append(one)
        others |= dict.fromkeys(people, at)
    return others


def _grade(
    who: Person, attempts: list[Attempt], student: Student | None, late: LatePolicy, keep: str
) -> Grade:
    if not attempts:
        return Grade(who, (), None)
    typed = student.submitted if student else None

    def days(attempt: Attempt) -> int:
        return late.days(typed or attempt.found.submitted, attempt.found.late, student)

    readable = [one for one in attempts if one.status in {"ok", NOT_MARKED}]
    chosen = (readable or attempts)[-1]
    if keep == "best":
        chosen = max(
            readable or attempts,
            key=lambda one: (one.points * (1 - late.lost(days(one)) / 100), one.found.attempt),
        )
    submitted = typed or chosen.found.submitted
    notes = []
    if chosen.found.late and not submitted:
        notes.append(
            "late, by an unknown time: counted as one day"
            if not (student and student.extension)
            else "late by the platform's mark, with an extension: check by hand"
        )
    if len(attempts) > 1:
        order = ", in the order of their names" if chosen.found.by_name else ""
        counts = f": {quoted(chosen.found.file)} counts"
        notes.append(f"{keep} of {len(attempts)} attempts{order}{counts}")
        notes += _better(chosen, attempts) if keep == "last" else []
        passed = [one for one in attempts if one not in [*readable, chosen]]
        notes += [f"attempt {one.found.attempt}: {why(one)}" for one in passed]
    if beside := list(dict.fromkeys(name for one in attempts for name in one.found.beside)):
        more = f" and {len(beside) - MOST_NAMED} more" if len(beside) > MOST_NAMED else ""
        named = ", ".join(map(quoted, beside[:MOST_NAMED]))
        notes.append(f"also handed in, not looked at: {named}{more}")
    return Grade(
        who,
        tuple(attempts),
        chosen,
        submitted=submitted,
        days_late=days(chosen),
        lost_percent=late.lost(days(chosen)),
        notes=tuple(notes),
    )


def _better(chosen: Attempt, attempts: list[Attempt]) -> list[str]:
    """A note if the attempt that counts is worth less than another."""
    best = max(attempts, key=lambda one: (one.points, one.answered))
    if (best.points, best.answered) <= (chosen.points, chosen.answered):
        return []
    which = f"attempt {best.found.attempt}, {quoted(best.found.file)},"
    if best.points > chosen.points:
        return [f"{which} has more points: {rounded(best.points)}, not {rounded(chosen.points)}"]
    return [f"{which} has answers to {best.answered} questions, not to {chosen.answered}"]


def nothing_earned(grade: Grade) -> str:
    """Why a notebook that was marked has no points at all, in words; else nothing."""
    if grade.earned:
        return ""
    found: dict[str, list[str]] = defaultdict(list)
    for one in grade.questions:
        if grade.points(one) is not None:  # else somebody is still to read it
            found[one.status if one.id not in grade.by_hand else "ok"].append(one.id)
    if set(found) <= {"untouched", "missing"} and "untouched" in found and not grade.open:
        return "no points: the questions' cells are as they were handed out"
    said = (f"{ZERO.get(status, status)}: {', '.join(ids)}" for status, ids in found.items())
    return f"no points{' yet' if grade.open else ''} ({', '.join(said)})" if found else ""


def grades_csv(assignment: Assignment, grades: Iterable[Grade]) -> bytes:
    """One row for each student."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    ids = [question.id for question in assignment.questions]
    about = ["student", "name", "email", "status", "attempt", "submitted", "days late"]
    writer.writerow([*about, "per cent lost", *ids, "points", "total", "out of", "notes"])
    for grade in grades:
        points = {one.id: grade.points(one) for one in grade.questions}
        notes = [*grade.notes, *([f"open: {', '.join(grade.open)}"] if grade.open else [])]
        notes += filter(None, [nothing_earned(grade)])
        if grade.chosen and grade.status != "ok":
            notes.append(why(grade.chosen))
        elif grade.chosen and grade.chosen.result:
            notes += grade.chosen.result.notes
            if stopped := grade.chosen.result.stopped:
                notes.append(f"stopped, in the notebook's own words: {'; '.join(stopped)}")
        writer.writerow(
            [
                harmless(grade.person.id),
                harmless(grade.person.name),
                harmless(grade.person.email),
                grade.status,
                grade.chosen.found.attempt if grade.chosen else "",
                grade.submitted.isoformat(timespec="seconds") if grade.submitted else "",
                grade.days_late or "",
                f"{grade.lost_percent:g}" if grade.lost_percent else "",
                *("" if (one := points.get(id)) is None else rounded(one) for id in ids),
                rounded(grade.earned) if grade.questions else "",
                "" if grade.total is None else grade.total,
                rounded(assignment.points),
                harmless("; ".join(notes)),
            ]
        )
    return text.getvalue().encode()


def why(attempt: Attempt) -> str:
    """Why an attempt has no marks, in a sentence."""
    return attempt.problem or (attempt.result.detail if attempt.result else "") or "try again"


def harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula; one that expects semicolons may begin a cell
    after each of them."""
    return without_formulas(" ".join(text.split()))


def without_formulas(text: str) -> str:
    """With an apostrophe before whatever a spreadsheet takes for a formula."""
    return FORMULA.sub(lambda found: found[1] + ("'" + found[2] if found[2] else ""), text)
