"""What can be said about an assignment without opening its cases: names, points and stubs."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from gradebox.sources import InputError


@dataclass(frozen=True)
class Question:
    id: str
    title: str
    points: float
    manual: bool
    rubric: str
    stub: str  # what the student was given in the answer's cell


@dataclass(frozen=True)
class Assignment:
    """An assignment as ``make assignment`` packed it for the grader."""

    name: str
    questions: tuple[Question, ...]

    @property
    def points(self) -> float:
        return sum(question.points for question in self.questions)


def read_assignment(path: Path) -> Assignment:
    """Read a ``.gradebox.zip``.

    Raises:
        InputError: It does not exist, or was not made by ``make assignment``.
    """
    if not path.is_file():
        raise InputError(f"there is no package {path}: `make assignment` writes one")
    try:
        with zipfile.ZipFile(path) as opened:
            data = json.loads(opened.read("package.json"))
        stubs = data.get("stubs") or {}
        questions = tuple(
            Question(
                id=str(one["id"]),
                title=str(one.get("title") or one["id"]),
                points=float(one["points"]),
                manual=bool(one.get("manual")),
                rubric=str(one.get("rubric") or ""),
                stub=str(stubs.get(one["id"]) or ""),
            )
            for one in data["questions"]
        )
        found = Assignment(str(data.get("name") or data["assignment"]), questions)
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no package of `make assignment`") from error
    if not questions:
        raise InputError(f"{path} has no questions")
    return found
