"""One notebook to its marks.

A submission is run twice. First as its author ran it, every question on the author's own earlier
answers, and only the public cases are called: what the student will read comes from here. Then for
the points: each question on the right answers to the questions before it, so that a mistake costs
its points once, with all cases. No word that the student will read comes from this second run, in
which hidden inputs and right answers are in reach of the student's code.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gradebox.notebook import Answers, Cell, NotebookError, read_answers
from gradebox.package import Package
from gradebox.process import BrokenError, LostError, SpentError
from gradebox.result import CaseResult, QuestionResult, Result
from gradebox.sandbox import Limits, Sandbox, find_sandbox
from gradebox.session import Answer, Session
from vitcheck.cases import Case, Question, Verdict, compare

LONGEST_ANSWER = 20_000  # characters
PASSED = "passed"
ONLY_ALONE = "right with your own earlier answers, but not with the correct ones"
NOT_DEFINED = "your notebook does not define {}"


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
            found = second_run(session, package, answers, heard, wanted)
    except NotebookError as error:
        return blank(package, error.status, str(error))
    except BrokenError as error:
        return blank(package, "crashed", str(error))
    return Result(
        **names(package),
        status="ok",
        points=sum(question.points or 0 for question in found),
        questions=with_answers(found, answers),
        notes=answers.notes,
        seconds=round(time.monotonic() - began, 3),
        memory_mb=round(session.peak_mb, 1),
        restarts=session.starts - 1,
        sandbox=sandbox.name,
    )


def with_answers(found: list[QuestionResult], answers: Answers) -> list[QuestionResult]:
    """Each question with what stands in its cells: people read it, and it is compared."""
    own: dict[str, list[str]] = {}
    for cell in answers.cells:
        own.setdefault(cell.question, []).append(cell.source)
    written = {**{id: "\n\n".join(sources) for id, sources in own.items()}, **answers.texts}
    return [replace(one, answer=written.get(one.id, "")[:LONGEST_ANSWER]) for one in found]


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


def portions(answers: Answers, package: Package) -> Iterator[tuple[Question, list[Cell]]]:
    """Each question that we mark with its cells, and with the untagged cells between them and the
    next question's: there a split-off half or a helper function may stand. Untagged cells before
    the first question belong to it."""
    current, held = None, {question.id: [] for question in package.questions}
    early = []
    for cell in answers.cells:
        current = cell.question or current
        (held[current] if current else early).append(cell)
    for question in package.questions:
        if not question.manual:
            yield question, [*early, *held[question.id]]
            early = []


def run_cells(session: Session, package: Package, cells: list[Cell]) -> str | None:
    """Answers run whole; of all other cells only definitions are taken. Gives the first error.

    An answer that does not end is taken by its definitions too: the training that was left under
    the function is not what the question asks for.
    """
    taken = sorted({name for question in package.questions for name in question.defines})
    first = None
    for cell in cells:
        mine = cell.question is not None
        for whole in (True, False) if mine else (False,):
            try:
                error = session.cell(cell.source, whole=whole, taken=[] if mine else taken)
                first = first or (error if mine else None)
                break
            except SpentError:
                raise
            except LostError as lost:
                first = first or (f"your cell: {lost}" if mine else None)
    return first


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
    if answer.error is not None:
        return Verdict(False, answer.error)
    try:
        verdict = compare(answer.value, case)
    except Exception as error:  # a value so odd that comparing it fails
        return Verdict(False, f"the result cannot be compared ({type(error).__name__})")
    return Verdict(verdict.ok, verdict.message[:600])


def first_run(
    session: Session, package: Package, answers: Answers, wanted: Collection[str]
) -> dict[str, str]:
    """What the student will read: case or question -> message, from public cases alone."""
    heard: dict[str, str] = {}
    for question, cells in portions(answers, package):
        try:
            error = run_cells(session, package, cells)
            missing = session.missing(list(question.defines))
        except LostError as lost:
            heard[question.id] = str(lost)
            continue
        if missing:
            heard[question.id] = NOT_DEFINED.format(", ".join(missing))
            heard[question.id] += f" ({error})" if error else ""
        elif question.id in wanted:
            public = (case for case in question.cases if case.public)
            for case, verdict in verdicts(session, public):
                heard[case.id] = PASSED if verdict.ok else verdict.message
    return heard


def second_run(
    session: Session,
    package: Package,
    answers: Answers,
    heard: dict[str, str],
    wanted: Collection[str],
) -> list[QuestionResult]:
    """The points of every question, in the order of the assignment."""
    cells = {question.id: mine for question, mine in portions(answers, package)}
    found = []
    with suppress(LostError):
        session.fresh()
    for question in package.questions:
        if question.manual:
            found.append(by_hand(question, answers))
            continue
        marked = question.id in wanted
        right, missing = points_of(session, package, question, cells[question.id], marked)
        found.append(judged(question, right, missing, heard, marked))
        if source := package.reference.get(question.id):
            with suppress(LostError):  # spoilt by what the student's code did to Python
                session.reference(source)
    return found


def points_of(
    session: Session, package: Package, question: Question, cells: list[Cell], marked: bool
) -> tuple[dict[str, bool], bool]:
    """Which cases are right, and whether something that the question asks for is not there."""
    try:
        run_cells(session, package, cells)
        if session.missing(list(question.defines)):
            return {}, True
    except LostError:
        return {}, False
    cases = question.cases if marked else ()
    return {case.id: verdict.ok for case, verdict in verdicts(session, cases)}, False


def judged(
    question: Question,
    right: dict[str, bool],
    missing: bool,
    heard: dict[str, str],
    marked: bool,
) -> QuestionResult:
    """Points and words together. The words were fixed before a hidden input was in reach."""
    total = sum(case.points for case in question.cases) or 1
    cases = []
    for case in question.cases if marked else ():
        passed, worth = right.get(case.id, False), question.points * case.points / total
        message = None
        if case.public:
            message = PASSED if passed else heard.get(case.id, heard.get(question.id, ""))
            message = ONLY_ALONE if not passed and message == PASSED else message
        cases.append(CaseResult(case.id, case.public, passed, worth * passed, worth, message))
    status = "missing" if missing else "ok" if right else "failed"
    return QuestionResult(
        question.id,
        question.title,
        points=round(sum(case.points for case in cases), 6),
        possible=question.points,
        status=status if marked else "not-marked",
        message=heard.get(question.id, ""),
        cases=cases,
    )


def by_hand(question: Question, answers: Answers) -> QuestionResult:
    """A question that a person marks; the answer itself is in the message."""
    text = answers.texts.get(question.id, "")
    return QuestionResult(
        question.id,
        question.title,
        points=None,
        possible=question.points,
        status="manual" if text else "missing",
        message=text,
        manual=True,
    )
