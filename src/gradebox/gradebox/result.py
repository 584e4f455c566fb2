"""What marking one notebook gives: plain data, to JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

# What became of a submission. Only "ok" has been marked; everything else has 0 points, and `detail`
# says in a sentence why, fit for the student's eyes.
STATUS = {
    "ok": "marked",
    "unreadable": "no notebook: too large, not JSON, not a file, or without cells",
    "wrong-assignment": "the notebook is of another assignment",
    "wrong-variant": "the notebook is of another variant of this assignment",
    "no-answers": "none of the questions' cells is in the notebook",
    "crashed": "the grader itself failed; mark it again, or by hand",
}
# What became of a question.
QUESTION_STATUS = {
    "ok": "its cells ran and its cases were called",
    "missing": "the notebook does not define what is asked for, or explains nothing",
    "failed": "its cells raised an error, did not end, or ended the process",
    "untouched": "its cell is as it was handed out, and earned nothing",
    "manual": "marked by a person; `points` stays None",
    "not-marked": "not among the questions that were to be marked this time",
}


@dataclass(frozen=True)
class CaseResult:
    """One call of the student's code. ``message`` is None for hidden cases, always; ``name`` is
    the master's name of the case, the same in every variant."""

    id: str
    public: bool
    passed: bool
    points: float
    possible: float
    message: str | None = None
    name: str = ""


@dataclass(frozen=True)
class QuestionResult:
    """``points`` is None where a person marks (``manual``); ``message`` is for the student."""

    id: str
    title: str
    points: float | None
    possible: float
    status: str = "ok"
    message: str = ""
    manual: bool = False
    cases: list[CaseResult] = field(default_factory=list)
    answer: str = ""  # what stands in the answer's cell, for the person who marks or compares
    hint: str = ""  # public cases right, a hidden one not: the known mistake that fits, if one does


@dataclass(frozen=True)
class Result:
    """One submission, marked. ``points`` leaves out the questions that a person marks.

    ``seconds``, ``memory_mb``, ``restarts`` and the hidden cases are for the instructor: show them
    to no student, each of them is a way to carry hidden inputs out.
    """

    assignment: str
    variant: str
    status: str
    points: float
    possible: float
    detail: str = ""
    questions: list[QuestionResult] = field(default_factory=list)
    manual_possible: float = 0.0
    notes: list[str] = field(default_factory=list)  # for the instructor: what was survived
    stopped: list[str] = field(default_factory=list)  # cells that stopped, in words for the student
    seconds: float = 0.0
    memory_mb: float = 0.0  # the most that one worker took, as the kernel counted
    restarts: int = 0  # how often the worker was started anew
    sandbox: str = ""  # "bubblewrap", "landlock" or "unsafe"
    package: str = ""  # digest of the package that marked it

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Result:
        data = json.loads(text)
        questions = [
            QuestionResult(
                **{**question, "cases": [CaseResult(**case) for case in question["cases"]]}
            )
            for question in data.pop("questions")
        ]
        return Result(**data, questions=questions)
