"""Numbers that go by chapter: those of exercises, and references to chapters.

- The second exercise of chapter 6 is Exercise 6.2, in its title and wherever ``{ref}`` or
  ``{numref}`` names its label. On a page that is no numbered chapter the count is plain: 1, 2, 3.
- ``{chapter}`12` `` links to chapter 12 where the table of contents has it. Until then it reads
  "chapter 12 (not yet written)". ``{chapter}`Chapter 12` `` begins a sentence.

A page is chapter 12 when its file is named so: ``12_looking.md``, and chapter 2b: ``02b_maps.md``.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.typing import ExtensionMetadata

from tools.pages.number import PATTERN, Number, number_of, read_number

logger = logging.getLogger(__name__)

FILE = re.compile(rf"(?:.*/)?{PATTERN}_[^/]+")
REFERENCE = re.compile(r"(?:([Cc]hapter) )?(\d+[a-z]?)")
NOT_YET = "(not yet written)"  # tools/notebook_export/roles.py says the same in the notebooks


def chapter_number(docname: str) -> Number | None:
    match = FILE.fullmatch(docname)
    return number_of(match) if match else None


class ChapterRole(SphinxRole):
    """Leaves a reference that `resolve` fills in when the titles of all pages are known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = REFERENCE.fullmatch(self.text)
        if match is None:
            words = f"chapter {self.text!r}: write {{chapter}}`12` or {{chapter}}`Chapter 12`"
            logger.warning(words, location=self.get_location(), type="vitbook")
            return [nodes.Text(self.text)], []
        word, number = match[1] or "chapter", read_number(match[2])
        node = pending_xref(
            "",
            nodes.inline("", f"{word} {number}"),
            refdoc=self.env.docname,
            refdomain="",
            reftype="vitbook-chapter",
            reftarget=str(number),
            refexplicit=False,
        )
        self.set_source_info(node)
        return [node], []


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """A link to the chapter, or the words that say it is to come."""
    if node["reftype"] != "vitbook-chapter":
        return None
    number, words = read_number(node["reftarget"]), content.astext()
    pages = [name for name in sorted(env.found_docs) if chapter_number(name) == number]
    if not pages:
        return nodes.inline("", f"{words} {NOT_YET}", classes=["chapter-to-come"])
    title = env.titles[pages[0]].astext()
    title = re.sub(rf"^{number}\. ", "", title)
    uri = app.builder.get_relative_uri(node["refdoc"], pages[0])
    return nodes.reference("", f"{words}, {title}", internal=True, refuri=uri)


def number_exercises(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Sphinx has counted through the book by now: put the chapter's number in front instead. Tables
    are counted where their page is known as it looks in the end (vitbook_folds.py)."""
    for docname, figures in env.toc_fignumbers.items():
        chapter = chapter_number(docname)
        first = () if chapter is None else (chapter,)
        exercises = figures.get("exercise", {})
        figures.pop("table", None)
        figures["exercise"] = {id_: (*first, at) for at, id_ in enumerate(exercises, 1)}
    return []


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_role("chapter", ChapterRole())
    app.connect("missing-reference", resolve)
    app.connect("env-get-updated", number_exercises, priority=900)  # after Sphinx's own count
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
