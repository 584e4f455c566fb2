"""What is folded, as native ``<details>``: closed from the first moment, and no script needed.

- A **solution** (``{solution-start}``) opens wherever its title is clicked. No link is in the way.
- A cell tagged ``deeper`` moves into the ``{dropdown}`` before it.
- The **code of a folded cell** (``hide-input``, ``hide-cell``) stands in a quiet line under what it
  shows: "Code of this figure". A folded cell that shows nothing stands in the claim before it, as
  "How this verdict is checked".
- A stub's "not answered yet" is for the notebook, where somebody is about to answer.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import is_exercise_node, solution_node

logger = logging.getLogger(__name__)

UNANSWERED = re.compile(r"\s*(not answered yet\b.*\s*)+")
CAPTION = re.compile(r"<figcaption>(.*?)</figcaption>", re.DOTALL)
LONGEST = 80  # characters of a caption in the spoken name of a fold


class fold(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """A folded block: a `fold_title`, then what it hides."""


class fold_title(nodes.General, nodes.TextElement):  # noqa: N801
    """What is always seen of it."""


def folded(title: list[nodes.Node], content: list[nodes.Node], **attributes) -> fold:
    return fold("", fold_title("", "", *title), *content, **attributes)


class Folds(SphinxPostTransform):
    """Runs when outputs have their final form and solutions their titles, and before myst-nb and
    sphinx-design fold what is left."""

    default_priority = 150
    formats = ("html",)

    def run(self, **options) -> None:
        for node in self.found(lambda node: isinstance(node, solution_node)):
            fold_solution(node)
        for node in self.found(is_exercise_node):
            for cell in node.findall(is_cell):
                drop_unanswered(cell)
        for cell in self.found(lambda node: is_cell(node) and "deeper" in tags(node)):
            move_into_box(cell)
        for cell in self.found(lambda node: is_cell(node) and node.get("hide_mode")):
            fold_code(cell)

    def found(self, wanted) -> list[nodes.Node]:
        return list(self.document.findall(wanted))


def is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def tags(cell: nodes.container) -> set[str]:
    return set(cell.get("cell_metadata", {}).get("tags", []))


def part(cell: nodes.container, name: str) -> nodes.container | None:
    """The cell's "source" or "output"."""
    for node in cell.children:
        if isinstance(node, nodes.Element) and node.get("nb_element") == f"cell_code_{name}":
            return node
    return None


def fold_solution(node: solution_node) -> None:
    title, *content = node.children
    words = [child.deepcopy() for child in unlinked(title)]
    inside = [child for part in content for child in part.children]
    body = nodes.container("", *inside, classes=["solution-content"])
    node.replace_self(folded(words, [body], ids=node["ids"], classes=["solution"]))


def unlinked(node: nodes.Node) -> Iterator[nodes.Node]:
    """The children of a title, without the link around some of them."""
    for child in node.children:
        if isinstance(child, nodes.reference):
            yield from child.children
        else:
            yield child


def drop_unanswered(cell: nodes.container) -> None:
    output = part(cell, "output")
    if output is not None:
        for printed in list(output.findall(nodes.literal_block)):
            if UNANSWERED.fullmatch(printed.astext()):
                printed.parent.remove(printed)
        if not output.astext().strip():
            cell.remove(output)


def move_into_box(cell: nodes.container) -> None:
    before = cell.parent.children[: cell.parent.index(cell)]
    box = before[-1] if before else None
    if not (isinstance(box, nodes.container) and box.get("design_component") == "dropdown"):
        words = "a cell tagged deeper belongs right after the dropdown that it moves into"
        logger.warning(words, location=cell, type="vitbook")
        return
    cell.parent.remove(cell)
    box += cell


def fold_code(cell: nodes.container) -> None:
    source, output = part(cell, "source"), part(cell, "output")
    if source is None or cell["hide_mode"] not in {"input", "all"}:
        return
    hidden = [source]
    if output is not None and cell["hide_mode"] == "all":
        hidden.append(output)
    for node in hidden:
        cell.remove(node)
    shown = None if output in hidden else output
    claim = claim_before(cell) if shown is None else None
    name, more = names(source, shown, claim)
    title = [nodes.Text(name)]
    if more:
        title.append(nodes.inline("", f": {more}", classes=["visually-hidden"]))
    cell += folded(title, hidden, classes=["code-fold"])
    del cell["hide_mode"]
    if claim is not None:
        cell.parent.remove(cell)
        claim += cell


def names(
    source: nodes.container, output: nodes.container | None, claim: nodes.container | None
) -> tuple[str, str]:
    """What the fold is called, and what is said besides to tell it from the others."""
    if claim is not None:
        said = next(claim.findall(lambda node: "claim-says" in getattr(node, "attributes", {}).get("classes", [])))
        return "How this verdict is checked", shortened(said.astext())
    if output is None:
        checks = "assert" in source.astext()
        return ("How this is checked" if checks else "How these numbers are computed"), ""
    shown = "\n".join(raw.astext() for raw in output.findall(nodes.raw))
    if "<figure" not in shown:
        return "Code of this output", ""
    caption = CAPTION.search(shown)
    return "Code of this figure", beginning(caption[1]) if caption else ""


def beginning(caption: str) -> str:
    """The first sentence of a caption, or as much of it as may be said."""
    text = html.unescape(re.sub(r"<[^>]*>", "", caption))
    text = re.sub(r"\\[()]|\$", "", text)
    text = re.split(r"(?<=\w)[.:;](?= |$)", " ".join(text.split()), maxsplit=1)[0]
    return shortened(text)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def claim_before(cell: nodes.container) -> nodes.container | None:
    """The claim that this cell follows directly."""
    before = cell.parent.children[: cell.parent.index(cell)]
    box = before[-1] if before else None
    is_claim = isinstance(box, nodes.container) and "claim" in box["classes"]
    return box if is_claim else None


def visit_fold(self, node: fold) -> None:
    self.body.append(self.starttag(node, "details"))


def depart_fold(self, node: fold) -> None:
    self.body.append("</details>\n")


def visit_title(self, node: fold_title) -> None:
    self.body.append(self.starttag(node, "summary", ""))


def depart_title(self, node: fold_title) -> None:
    self.body.append("</summary>\n")


def setup(app):
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(fold_title, html=(visit_title, depart_title))
    app.add_post_transform(Folds)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
