"""One notebook to its marks.

The whole notebook is run, from the first cell to the last, and what stands at its end is marked.
First only the public cases are called: what the student will read comes from there. Then all cases
are called, for the points. A question that is not all right so, and comes after others, may suffer
from a mistake in those: the notebook is run again, in a new process, with the right answers to
earlier questions in their place, and the better of the two counts. So a mistake costs its points
once, and what is right together is right. The answer that is marked is never replaced.

No word that the student's code makes comes out of the runs for the points, where hidden inputs and
right answers are in its reach. What does come out is which of the mistakes that the assignment
knows fits a hidden case: one of its own few sentences.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from gradebox.notebook import Answers, NotebookError, by_us, read_answers, sets
from gradebox.package import Package
from gradebox.process import BrokenError, LostError, SpentError
from gradebox.result import CaseResult, QuestionResult, Result
from gradebox.sandbox import Limits, Sandbox, find_sandbox
from gradebox.session import Answer, Session
from gradebox.words import quoted
from vitcheck.cases import CHANGED, Case, Question, Verdict, changed, compare

LONGEST_ANSWER = 20_000  # characters
PASSED = "passed"
ONLY_ONCE = "right when it was called first, but not when it was called again"
NOT_DEFINED = "your notebook does not define {}"
MOST_NOTED = 5  # cells that stopped


def mark(
    notebook: Path,
    package: Package,
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
    questions: Collection[str] | None = None,
) -> Result:
    """Mark one notebook; ``questions`` names those to mark if not all.

    Returns a result whatever the notebook holds. Raises NoSandboxError when students' code cannot
    run here at all, which is no submission's fault.
    """
    limits, sandbox = limits or Limits(), sandbox or find_sandbox()
    began = time.monotonic()
    try:
        answers = read_answers(notebook, package)
        wanted = {q.id for q in package.questions} if questions is None else questions
        with Session(sandbox, limits, package.set_up) as session:
            heard = first_run(session, package, answers, wanted)
            found = for_points(session, package, answers, heard, wanted)
    except NotebookError as error:
        return blank(package, error.status, str(error))
    except BrokenError as error:
        return blank(package, "crashed", str(error))
    return Result(
        **names(package),
        status="ok",
        points=sum(question.points or 0 for question in found),
        questions=with_answers(found, answers, package),
        notes=answers.notes,
        stopped=stopped(answers, heard),
        seconds=round(time.monotonic() - began, 3),
        memory_mb=round(session.peak_mb, 1),
        restarts=session.restarts,
        sandbox=sandbox.name,
    )


def with_answers(
    found: list[QuestionResult], answers: Answers, package: Package
) -> list[QuestionResult]:
    """Each question with what stands in its cells and in those that define its names: people read
    it, and it is compared. Where nothing was written and nothing earned, the status says so."""
    written = dict(answers.texts)
    for question in package.questions:
        own = [
            cell.source
            for cell in answers.cells
            if cell.question == question.id or (not cell.question and sets(cell.source, question))
        ]
        written.setdefault(question.id, "\n\n".join(own))
    found = [replace(one, answer=written.get(one.id, "")[:LONGEST_ANSWER]) for one in found]
    return [
        replace(one, status="untouched")
        if one.id in answers.untouched and one.status in {"ok", "failed"} and not one.points
        else one
        for one in found
    ]


def stopped(answers: Answers, heard: Heard) -> list[str]:
    """The cells that stopped, for the student. How they begin and what they said are the student's
    own words, and stand in quotes."""
    said = []
    for number, error in sorted(heard.errors.items()):
        lines = answers.cells[number].source.strip().splitlines()
        said.append(f"the cell {quoted(lines[0] if lines else '', 40)} said {quoted(error, 160)}")
    more = len(said) - MOST_NOTED
    return said[:MOST_NOTED] + ([f"and {more} more"] if more > 0 else [])


def names(package: Package) -> dict:
    """What every result of this package says."""
    by_hand = [question.points for question in package.questions if question.manual]
    by_us = [question.points for question in package.questions if not question.manual]
    return {
        "assignment": package.cases.assignment,
        "variant": package.cases.variant,
        "possible": sum(by_us),
        "manual_possible": sum(by_hand),
        "package": package.digest,
    }


def blank(package: Package, status: str, detail: str) -> Result:
    return Result(**names(package), status=status, points=0, detail=detail)


@dataclass
class Heard:
    """What the first run said: case or question -> message, cell's number -> error."""

    words: dict[str, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)


def run_notebook(session: Session, answers: Answers) -> dict[int, str]:
    """Run all cells, past those that fail; gives the errors by the cell's number. Of a cell that
    ends its process the definitions are taken."""
    errors: dict[int, str] = {}
    began = time.monotonic()
    for number, cell in enumerate(answers.cells):
        left = session.limits.run_s - (time.monotonic() - began)
        seconds = max(min(session.limits.cell_s, left), 1.0)
        for whole in (True, False):
            try:
                error = session.cell(cell.source, seconds, whole=whole)
            except SpentError:
                raise
            except LostError as lost:
                errors[number] = str(lost)
                continue
            if error:
                errors.setdefault(number, error)
            break
    return errors


def verdicts(session: Session, cases: Iterable[Case]) -> Iterator[tuple[Case, Verdict]]:
    """Call the cases one by one and compare, here, what came back."""
    lost = 0
    for case in cases:
        if lost >= session.limits.lost_calls:
            yield case, Verdict(False, f"not called: {lost} calls before it failed to return")
            continue
        try:
            answer = session.call(case)
        except LostError as error:
            lost += 1
            yield case, Verdict(False, f"{case.name}: {error}")
            continue
        yield case, judge(answer, case)


def judge(answer: Answer, case: Case) -> Verdict:
    """Compare, here, what a call gave and what it left of its inputs."""
    if answer.error is not None:
        return Verdict(False, answer.error)
    try:
        if changed(case, answer.inputs):
            return Verdict(False, CHANGED)
        verdict = compare(answer.value, case)
    except Exception as error:  # a value so odd that comparing it fails
        return Verdict(False, f"the result cannot be compared ({type(error).__name__})")
    return Verdict(verdict.ok, verdict.message[:600])


def first_run(
    session: Session, package: Package, answers: Answers, wanted: Collection[str]
) -> Heard:
    """What the student will read, from public cases alone."""
    heard = Heard()
    try:
        session.fresh()
        heard.errors = run_notebook(session, answers)
    except LostError as lost:
        heard.words = {question.id: str(lost) for question in package.questions}
        return heard
    for question in by_us(package):
        try:
            missing = session.missing(list(question.defines))
        except LostError as lost:
            heard.words[question.id] = str(lost)
            continue
        if missing:
            error = first_error(question, answers, heard)
            heard.words[question.id] = NOT_DEFINED.format(", ".join(missing)) + error
        elif question.id in wanted:
            public = (case for case in question.cases if case.public)
            for case, verdict in verdicts(session, public):
                heard.words[case.id] = PASSED if verdict.ok else verdict.message
    return heard


def first_error(question: Question, answers: Answers, heard: Heard) -> str:
    """The first error in the cells of a question, in quotes and brackets."""
    own = (e for n, e in sorted(heard.errors.items()) if answers.cells[n].question == question.id)
    error = next(own, None)
    return f" (its cell said {quoted(error, 300)})" if error else ""


@dataclass
class Tried:
    """What a question's cases came to in one run: case -> right, is its name missing, the hint."""

    right: dict[str, bool] = field(default_factory=dict)
    missing: bool = False
    hint: str = ""

    def points(self, question: Question) -> float:
        """What it earned, in the cases' own points."""
        return sum(case.points for case in question.cases if self.right.get(case.id))


def for_points(
    session: Session,
    package: Package,
    answers: Answers,
    heard: Heard,
    wanted: Collection[str],
) -> list[QuestionResult]:
    """The points of every question, in the order of the assignment."""
    tried = {question.id: try_out(session, question, wanted) for question in by_us(package)}
    given: list[str] = []  # the names that stand for right answers in the present run
    for question in by_us(package):
        own, names = tried[question.id], needed(question, package, answers)
        if question.id not in wanted or not names or all_right(own, question):
            continue
        try:
            if names != given:
                given = names
                run_with(session, package, answers, question, names)
            again = try_out(session, question, wanted)
        except LostError:
            continue
        better = again.points(question) > own.points(question)
        if better or (own.missing and not again.missing):
            tried[question.id] = again
    return [
        by_hand(question, answers)
        if question.manual
        else judged(question, tried[question.id], heard, question.id in wanted)
        for question in package.questions
    ]


def all_right(tried: Tried, question: Question) -> bool:
    return all(tried.right.get(case.id) for case in question.cases)


def try_out(session: Session, question: Question, wanted: Collection[str]) -> Tried:
    """Call all cases of a question, if it is to be marked and its name is there."""
    found = Tried()
    try:
        found.missing = bool(session.missing(list(question.defines)))
        if question.id in wanted and not found.missing:
            found.right, found.hint = points_of(session, question)
    except LostError:
        pass
    return found


def needed(question: Question, package: Package, answers: Answers) -> list[str]:
    """Names that earlier questions define and that stand in cells of others: a mistake in them
    would spread."""
    names: list[str] = []
    for earlier in by_us(package):
        if earlier.id == question.id:
            return names
        others = [cell.source for cell in answers.cells if cell.question != earlier.id]
        for name in earlier.defines if earlier.id in package.reference else ():
            word = re.compile(rf"\b{re.escape(name)}\b")
            if name not in question.defines and any(map(word.search, others)):
                names.append(name)
    return names


def run_with(
    session: Session,
    package: Package,
    answers: Answers,
    question: Question,
    names: list[str],
) -> None:
    """Run the notebook anew, with right answers before ``question`` under these names."""
    before = [one.id for one in by_us(package)]
    before = before[: before.index(question.id)]
    session.fresh()
    session.give([package.reference[id] for id in before if id in package.reference], names)
    run_notebook(session, answers)


def points_of(session: Session, question: Question) -> tuple[dict[str, bool], str]:
    """Which cases are right; and where all public ones are, the known mistake that fits the first
    hidden one that is not."""
    right: dict[str, bool] = {}
    hints = []
    for case, verdict in verdicts(session, question.cases):
        right[case.id] = verdict.ok
        known = {mistake.question for mistake in case.mistakes}
        if not verdict.ok and verdict.message in known:
            hints.append(verdict.message)
    seen = all(right[case.id] for case in question.cases if case.public)
    return right, hints[0] if hints and seen else ""


def judged(question: Question, tried: Tried, heard: Heard, marked: bool) -> QuestionResult:
    """Points and words together. The words were fixed before a hidden input was in reach."""
    total = sum(case.points for case in question.cases) or 1
    cases = []
    for case in question.cases if marked else ():
        passed, worth = tried.right.get(case.id, False), question.points * case.points / total
        message = None
        if case.public:
            message = (
                PASSED if passed else heard.words.get(case.id, heard.words.get(question.id, ""))
            )
            message = ONLY_ONCE if not passed and message == PASSED else message
        cases.append(CaseResult(case.id, case.public, passed, worth * passed, worth, message))
    status = "missing" if tried.missing else "ok" if tried.right else "failed"
    return QuestionResult(
        question.id,
        question.title,
        points=round(sum(case.points for case in cases), 6),
        possible=question.points,
        status=status if marked else "not-marked",
        message=heard.words.get(question.id, ""),
        cases=cases,
        hint=tried.hint,
    )


def by_hand(question: Question, answers: Answers) -> QuestionResult:
    """A question that a person marks; the answer itself is in the message. Where nothing was
    written, there is nothing to mark."""
    text = answers.texts.get(question.id, "")
    return QuestionResult(
        question.id,
        question.title,
        points=None if text else 0.0,
        possible=question.points,
        status="manual" if text else "missing",
        message=text,
        manual=True,
    )
