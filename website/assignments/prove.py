"""Draw an assignment and prove what was drawn, before anything is written.

The right answer gets all points and the blank one none; each mutant fails a hidden case; each
case is failed by a mutant; other right answers, and float64, pass; no hidden case has the result of
a public one, which stands in the notebook.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vitcheck.cases import Assignment, Case, Mistake, compare, outcome, run_case
from vitcheck.cases import Question as Asked
from vitcheck.values import difference, encode
from website.assignments.draw import Secret
from website.assignments.marks import stub_of, without_marks
from website.assignments.master import Master, MasterError, Question
from website.assignments.patience import EndlessError, patience
from website.assignments.reader import read_master, read_name
from website.assignments.record import Names, case_of, names_after

ATTEMPTS = 6


class ProofError(ValueError):
    """What was drawn does not hold; the message has a line for each reason."""


@dataclass(frozen=True)
class Row:
    """One line of the table: who answered, and how many of the question's points that gets."""

    question: str
    who: str
    points: float
    of: float
    failed: tuple[str, ...]  # ids of cases


@dataclass(frozen=True)
class Drawn:
    """A proven assignment: the master filled in, all cases, and the table of the proof."""

    master: Master
    cases: Assignment
    rows: tuple[Row, ...]
    refused: tuple[str, ...] = ()  # why the draws before this one did not hold

    @property
    def name(self) -> str:
        return f"{self.master.name}-{self.cases.variant}"


def draw_assignment(path: Path, key: bytes, release: str) -> Drawn:
    """Draw and prove. Chance can make two answers alike: then the next draw is taken.

    Raises:
        MasterError: the master cannot be used.
        ProofError: no draw held; the message is that of the last.
    """
    secret = Secret(key, read_name(path))
    refused: list[str] = []
    for attempt in range(ATTEMPTS):
        try:
            return replace(_draw_once(path, secret, release, attempt), refused=tuple(refused))
        except ProofError as error:
            refused.append(str(error))
    raise ProofError(f"{path.name}: no draw of {ATTEMPTS} holds:\n{refused[-1]}")


def _draw_once(path: Path, secret: Secret, release: str, attempt: int) -> Drawn:
    master = read_master(path, secret.draw(f"variant {attempt}"))
    questions: list[Asked] = []
    rows: list[Row] = []
    complaints: list[str] = []
    sources = list(master.setup)
    for question in master.questions:
        if question.manual:
            if not question.rubric:
                complaints.append(f"{question.name} is read by a person and has no rubric")
            questions.append(_asked(question, ()))
            continue
        proof = _Proof(question, sources, secret, attempt)
        questions.append(_asked(question, proof.cases))
        rows += proof.rows
        complaints += proof.complaints()
        sources.append(without_marks(question.solution))
    if complaints:
        raise ProofError("\n".join(f"{master.name}: {line}" for line in complaints))
    cases = Assignment(master.name, secret.variant, release, tuple(questions))
    return Drawn(master, cases, tuple(rows))


def _asked(question: Question, cases: tuple[Case, ...]) -> Asked:
    return Asked(
        id=question.name,
        title=question.title,
        points=question.points,
        minutes=question.minutes,
        difficulty=question.difficulty,
        objective=question.objective,
        defines=tuple(question.defines),
        manual=question.manual,
        rubric=question.rubric,
        cases=cases,
    )


class _Proof:
    """The cases of one question, and how each answer does on them."""

    def __init__(self, question: Question, before: list[str], secret: Secret, attempt: int):
        self.question, self.before = question, before
        self.given: dict[tuple[int, str], tuple[Names, Any, Exception | None]] = {}
        try:
            names = names_after(*before, without_marks(question.solution))
        except Exception as error:
            raise MasterError(f"the solution of {question.name} stops: {error!r}") from error
        drawn = (
            case_of(question, i, names, secret.draw(f"{question.name}-{i + 1} {attempt}"))
            for i in range(len(question.tests))
        )
        self.mutants = [self._names(mutant.code) for mutant in question.mutants]
        self.cases = tuple(self._with_mistakes(case) for case in drawn)
        self.rows = tuple(self._rows(names))

    def _names(self, source: str) -> Names:
        try:
            return names_after(*self.before, without_marks(source))
        except EndlessError as error:
            first = source.strip().partition("\n")[0]
            raise EndlessError(f"{self.question.name}, {first!r}: {error}") from None

    def _result(self, names: Names, case: Case) -> tuple[Any, Exception | None]:
        """What an answer gives for a case; it is asked once."""
        key = id(names), case.id
        if key not in self.given:
            self.given[key] = names, *_result(names, case)  # with the names, whose id is used
        return self.given[key][1:]

    def _with_mistakes(self, case: Case) -> Case:
        """The case with what each mutant gives, where that is wrong and nobody gave it before."""
        mistakes: list[Mistake] = []
        for mutant, names in zip(self.question.mutants, self.mutants, strict=True):
            gives, error = self._result(names, case)
            if error or not _is_value(gives):
                continue
            gives = outcome(gives, case)
            known = [case.want, *(mistake.gives for mistake in mistakes)]
            if all(difference(gives, one, case.rtol, case.atol) is not None for one in known):
                mistakes.append(Mistake(mutant.asks, gives))
        return replace(case, mistakes=tuple(mistakes))

    def _rows(self, right: Names) -> Iterator[Row]:
        yield self._row("solution", right)
        yield self._row("solution in float64", right, in_float64)
        yield self._row("blank", self._names(stub_of(self.question.solution)))
        for name, code in self.question.alternatives.items():
            yield self._row(f"alternative: {name}", self._names(code))
        for mutant, names in zip(self.question.mutants, self.mutants, strict=True):
            yield self._row(f"mutant: {mutant.asks}", names)

    def _row(self, who: str, names: Names, turned: Callable = lambda value: value) -> Row:
        failed = []
        for case in self.cases:
            got, error = self._result(names, case)
            if error or not compare(turned(got), case).ok:
                failed.append(case.id)
        worth = sum(case.points for case in self.cases if case.id not in failed)
        return Row(self.question.name, who, worth, self.question.points, tuple(failed))

    def complaints(self) -> Iterator[str]:
        """What does not hold, a line each."""
        public = [case for case in self.cases if case.public]
        shown, caught = {case.id for case in public}, set[str]()
        for row in self.rows:
            if row.who == "blank" and len(row.failed) < len(self.cases):
                yield f"{row.question}: the blank answer gets {row.points} of {row.of}"
            elif row.who.startswith("mutant"):
                caught |= set(row.failed)
                if not row.failed:
                    yield f"{row.question}: no case fails the {row.who}"
                elif shown.issuperset(row.failed):
                    yield f"{row.question}: no hidden case fails the {row.who}"
            elif row.who != "blank" and row.failed:
                yield f"{row.question}: the {row.who} fails {', '.join(row.failed)}"
        for case in self.cases:
            if case.id not in caught:
                yield f"{case.id} ({case.stage}): no mutant fails it"
            if not case.public and any(compare(other.want, case).ok for other in public):
                yield f"{case.id} ({case.stage}): a result copied out of a public case passes it"
        if not public:
            yield f"{self.question.name} has no public case"


def _result(names: Names, case: Case) -> tuple[Any, Exception | None]:
    torch.manual_seed(0)
    try:
        with patience():
            return run_case(names, case), None
    except EndlessError as error:  # each draw would wait for it again
        raise EndlessError(f"an answer to {case.id} ({case.stage}): {error}") from None
    except Exception as error:
        return None, error


def _is_value(gives: Any) -> bool:
    try:
        encode(gives, {}, "a mistake")
    except ValueError:
        return False
    return gives is not None


def in_float64(value: Any) -> Any:
    """The same result in double precision."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    if isinstance(value, list | tuple):
        return type(value)(in_float64(item) for item in value)
    if isinstance(value, dict):
        return {name: in_float64(item) for name, item in value.items()}
    return value
