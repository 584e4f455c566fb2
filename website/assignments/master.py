"""What a master holds when it is read and filled in: an assignment, its questions, their tests."""

from dataclasses import dataclass, field


class MasterError(ValueError):
    """Something in a master that cannot be used; the message names file and place."""


@dataclass(frozen=True)
class Test:
    """One test cell: what it is called, what it is worth, and the call.

    With ``training`` the gradients of all inputs and parameters are compared beside the result, and
    an object is called in training mode, so that a dropout shows. For cases of a class: weights
    whose names begin with a word of ``tiny`` are a thousandth of what is drawn, so that what
    follows them is tiny and the eps of a norm shows. In the call, ``.start_values("name")`` gives
    what a parameter holds before any weights are loaded (see :class:`vitcheck.cases.Case`). With
    ``claims`` the answer plans experiments, and what they have to show stands there (see
    :func:`vitcheck.paired_models.judged`).
    """

    name: str
    points: float
    hidden: bool
    code: str
    otherwise: str = "the numbers differ"
    rtol: float = 1e-4
    atol: float = 1e-5
    training: bool = False
    tiny: tuple[str, ...] = ()
    claims: str = ""


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong answer, and the question to whoever gives it."""

    asks: str
    code: str


@dataclass(frozen=True)
class Question:
    """One question of a drawn assignment."""

    name: str
    title: str
    points: float
    minutes: int
    difficulty: int
    objective: str
    prompt: list[str]  # Markdown cells
    solution: str  # with otter's marks
    tests: list[Test]
    mutants: list[Mutant]
    alternatives: dict[str, str]
    defines: list[str] = field(default_factory=list)
    manual: bool = False
    rubric: str | None = None


@dataclass(frozen=True)
class Master:
    """A drawn assignment: title, introduction, given cells and questions in their order."""

    name: str
    title: str
    chapters: list[str]
    introduction: list[str]
    setup: list[str]
    questions: list[Question]

    @property
    def minutes(self) -> int:
        return sum(question.minutes for question in self.questions)

    @property
    def points(self) -> float:
        return sum(question.points for question in self.questions)
