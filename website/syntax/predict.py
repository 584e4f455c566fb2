"""A prediction: the question, above a line ``+++``; what happened, below it.

    ```{predict} c4-two-heads
    :choices: one half | the same | twice
    :answer: the same
    How many numbers do two heads need, beside one?
    +++
    They share the width, so nothing is added.
    ```

Instead of choices a prediction may ask for a number (``:number: 0.5 +- 0.1``, the answer and how
far off one may be; ``:track: 0 to 1``, between which ends one guesses, ``1 to 1024 log`` where each
step multiplies; ``:unit: %`` where it has one), or for neither: it is answered in words.

On the page a prediction and the output it asks about are one object: the first output of the cells
right after it stands in it, behind a frame. What follows up to the end of the section (the next
heading of the same or a higher level) is folded (``div.ask-rest``). Both are open without a script,
on paper, and once the reader has guessed or wants to read without (``_static/predict/predict.js``).
Where the cell after it is the still of a live figure (``:still: above``), the prediction stands in
that figure and nothing is folded: until it is open, the figure keeps what it asks for to itself.
The questions of the front page stand side by side: nothing is folded there.

Its data attributes (``data-predict``, ``data-choices``, ``data-number``, ``data-within``,
``data-track``, ``data-unit``, ``data-answer``) are for the script; nothing here needs one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from website.pages.markdown import details, paragraphs, quote, titled
from website.syntax.cells.cell import is_cell, is_failure, part
from website.syntax.cells.folds import is_count_line
from website.syntax.live import live
from website.syntax.shared import BookDirective, Notebook, Written, register

OPTIONS = ("choices", "answer", "number", "track", "unit")
TITLE = "Predict, then run"
PAGE_TITLE = "Predict"
ANSWER_TITLE = "What happened"
PARAMETER = "my_guess"  # as it is called in the cells of a notebook
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NUMBER = re.compile(r"(?P<number>-?\d+(\.\d+)?)(\s*\+-\s*(?P<within>\d+(\.\d+)?))?")
TRACK = re.compile(r"(?P<low>-?\d+(\.\d+)?) to (?P<high>-?\d+(\.\d+)?)(?P<log> log)?")
REST = """<p class="ask-more"><span>The section goes on behind your guess.</span></p>
<div class="ask-rest" hidden="until-found">
"""
UNSEEN = (nodes.comment, nodes.target, nodes.substitution_definition)


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
    track: str = ""  # the two ends, "log" behind them where each step multiplies
    unit: str = ""  # of the number

    @property
    def anchor(self) -> str:
        return f"predict-{self.id}"

    @property
    def right(self) -> str:
        """The answer in a word, where there is one."""
        return self.answer or f"{self.number} {self.unit}".strip()

    @property
    def key(self) -> str:
        """What is right, for vitcheck/notebook.py: which of how many; or number, margin, unit."""
        if self.choices:
            return f"{self.choices.index(self.answer) + 1}/{len(self.choices)}"
        return f"{self.number} {self.within} {self.unit}" if self.number else ""

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
        number, within, track = _number(id_, given)
        unit = given["unit"]
        return Prediction(id_, question, explanation, (), "", number, within, track, unit)
    if given["unit"] or given["track"]:
        raise ValueError(f"the prediction {id_} has a unit or a track, and no number")
    choices = tuple(c.strip() for c in given["choices"].split("|") if c.strip())
    if given["choices"] and len(set(choices)) < max(2, len(choices)):
        raise ValueError(f"the prediction {id_} needs two choices at least, all different")
    if choices and given["answer"] not in choices:
        words = f"{given['answer']!r} is not among: {', '.join(choices)}"
        raise ValueError(f"the answer of the prediction {id_} is not a choice: {words}")
    return Prediction(id_, question, explanation, choices, given["answer"])


def _number(id_: str, given: dict[str, str]) -> tuple[str, str, str]:
    if given["choices"] or given["answer"]:
        raise ValueError(f"the prediction {id_} asks for a number: no choices, no answer besides")
    match = NUMBER.fullmatch(given["number"])
    if match is None:
        raise ValueError(f"the prediction {id_}: {given['number']!r} is no number like 0.5 +- 0.1")
    track = TRACK.fullmatch(given["track"])
    if track is None:
        words = "needs a track on which one guesses, like 0 to 100 or 1 to 1024 log"
        raise ValueError(f"the prediction {id_} {words}")
    low, high, number = (float(one) for one in (track["low"], track["high"], match["number"]))
    if not low < number < high or (track["log"] and low <= 0):
        words = "is not between the ends of its track, or a log track begins at 0 or below"
        raise ValueError(f"the prediction {id_}: {match['number']} {words}")
    ends = " ".join([track["low"], track["high"], *(track["log"] or "").split()])
    return match["number"], match["within"] or "0", ends


class prediction(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """The group of a question, its choices, the answer and the output that shows it."""


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
        group += nodes.paragraph("", PAGE_TITLE, ids=[title], classes=["predict-title"])
        self.read(group, 0, len(read.question))
        asked = nodes.container(classes=["ask-asked"])
        if read.choices:
            said = [nodes.paragraph("", "", *self.words(choice)) for choice in read.choices]
            letters = max(len(choice.astext()) for choice in said)
            group["data"]["style"] = f"--of: {len(said)}; --letters: {letters}"  # short: in a row
            items = [nodes.list_item("", choice) for choice in said]
            asked += nodes.bullet_list("", *items, classes=["predict-choices"])
        answer = nodes.container(classes=["predict-explained"])
        if read.right:
            answer += nodes.paragraph("", "", *self.words(read.right), classes=["predict-right"])
        self.read(answer, read.explanation_at)
        group += nodes.container("", asked, answer, classes=["ask-both"])
        self.set_source_info(group)
        return [group]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        """The question, quoted; what happened, folded below it. Inside another directive there is
        no cell in which it could be answered."""
        read = read_prediction(written.argument, written.options, written.body)
        return paragraphs(*Predict.parts_for_notebook(written, notebook, read))

    @staticmethod
    def parts_for_notebook(
        written: Written, notebook: Notebook, read: Prediction
    ) -> tuple[str, str]:
        """The question with its choices, quoted and numbered, and what happened, folded."""
        question = notebook.body(written, 0, len(read.question))
        said = (notebook.text(choice, written.line) for choice in read.choices)
        choices = "\n".join(f"+ *choice {at}*: {choice}" for at, choice in enumerate(said, 1))
        after = notebook.body(written, read.explanation_at)
        explained = titled(notebook.text(read.right, written.line), after)
        asked = quote(titled(TITLE, paragraphs(question, choices)))
        return asked, details(ANSWER_TITLE, explained)


def asked_for(read: Prediction) -> str:
    """What kind of answer a notebook's cell waits for."""
    if read.choices:
        return f"Choice 1 to {len(read.choices)}"
    if read.number:
        return f"A number, in {read.unit}" if read.unit else "A number"
    return "A few words"


def parameter(read: Prediction) -> str:
    """What stands for the answer in a notebook's cell: a menu or a field in Colab, and a digit, a
    number or a few words to type everywhere else."""
    if read.choices:
        return f'0  #@param {[*range(len(read.choices) + 1)]} {{type:"raw"}}'
    if read.number:
        return 'None  #@param {type:"raw"}'
    return '""  #@param {type:"string"}'


def data(read: Prediction) -> dict[str, str]:
    """What a script needs to know."""
    found = {"predict": read.id, "answer": read.answer, "number": read.number}
    found |= {"within": read.within, "track": read.track, "unit": read.unit}
    if read.choices:
        found["choices"] = json.dumps(read.choices, ensure_ascii=False)
    return {f"data-{name}": value for name, value in found.items() if value}


def visit_prediction(self: HTML5Translator, node: prediction) -> None:
    named = {"role": "group", "aria-labelledby": node["labelledby"]}
    self.body.append(self.starttag(node, "div", **named, **node["data"]))


def depart_prediction(self: HTML5Translator, node: prediction) -> None:
    self.body.append("</div>\n")


class OneObject(SphinxPostTransform):
    """Puts the output a prediction asks about into it, and folds what else its section has."""

    default_priority = 155  # after the folds: a cell has its final form
    formats = ("html",)

    def run(self, **options: object) -> None:
        if any(node.get("whole") for node in self.document.findall(nodes.Element)):
            return  # the front page
        for group in reversed(list(self.document.findall(prediction))):  # the innermost fold first
            section = group.parent
            end = len(section) - is_count_line(section[-1])
            after = section.children[section.index(group) + 1 : end]
            if any(is_failure(node) for one in after for node in one.findall()):
                continue  # what failed is seen at once
            figure = opened_by(after)
            if figure is not None:
                section.remove(group)
                box = nodes.container("", group, classes=["live-box"])  # where the figure draws
                figure.insert(1, box)  # below its title
                continue
            output = shown_by(after)
            if output is not None:
                section.remove(output)
                after.remove(output)
                group += nodes.container("", output, classes=["ask-output"])
            if any(not isinstance(node, UNSEEN) for node in after):
                section.insert(section.index(group) + 1, nodes.raw("", REST, format="html"))
                end = len(section) - is_count_line(section[-1])
                section.insert(end, nodes.raw("", "</div>\n", format="html"))


def opened_by(after: Sequence[nodes.Node]) -> live | None:
    """The live figure that asks: the cell before it is its still."""
    seen = [node for node in after if not isinstance(node, UNSEEN)][:2]
    if len(seen) == 2 and is_cell(seen[0]) and isinstance(seen[1], live) and seen[1]["read"].opens:
        return seen[1]
    return None


def shown_by(after: Sequence[nodes.Node]) -> nodes.Node | None:
    """The cell whose output comes next: between it and the prediction stand at most other cells."""
    for node in after:
        if not is_cell(node) and not isinstance(node, UNSEEN):
            return None
        if is_cell(node) and part(node, "output") is not None:
            return node
    return None


DIRECTIVES = {"predict": Predict}


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.cells.folds")
    app.add_post_transform(OneObject)
    app.add_node(prediction, html=(visit_prediction, depart_prediction))
    register(app, globals())
