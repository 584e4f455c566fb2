"""The first lines of a chapter: its question, its name, and in one line what for and what before.

    ```{goals} derive the size of a score, set a temperature
    {chapter}`weighted_average`, variance
    ```

is "After it you derive the size of a score, set a temperature. Before it: chapter 1, variance.", of
LONGEST characters at most. The title of such a page is the question of its card; number, name and
minutes stand small above it. Everywhere else the chapter is called by its name.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from website.pages.counts import count_file
from website.syntax.cards import question
from website.syntax.cells.cell import is_cell, part
from website.syntax.chapter import places, plain_title
from website.syntax.shared import BookDirective, Notebook, Written, register

LONGEST = 150  # characters
ROLE = re.compile(r"\{\w+\}`(?:[^`<]*)(?:<[^`>]*>)?`")


def line(after: str, before: Sequence[str]) -> str:
    """The line, in MyST."""
    return f"**After it** you {after.strip()}. **Before it** {' '.join(before).strip()}."


def length(after: str, before: Sequence[str]) -> int:
    """How many characters a reader sees; a reference is as long as "chapter 12"."""
    return len(re.sub(r"[*$\\]", "", ROLE.sub("chapter 12", line(after, before))))


class Goals(BookDirective):
    def run(self) -> list[nodes.Node]:
        read = nodes.paragraph("", "", *self.words(line(self.arguments[0], self.content)))
        read["classes"] = ["goals"]
        self.set_source_info(read)
        return [read]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        return notebook.text(line(written.argument, written.body), written.line)


def opens(document: nodes.document) -> bool:
    """Does the page begin with such a line?"""
    return any("goals" in one["classes"] for one in document.findall(nodes.paragraph))


def end_of_opening(page: nodes.Element) -> int:
    """Where among the parts of a page its first section stands."""
    sections = [at for at, one in enumerate(page) if isinstance(one, nodes.section)]
    return sections[0] if sections else len(page)


class Opening(SphinxPostTransform):
    """The question as title, the chapter's name above it; what sets up, below the opening."""

    default_priority = 170  # after the cells have their final form
    formats = ("html",)

    def run(self, **options: object) -> None:
        title = self.document.next_node(nodes.title)
        place = places(self.env).get(self.env.docname)
        asked = question(self.env.docname, self.env.metadata[self.env.docname].get("card"))
        if not (title and place and asked and opens(self.document)):
            return
        name = plain_title(title.astext())
        minutes = str(count_file(Path(self.env.doc2path(self.env.docname))))
        number = nodes.strong("", place.number)
        parts = (number, nodes.Text(f" {name} "), nodes.inline("", minutes, classes=["minutes"]))
        above = nodes.paragraph("", "", *parts, classes=["chapter-name"])
        page = title.parent
        page.insert(page.index(title), above)
        title.children = [nodes.Text(asked)]
        for cell in [one for one in page if is_cell(one) and part(one, "output") is None][:1]:
            page.remove(cell)
            page.insert(end_of_opening(page), cell)


DIRECTIVES = {"goals": Goals}


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.chapter")
    app.add_post_transform(Opening)
    register(app, globals())
