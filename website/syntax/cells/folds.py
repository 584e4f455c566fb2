"""What is folded, as native ``<details>``: closed from the first moment, and no script needed.

- A **solution** (``{solution-start}``) opens wherever its title is clicked. No link is in the way.
- A cell tagged ``deeper`` moves into the ``{dropdown}`` before it.
- The **code of a folded cell** (``hide-input``, ``hide-cell``) has a mark in the margin, or in a
  quiet line under what it shows where there is no margin: "✓ code, 2 checks". A folded cell that
  shows nothing stands in the claim before it, with what would refute the claim.
- Of **every other cell** set-up, checks and the code of tables fold by rule (cell.py),
  except in exercises and solutions, where the reader works with the whole of it.
- A stub's "not answered yet" is for the notebook, where somebody is about to answer.
- What failed in a cell is never folded with it (failures.py).
- The last line of a chapter counts its checks in this build.
- Tables are numbered by chapter, those that a cell shows and those with a caption in the text:
  "Table 17.2". On a page that is no numbered chapter the count is plain: 1, 2, 3.
"""

import re
from collections.abc import Callable, Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import is_exercise_node, solution_node

from website.pages.cells import count_checks
from website.syntax.cells.cell import (
    fold_by_rule,
    fold_tagged,
    is_cell,
    is_failure,
    marked,
    part,
    tags,
)
from website.syntax.cells.details import fold, folded
from website.syntax.cells.failures import bring_out, take_out
from website.syntax.chapter import chapter_number, places
from website.theme.page import warn

UNANSWERED = re.compile(r"\s*(not answered yet\b.*\s*)+")
TABLE_CAPTION = re.compile(r'(?<=<table class="vitbook-table")([^>]*><caption>)')


class Folds(SphinxPostTransform):
    """Runs when outputs have their final form and solutions their titles, and before myst-nb and
    sphinx-design fold what is left."""

    default_priority = 150
    formats = ("html",)

    def run(self, **options: object) -> None:
        cells = self.found(is_cell)
        ran = [cell for cell in cells if cell.get("exec_count")]
        checks = sum(count_checks(code.astext()) for cell in ran if (code := part(cell, "source")))
        for cell in cells:
            take_out(cell)
        for node in self.found(lambda node: isinstance(node, solution_node)):
            fold_solution(node)
        for node in self.found(is_exercise_node):
            for cell in node.findall(is_cell):
                drop_unanswered(cell)
        for cell in cells:
            if "deeper" in tags(cell):
                move_into_box(cell)
        for cell in cells:
            if cell.get("hide_mode"):
                fold_tagged(cell)
            elif not is_worked_with(cell):
                fold_by_rule(cell)
        bring_out(self.document)
        self.number_tables()
        if checks and self.env.docname in places(self.env):
            self.found(lambda node: isinstance(node, nodes.section))[0].append(
                count_line(checks, sum(not one["elsewhere"] for one in self.found(is_failure)))
            )

    def found(self, wanted: Callable[[nodes.Node], bool]) -> list[nodes.Node]:
        return list(self.document.findall(wanted))

    def number_tables(self) -> None:
        chapter = chapter_number(self.env, self.env.docname)
        for count, table in enumerate(self.found(has_caption), 1):
            number = count if chapter is None else f"{chapter}.{count}"
            if isinstance(table, nodes.raw):
                mark = f'<span class="caption-number">Table {number}.</span> '
                numbered = TABLE_CAPTION.sub(rf"\1{mark}", table.astext())
                table.children = [nodes.Text(numbered)]
            else:
                mark = nodes.inline("", f"Table {number}.", classes=["caption-number"])
                table.next_node(nodes.title).insert(0, [mark, nodes.Text(" ")])


def count_line(checks: int, lost: int) -> nodes.paragraph:
    """The last line of a page: its checks in this build, and how many of them did not hold."""
    mark, kind = ("✗", "fold-failed") if lost else ("✓", "fold-ran")
    words = f" {checks} checks of this page ran in this build" + (
        f", {lost} failed." if lost else "."
    )
    line = [nodes.inline("", mark, classes=[kind]), nodes.Text(words)]
    return nodes.paragraph("", "", *line, classes=["page-checks"])


is_count_line = marked("page-checks")


def has_caption(node: nodes.Node) -> bool:
    if isinstance(node, nodes.raw):
        return '<table class="vitbook-table"' in node.astext()
    return isinstance(node, nodes.table) and isinstance(node[0], nodes.title)


def is_worked_with(cell: nodes.container) -> bool:
    """Does the cell belong to an exercise or a solution?"""
    node = cell.parent
    while node is not None:
        if is_exercise_node(node) or (isinstance(node, fold) and "solution" in node["classes"]):
            return True
        node = node.parent
    return False


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
        warn(words, cell)
        return
    cell.parent.remove(cell)
    box += cell


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.cells.details")
    app.setup_extension("website.syntax.cells.package")
    app.add_post_transform(Folds)
