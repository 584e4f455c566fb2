"""Numbers that go by chapter, as ``_toc.yml`` counts the chapters (tools/contents.py).

- The title of a chapter has its number in front, "6. Where is a token?", and that of a page in
  depth the number of its chapter.
- The second exercise of chapter 6 is Exercise 6.2, in its title and wherever ``{ref}`` or
  ``{numref}`` names its label. On a page that is no numbered chapter the count is plain: 1, 2, 3.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from tools.contents import Place, places_of

logger = logging.getLogger(__name__)


def places(env: BuildEnvironment) -> dict[str, Place]:
    return places_of(Path(env.srcdir).parent)


def chapter_number(env: BuildEnvironment, docname: str) -> str | None:
    """The number of a chapter; None for a page in depth and for any other page."""
    place = places(env).get(docname)
    return place.number if place and not place.deeper else None


class Titles(SphinxTransform):
    """Puts the number into the title before anything else reads it."""

    default_priority = 20

    def apply(self, **options: object) -> None:
        place = places(self.env).get(self.env.docname)
        title = self.document.next_node(nodes.title)
        if place and title is not None:
            first = title.next_node(nodes.Text)
            first.parent.replace(first, nodes.Text(place.titled(first.astext())))


def number_exercises(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Sphinx has counted through the book by now: put the chapter's number in front instead. Tables
    are counted where their page is known as it looks in the end (vitbook_folds.py)."""
    for docname, figures in env.toc_fignumbers.items():
        chapter = chapter_number(env, docname)
        first = () if chapter is None else (chapter,)
        exercises = figures.get("exercise", {})
        figures.pop("table", None)
        figures["exercise"] = {id_: (*first, at) for at, id_ in enumerate(exercises, 1)}
    return []


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_transform(Titles)
    app.connect("env-get-updated", number_exercises, priority=900)  # after Sphinx's own count
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
