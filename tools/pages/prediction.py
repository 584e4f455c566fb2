"""A prediction as it is written: the question, above a line ``+++``; what happened, below it.

    ```{predict} c4-two-heads
    :choices: one half | the same | twice
    :answer: the same
    How many numbers do two heads need, beside one?
    +++
    They share the width, so nothing is added.
    ```

Instead of choices a prediction may ask for a number (``:number: 0.5 +- 0.1``, the answer and how
far off one may be, and ``:unit: %`` where it has one), or for neither: it is answered in words.
Site, notebooks and the rules for the sources all read it here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OPTIONS = ("choices", "answer", "number", "unit")
TITLE = "Predict, then run"
ANSWER_TITLE = "What happened"
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NUMBER = re.compile(r"(?P<number>-?\d+(\.\d+)?)(\s*\+-\s*(?P<within>\d+(\.\d+)?))?")


@dataclass(frozen=True)
class Prediction:
    """One prediction. ``answer`` is empty where any words will do."""

    id: str
    question: tuple[str, ...]  # lines
    explanation: tuple[str, ...]  # lines
    choices: tuple[str, ...] = ()
    answer: str = ""
    number: str = ""
    within: str = ""
    unit: str = ""  # of the number

    @property
    def anchor(self) -> str:
        return f"predict-{self.id}"

    @property
    def right(self) -> str:
        """The answer in a word, where there is one."""
        return self.answer or f"{self.number} {self.unit}".strip()

    @property
    def explanation_at(self) -> int:
        """The line of the body, counted from 0, where the explanation begins."""
        return len(self.question) + 1


def read_prediction(id_: str, options: Mapping[str, str], body: Sequence[str]) -> Prediction:
    """Read the parts of a prediction.

    Raises:
        ValueError: Something is wrong; the message says what.
    """
    id_ = id_.strip()
    if not ID.fullmatch(id_):
        raise ValueError(f"the prediction's id {id_!r} is not lower-case words joined by hyphens")
    marks = [at for at, line in enumerate(body) if line.strip() == "+++"]
    at = marks[0] if marks else len(body)
    question, explanation = tuple(body[:at]), tuple(body[at + 1 :])
    if not "".join(question).strip():
        raise ValueError(f"the prediction {id_} asks nothing")
    if not "".join(explanation).strip():
        raise ValueError(f"the prediction {id_} does not say, below a line +++, what happened")
    given = {key: (options.get(key) or "").strip() for key in OPTIONS}
    if given["number"]:
        number, within = _number(id_, given)
        unit = given["unit"]
        return Prediction(id_, question, explanation, number=number, within=within, unit=unit)
    if given["unit"]:
        raise ValueError(f"the prediction {id_} has a unit, and no number")
    choices = tuple(c.strip() for c in given["choices"].split("|") if c.strip())
    if given["choices"] and len(set(choices)) < max(2, len(choices)):
        raise ValueError(f"the prediction {id_} needs two choices at least, all different")
    if choices and given["answer"] not in choices:
        words = f"{given['answer']!r} is not among: {', '.join(choices)}"
        raise ValueError(f"the answer of the prediction {id_} is not a choice: {words}")
    return Prediction(id_, question, explanation, choices, given["answer"])


def _number(id_: str, given: dict[str, str]) -> tuple[str, str]:
    if given["choices"] or given["answer"]:
        raise ValueError(f"the prediction {id_} asks for a number: no choices, no answer besides")
    match = NUMBER.fullmatch(given["number"])
    if match is None:
        raise ValueError(f"the prediction {id_}: {given['number']!r} is no number like 0.5 +- 0.1")
    return match["number"], match["within"] or "0"
