"""A prediction: the question, above a line ``+++``; what happened, below it.

    ```{predict} c4-two-heads
    :choices: one half | the same | twice
    :answer: the same
    How many numbers do two heads need, beside one?
    +++
    They share the width, so nothing is added.
    ```

Instead of choices a prediction may ask for a number (``:number: 0.5 +- 0.1``, the answer and how
far off one may be, and ``:unit: %`` where it has one), or for neither: it is answered in words.

On the page it is a group with the question, its choices and a closed ``<details>`` that explains.
Its data attributes (``data-predict``, ``data-choices``, ``data-number``, ``data-within``,
``data-unit``, ``data-answer``) are for the script that asks (progress.py); nothing here needs one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

from website.pages.markdown import details, paragraphs, quote, titled
from website.syntax.cells.details import folded
from website.syntax.shared import BookDirective, Notebook, Written, register

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


class prediction(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """The group of a question, its choices and the folded answer."""


class Predict(BookDirective):
    option_spec = dict.fromkeys(OPTIONS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        try:
            read = read_prediction(self.arguments[0], self.options, list(self.content))
        except ValueError as error:
            self.warn(str(error))
            return []
        title = f"{read.anchor}-title"
        group = prediction("", ids=[read.anchor], classes=["predict"], data=data(read))
        group["labelledby"] = title
        group += nodes.paragraph("", TITLE, ids=[title], classes=["predict-title"])
        self.read(group, 0, len(read.question))
        if read.choices:
            said = [nodes.paragraph("", "", *self.words(choice)) for choice in read.choices]
            items = [nodes.list_item("", choice) for choice in said]
            group += nodes.bullet_list("", *items, classes=["predict-choices"])
        answer = nodes.container(classes=["predict-explained"])
        if read.right:
            answer += nodes.paragraph("", "", *self.words(read.right), classes=["predict-right"])
        self.read(answer, read.explanation_at)
        group += folded([nodes.Text(ANSWER_TITLE)], [answer], classes=["predict-answer"])
        self.set_source_info(group)
        return [group]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        """The question, quoted; what happened, folded below it."""
        read = read_prediction(written.argument, written.options, written.body)
        question = notebook.body(written, 0, len(read.question))
        choices = [f"- {notebook.text(choice, written.line)}" for choice in read.choices]
        after = notebook.body(written, read.explanation_at)
        explained = titled(notebook.text(read.right, written.line), after)
        asked = quote(titled(TITLE, paragraphs(question, "\n".join(choices))))
        return paragraphs(asked, details(ANSWER_TITLE, explained))


def data(read: Prediction) -> dict[str, str]:
    """What a script needs to know."""
    found = {"predict": read.id, "answer": read.answer, "number": read.number}
    found |= {"within": read.within, "unit": read.unit}
    if read.choices:
        found["choices"] = json.dumps(read.choices, ensure_ascii=False)
    return {f"data-{name}": value for name, value in found.items() if value}


def visit_prediction(self: HTML5Translator, node: prediction) -> None:
    named = {"role": "group", "aria-labelledby": node["labelledby"]}
    self.body.append(self.starttag(node, "div", **named, **node["data"]))


def depart_prediction(self: HTML5Translator, node: prediction) -> None:
    self.body.append("</div>\n")


DIRECTIVES = {"predict": Predict}


def setup(app: Sphinx) -> ExtensionMetadata:
    app.setup_extension("website.syntax.cells.folds")
    app.add_node(prediction, html=(visit_prediction, depart_prediction))
    register(app, globals())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
