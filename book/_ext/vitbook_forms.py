"""The forms that every chapter uses: predictions, pages in depth, and computed minutes.

    ```{predict} c4-two-heads
    :choices: one half | the same | twice
    :answer: the same
    How many numbers do two heads need, beside one?
    +++
    They share the width, so nothing is added.
    ```

is a group with the question, its choices and a closed ``<details>`` that explains. Its data
attributes (``data-predict``, ``data-choices``, ``data-number``, ``data-within``, ``data-unit``,
``data-answer``) are for the script that asks for the prediction (vitbook_progress.py); nothing here
needs one. Instead of choices there may be ``:number: 0.5 +- 0.1`` and ``:unit: %``, or neither.

    ```{in-depth} sec-c2-reading
    What the page asks, in a sentence.
    ```

stands at the top of a page called "2, in depth: ...". It links back to the label that raises the
question. The chapter links to the page with ``{in-depth}`depth_02_reading` ``.

``{minutes}`this page` `` becomes "Read 35 minutes, do 40 minutes", as tools/counts.py counts them;
``{minutes}`read 02_maps` `` and ``{minutes}`do 02_maps` `` are the numbers alone, of another page;
``{minutes}`hours 02_maps 03_bmm` `` are reading and exercises of several pages together.

What is wrong is a warning, so the build fails.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import docname_join, logging
from sphinx.util.docutils import ReferenceRole, SphinxDirective, SphinxRole
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator
from vitbook_folds import folded

from tools.counts import count_file, hours
from tools.pages import depth
from tools.pages.prediction import ANSWER_TITLE, OPTIONS, TITLE, Prediction, read_prediction

logger = logging.getLogger(__name__)


class prediction(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """The group of a question, its choices and the folded answer."""


class Predict(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = dict.fromkeys(OPTIONS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        try:
            read = read_prediction(self.arguments[0], self.options, list(self.content))
        except ValueError as error:
            logger.warning(str(error), location=(self.env.docname, self.lineno), type="vitbook")
            return []
        title = f"{read.anchor}-title"
        group = prediction("", ids=[read.anchor], classes=["predict"], data=data(read))
        group["labelledby"] = title
        group += nodes.paragraph("", TITLE, ids=[title], classes=["predict-title"])
        self.parse(group, 0, len(read.question))
        if read.choices:
            items = [nodes.list_item("", self.words(choice)) for choice in read.choices]
            group += nodes.bullet_list("", *items, classes=["predict-choices"])
        answer = nodes.container(classes=["predict-explained"])
        if read.right:
            right = self.words(read.right)
            right["classes"].append("predict-right")
            answer += right
        self.parse(answer, read.explanation_at, len(self.content))
        group += folded([nodes.Text(ANSWER_TITLE)], [answer], classes=["predict-answer"])
        self.set_source_info(group)
        return [group]

    def parse(self: HTML5Translator, node: nodes.Element, start: int, end: int) -> None:
        self.state.nested_parse(self.content[start:end], self.content_offset + start, node)

    def words(self, text: str) -> nodes.paragraph:
        found, _ = self.state.inline_text(text, self.lineno)
        return nodes.paragraph("", "", *found)


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


class InDepth(SphinxDirective):
    """The box at the top of a page in depth."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        box = nodes.container(classes=["in-depth"])
        words, messages = self.state.inline_text(depth.origin(self.arguments[0]), self.lineno)
        box += nodes.paragraph("", "In depth", classes=["in-depth-label"])
        self.state.nested_parse(self.content, self.content_offset, box)
        box += nodes.paragraph("", "", *words)
        self.set_source_info(box)
        return [box, *messages]


class InDepthRole(ReferenceRole):
    """A link to a page in depth, which `resolve` names when all titles are known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        node = pending_xref(
            "",
            nodes.inline("", self.title, classes=["in-depth-link"]),
            refdoc=self.env.docname,
            refdomain="",
            reftype="vitbook-in-depth",
            reftarget=docname_join(self.env.docname, self.target),
            refexplicit=self.has_explicit_title,
            refwarn=True,
        )
        self.set_source_info(node)
        return [node], []


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    if node["reftype"] != "vitbook-in-depth" or node["reftarget"] not in env.titles:
        return None
    title = env.titles[node["reftarget"]].astext()
    words = content.astext() if node["refexplicit"] else depth.named(title)
    uri = app.builder.get_relative_uri(node["refdoc"], node["reftarget"])
    return nodes.reference("", words, internal=True, refuri=uri, classes=["in-depth-link"])


class MinutesRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        wanted, *names = self.text.split() if self.text != "this page" else ("",)
        documents = [docname_join(self.env.docname, name) for name in names]
        paths = [Path(self.env.doc2path(one)) for one in documents or [self.env.docname]]
        try:
            if wanted not in {"", "read", "do", "hours"} or (wanted != "hours" and len(paths) > 1):
                raise ValueError("write `this page`, `read PAGE`, `do PAGE` or `hours PAGE PAGE`")
            if documents:
                self.env.note_reread()  # tools/render.py
            counts = count_file(paths[0])
            known = {"": counts, "read": counts.read, "do": counts.do}
            said = hours(paths) if wanted == "hours" else known[wanted]
        except (OSError, ValueError) as error:
            words = f"minutes {self.text!r}: {error}"
            logger.warning(words, location=self.get_location(), type="vitbook")
            return [nodes.Text(self.text)], []
        return [nodes.Text(str(said))], []


def setup(app: Sphinx) -> ExtensionMetadata:
    app.setup_extension("vitbook_folds")
    app.add_node(prediction, html=(visit_prediction, depart_prediction))
    app.add_directive("predict", Predict)
    app.add_directive("in-depth", InDepth)
    app.add_role("in-depth", InDepthRole())
    app.add_role("minutes", MinutesRole())
    app.connect("missing-reference", resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
