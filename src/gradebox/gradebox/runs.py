"""What a notebook is asked in one run: its cells, then calls of its answers, compared out here."""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace

from gradebox.notebook import Answers
from gradebox.process import LateError, LostError, SpentError
from gradebox.session import Answer, Session
from gradebox.words import quoted
from vitcheck.cases import CHANGED, Case, Question, Verdict, changed, compare

NOT_DEFINED = "your notebook does not define {}"


@dataclass
class Heard:
    """What the first run said: case -> right, case or question -> message, cell's number -> error;
    was a statement ``stopped``, and which cells ``ended`` their process."""

    right: dict[str, bool] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    stopped: bool = False
    ended: list[int] = field(default_factory=list)


@dataclass
class Tried:
    """What a question's cases came to: case -> right, is its name missing, the hint; did a right
    result come in another type?"""

    right: dict[str, bool] = field(default_factory=dict)
    missing: bool = False
    hint: str = ""
    other_type: bool = False

    def all_right(self, question: Question) -> bool:
        return all(self.right.get(case.id) for case in question.cases)


def run_notebook(session: Session, answers: Answers, heard: Heard, hurry: bool = False) -> None:
    """Run all cells, past those that fail. Of a cell that ends its process, now or in an earlier
    run, the definitions are taken."""
    before = session.spent()
    for number, cell in enumerate(answers.cells):
        left = session.limits.run_s - (session.spent() - before)
        seconds = max(min(session.limits.cell_s, left), 1.0)
        if number not in heard.ended:
            try:
                error, stopped = session.cell(cell.source, seconds, hurry=hurry)
                if error:
                    heard.errors.setdefault(number, error)
                heard.stopped = heard.stopped or bool(stopped)
                continue
            except SpentError:
                raise
            except LostError as lost:
                heard.errors.setdefault(number, str(lost))
                heard.ended.append(number)
        try:
            session.cell(cell.source, seconds, whole=False)
        except SpentError:
            raise
        except LostError:
            pass


def first_run(session: Session, questions: list[Question], answers: Answers, hurry: bool) -> Heard:
    """What the student will read, from public cases alone."""
    heard = Heard()
    try:
        session.fresh()
        run_notebook(session, answers, heard, hurry)
        missing = session.missing(names_of(questions))
    except LostError as lost:
        heard.words = {question.id: str(lost) for question in questions}
        return heard
    for question in questions:
        if lacking := [name for name in question.defines if name in missing]:
            error = first_error(question, answers, heard)
            heard.words[question.id] = NOT_DEFINED.format(", ".join(lacking)) + error
            continue
        public = (case for case in question.cases if case.public)
        for case, verdict, _ in verdicts(session, public):
            heard.right[case.id], heard.words[case.id] = verdict.ok, verdict.message
    return heard


def tries(
    session: Session, questions: list[Question], answers: Answers, heard: Heard
) -> dict[str, Tried]:
    """Call all cases of these questions, after running the notebook; empty where it was lost. No
    word comes out of here: what its cells say now is forgotten."""
    try:
        run_notebook(session, answers, deepcopy(heard))
        missing = session.missing(names_of(questions))
    except LostError:
        return {}
    return {question.id: try_out(session, question, missing) for question in questions}


def try_out(session: Session, question: Question, missing: list[str]) -> Tried:
    """Which cases are right; and where all public ones are, the known mistake that fits the first
    hidden one that is not."""
    if any(name in missing for name in question.defines):
        return Tried(missing=True)
    right: dict[str, bool] = {}
    hints, other_type = [], False
    try:
        for case, verdict, compared in verdicts(session, question.cases):
            right[case.id] = verdict.ok
            other_type = other_type or verdict.other_type
            if compared and verdict.message in {mistake.question for mistake in case.mistakes}:
                hints.append(verdict.message)
    except LostError:
        return Tried()
    seen = all(right[case.id] for case in question.cases if case.public)
    return Tried(right, hint=hints[0] if hints and seen else "", other_type=other_type)


def names_of(questions: list[Question]) -> list[str]:
    return [name for question in questions for name in question.defines]


def first_error(question: Question, answers: Answers, heard: Heard) -> str:
    """The first error in the cells of a question, in quotes and brackets."""
    own = (e for n, e in sorted(heard.errors.items()) if answers.cells[n].question == question.id)
    error = next(own, None)
    return f" (its cell said {quoted(error, 300)})" if error else ""


def verdicts(session: Session, cases: Iterable[Case]) -> Iterator[tuple[Case, Verdict, bool]]:
    """Call the cases one by one and compare, here, what came back. With each verdict: did a result
    come back? The words of any other verdict may be the student's own."""
    lost = late = 0
    for case in cases:
        if lost >= session.limits.lost_calls:
            words = f"not called: {lost} calls before it failed to return"
            yield case, Verdict(False, words), False
            continue
        try:
            try:
                answer = session.call(case)
            except LateError:  # once for a question: it might be in time when it is called again
                late += 1
                if late > 1:
                    raise
                answer = session.call(case)
        except LostError as error:
            lost += 1
            yield case, Verdict(False, f"{case.name}: {error}"), False
            continue
        yield case, judge(answer, case), answer.error is None


def judge(answer: Answer, case: Case) -> Verdict:
    """Compare, here, what a call gave and what it left of its inputs."""
    if answer.error is not None:
        return Verdict(False, f"your notebook said {quoted(answer.error, 300)}")
    try:
        if changed(case, answer.inputs):
            return Verdict(False, CHANGED)
        verdict = compare(answer.value, case)
    except Exception as error:  # a value so odd that comparing it fails
        return Verdict(False, f"the result cannot be compared ({type(error).__name__})")
    return replace(verdict, message=verdict.message[:600])
