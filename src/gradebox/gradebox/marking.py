"""One notebook to its marks, in phases: between two of them waits the whole class.

The whole notebook is run, from the first cell to the last, and what stands at its end is marked.

1. Its first run: only the public cases are called. What the student will read comes from there.
2. The tries: it is run in a new process, and all cases are called, the hidden ones too.
3. Its second runs. An earlier answer that is wrong, or right in another floating type, may spoil
   those after it, so these are tried again, in a new process with the right answer to it in its
   place: a mistake costs its points once, another type none. There is a phase for each question
   that may be given so, and in it nobody has been given the answer to a later question.

The first run is in a hurry: a statement that does not end is stopped by the clock. Where that may
have cost anything, because a cell was stopped and not all public cases are right, it is made again
with all seconds of the processor that cells have. The runs that points come from have them at once.
So load costs nobody a point, and an endless training takes its ten seconds in each run.

Which run counts for a question is decided by the questions before it: if those that others use are
right as they are, the tries, else the second run, whatever came of the tries. No run is made again
because a hidden case was wrong. So nobody is paid for the better of two answers. The answer that is
marked is never replaced.

No word that the student's code makes is taken from phases 2 and 3, in which hidden inputs and right
answers are in its reach. Nobody begins a phase while another notebook is still in an earlier one
(``gradebox.run``). So what one process tells another comes too late: all words stand, and so do the
points of the questions that it holds answers to. What does come out is how many cases are right,
the name of the first that is not, and which of the mistakes that the assignment knows fits a hidden
case: one of its few sentences.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from gradebox.notebook import Answers, NotebookError, by_us, read_answers, sets
from gradebox.package import Package
from gradebox.process import BrokenError, LostError
from gradebox.result import CaseResult, QuestionResult, Result
from gradebox.run import Marker, Questions
from gradebox.runs import Heard, Tried, first_run, tries
from gradebox.sandbox import Limits, Sandbox, find_sandbox
from gradebox.session import Session, Used
from gradebox.words import quoted
from vitcheck.cases import UNANSWERED, Question

PASSED = "passed"
FIRST, TRIES, SECOND = 0, 1, 2  # the first three phases
LONGEST_ANSWER = 20_000  # characters
NOT_AGAIN = "right in one run of your notebook, but not in the next"
NOT_WITH_RIGHT = (
    "right with your own earlier answers, but not with ours. One of yours is wrong or of another "
    "type (float64), and then ours is put in its place"
)
MOST_NOTED = 5  # cells that stopped


@dataclass
class Progress:
    """What is known of a notebook between two phases: what came of its tries with its ``own``
    earlier answers, and of its second runs ``with_right`` ones."""

    phase: int = FIRST  # the next one in which there is something to do
    heard: Heard = field(default_factory=Heard)
    own: dict[str, Tried] = field(default_factory=dict)
    with_right: dict[str, Tried] = field(default_factory=dict)
    used: Used = field(default_factory=Used)
    seconds: float = 0.0

    def as_json(self) -> dict:
        """For a file; :meth:`of` reads it."""
        heard = asdict(self.heard)
        heard["errors"] = list(heard["errors"].items())  # numbers are no keys in JSON
        return {**asdict(self), "heard": heard}

    @staticmethod
    def of(told: dict) -> Progress:
        heard = {**told["heard"], "errors": dict(told["heard"]["errors"])}
        runs = {
            name: {question: Tried(**one) for question, one in told[name].items()}
            for name in ("own", "with_right")
        }
        return Progress(
            told["phase"],
            Heard(**heard),
            **runs,
            used=Used(**told["used"]),
            seconds=told["seconds"],
        )


def mark(
    notebook: Path,
    package: Package,
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
    questions: Collection[str] | None = None,
) -> Result:
    """Mark one notebook, all phases; ``questions`` names those to mark if not all.

    Returns a result whatever the notebook holds. Raises NoSandboxError when students' code cannot
    run here at all, which is no submission's fault.
    """
    found: Result | dict | None = None
    while not isinstance(found, Result):
        found = go_on(notebook, package, limits or Limits(), sandbox, questions, found)
    return found


def marker(package: Package, limits: Limits, sandbox: Sandbox) -> Marker:
    """What marks a class (``gradebox.run``)."""

    def one(notebook: Path, questions: Questions, so_far: dict | None) -> Result | dict:
        return go_on(notebook, package, limits, sandbox, questions, so_far)

    return Marker(one, SECOND + len(list(by_us(package))), sandbox.name)


def go_on(
    notebook: Path,
    package: Package,
    limits: Limits,
    sandbox: Sandbox | None = None,
    questions: Collection[str] | None = None,
    so_far: dict | None = None,
) -> Result | dict:
    """One phase of a notebook: the result, or what the next phase has to know, for which it can be
    written down."""
    began = time.monotonic()
    now = Progress.of(so_far) if so_far else Progress()
    sandbox = sandbox or find_sandbox()
    wanted = {q.id for q in package.questions} if questions is None else set(questions)
    try:
        answers = read_answers(notebook, package)
        with Session(sandbox, limits, package.set_up, now.used) as session:
            run_phase(session, package, answers, now, wanted)
    except NotebookError as error:
        return blank(package, error.status, str(error))
    except BrokenError as error:
        return blank(package, "crashed", str(error))
    now.seconds += time.monotonic() - began
    if now.phase == FIRST:
        now.phase = TRIES
        return now.as_json()
    if ahead := [one for one in second_runs(package, answers, now, wanted) if one > now.phase]:
        now.phase = min(ahead)
        return now.as_json()
    found = [
        by_hand(question, answers)
        if question.manual
        else judged(question, now, question.id in wanted)
        for question in package.questions
    ]
    return Result(
        **names(package),
        status="ok",
        points=sum(question.points or 0 for question in found),
        questions=with_answers(found, answers, package),
        notes=answers.notes,
        stopped=stopped(answers, now.heard),
        seconds=round(now.seconds, 3),
        memory_mb=round(now.used.memory_mb, 1),
        restarts=now.used.restarts,
        sandbox=sandbox.name,
    )


def run_phase(
    session: Session, package: Package, answers: Answers, now: Progress, wanted: Collection[str]
) -> None:
    """What is to be done in the present phase."""
    asked = list(by_us(package))
    if now.phase == FIRST:
        for hurry in (True, False):
            now.heard = first_run(session, asked, answers, hurry)
            if not now.heard.stopped or all_heard(asked, now.heard):
                break
    elif now.phase == TRIES:
        now.own = in_new_process(session, asked, answers, now)
        if any(differs(question, now) for question in asked):
            now.own = in_new_process(session, asked, answers, now)
    else:
        before = asked[: now.phase - SECOND + 1]
        sources = [package.reference[one.id] for one in before if one.id in package.reference]
        for given, questions in second_runs(package, answers, now, wanted)[now.phase]:
            now.with_right |= in_new_process(session, questions, answers, now, sources, given)


def in_new_process(
    session: Session,
    questions: list[Question],
    answers: Answers,
    now: Progress,
    sources: list[str] | None = None,
    given: Collection[str] = (),
) -> dict[str, Tried]:
    """All cases of these questions, with right answers under the names that are given."""
    heard = now.heard
    if given:  # what ended its process may not do so now
        heard = replace(heard, ended=[])
    try:
        session.fresh()
        if given:
            session.give(sources or [], list(given))
    except LostError:
        return {}
    return tries(session, questions, answers, heard)


def all_heard(questions: list[Question], heard: Heard) -> bool:
    """Were all public cases right in the first run?"""
    public = (case.id for question in questions for case in question.cases if case.public)
    return all(heard.right.get(id) for id in public)


def differs(question: Question, now: Progress) -> bool:
    """Is a public case right in the tries and was not in the first run, or the other way round?"""
    right = now.own.get(question.id, Tried()).right
    public = (case.id for case in question.cases if case.public)
    return any(right.get(id, False) != now.heard.right.get(id, False) for id in public)


def second_runs(
    package: Package, answers: Answers, now: Progress, wanted: Collection[str]
) -> dict[int, list[tuple[list[str], list[Question]]]]:
    """Phase -> the names that are given in it, and the questions that are tried with them. A
    question's phase is that of the last one before it that spoils others."""
    found: dict[int, list[tuple[list[str], list[Question]]]] = {}
    replaced: list[tuple[int, str]] = []  # the phase of an answer, a name that it defines
    for number, question in enumerate(by_us(package)):
        given = [(phase, name) for phase, name in replaced if name not in question.defines]
        if given and question.id in wanted:
            groups = found.setdefault(max(given)[0], [])
            spelled = [name for _, name in given]
            if not groups or groups[-1][0] != spelled:
                groups.append((spelled, []))
            groups[-1][1].append(question)
        own = now.own.get(question.id, Tried())
        spoils = own.other_type or not own.all_right(question)
        if question.id in package.reference and spoils:
            replaced += [(SECOND + number, name) for name in used_elsewhere(question, answers)]
    return found


def used_elsewhere(question: Question, answers: Answers) -> list[str]:
    """Names that a question defines and that stand in cells of others: a mistake would spread."""
    others = [cell.source for cell in answers.cells if cell.question != question.id]
    words = {name: re.compile(rf"\b{re.escape(name)}\b") for name in question.defines}
    return [name for name, word in words.items() if any(map(word.search, others))]


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
        if one.status in {"ok", "failed"} and untouched(one, question, answers)
        else one
        for one, question in zip(found, package.questions, strict=True)
    ]


def untouched(one: QuestionResult, question: Question, answers: Answers) -> bool:
    """Was nothing found but the stub? What a stub gives is no answer; where it raises, it is alone
    if no other cell names what it defines."""
    if one.id not in answers.untouched or one.points:
        return False
    said = {case.message for case in one.cases}
    return said <= {None, UNANSWERED} or not used_elsewhere(question, answers)


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


def judged(question: Question, now: Progress, marked: bool) -> QuestionResult:
    """Points and words together. The words were fixed before a hidden input was in reach."""
    own, heard = now.own.get(question.id, Tried()), now.heard
    tried = now.with_right.get(question.id, own)
    otherwise = tried is not own and own.all_right(question) and not tried.all_right(question)
    total = sum(case.points for case in question.cases) or 1
    cases = []
    for case in question.cases if marked else ():
        passed, worth = tried.right.get(case.id, False), question.points * case.points / total
        message = None
        if case.public:
            message = heard.words.get(case.id, heard.words.get(question.id, ""))
            if passed:
                message = PASSED
            elif heard.right.get(case.id):
                message = NOT_WITH_RIGHT if otherwise else NOT_AGAIN
        said = message, case.stage
        cases.append(CaseResult(case.id, case.public, passed, worth * passed, worth, *said))
    status = "missing" if tried.missing else "ok" if tried.right else "failed"
    return QuestionResult(
        question.id,
        question.title,
        points=round(sum(case.points for case in cases), 6),
        possible=question.points,
        status=status if marked else "not-marked",
        message=heard.words.get(question.id, ""),
        cases=cases,
        hint=f"it was {NOT_WITH_RIGHT}" if otherwise else tried.hint,
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
