"""Where the reader is, and where to go: the header, the list of pages and the end of each page.

The templates ``header.html``, ``pages.html`` and ``way-on.html`` draw what is said here; what
depends on the reader (the section in sight, the minutes left, ticks) is ``_static/place/place.js``.

- Numbers and parts come from ``_toc.yml``, minutes from `counts`, the question of a chapter
  from its card, that of a page in depth from the box at its top.
- The list shows the sections of the open page, and the pages below a chapter only where that
  chapter, or one of them, is open.
- The way on leads from a chapter, and from the pages below it, to the next chapter. Pages in depth
  are cards above it. Any other page leads to the one that follows in ``_toc.yml``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from website.pages.contents import outline
from website.pages.counts import count_file, sections
from website.pages.source import read_chapter
from website.syntax.cards import question
from website.syntax.chapter import places, plain_title
from website.theme.page import Page, each_page


@dataclass(frozen=True)
class Section:
    address: str
    words: str  # HTML
    minutes: float | None = None  # of reading
    do: int = 0  # of exercises


@dataclass(frozen=True)
class Entry:
    """A page as the list, the header and the way on name it."""

    page: str
    number: str = ""
    title: str = ""
    part: str = ""
    question: str = ""
    deeper: bool = False
    minutes: int | None = None
    below: list[Entry] = field(default_factory=list)


class Course:
    """What all pages know of each other, in the book's order."""

    def __init__(self, app: Sphinx) -> None:
        self.app, self.env = app, app.env
        self.root = Path(app.srcdir).parent
        self.places = places(app.env)

    def source(self, page: str) -> Path:
        return Path(self.env.doc2path(page))

    @cached_property
    def parts(self) -> list[tuple[str, list[Entry]]]:
        """The parts whose pages this build has."""
        found = []
        for caption, pages in outline(self.root):
            timed = any(one[0] in self.places for one in pages)
            there = [[page for page in one if page in self.env.found_docs] for one in pages]
            entries = [
                self.entry(page, caption, timed, below) for page, *below in filter(None, there)
            ]
            found.append((caption, entries))
        return [(caption, entries) for caption, entries in found if entries]

    @cached_property
    def entries(self) -> dict[str, Entry]:
        each = [entry for _, entries in self.parts for entry in entries]
        return {one.page: one for entry in each for one in (entry, *entry.below)}

    @cached_property
    def chapters(self) -> list[Entry]:
        return [one for one in self.entries.values() if one.number and not one.deeper]

    def entry(self, page: str, part: str, timed: bool, below: list[str]) -> Entry:
        place = self.places.get(page)
        deeper = bool(place and place.deeper)
        card = self.env.metadata[page].get("card")
        title = plain_title(self.env.titles[page].astext())
        return Entry(
            page,
            number=place.number if place else "",
            title=title[:1].upper() + title[1:] if deeper else title,
            part=part,
            question=self.deeper_question(page) if deeper else question(page, card),
            deeper=deeper,
            minutes=count_file(self.source(page)).read if timed else None,
            below=[self.entry(one, part, timed, []) for one in below],
        )

    def deeper_question(self, page: str) -> str:
        boxes = read_chapter(page, self.source(page)).directives("in-depth")
        return " ".join(boxes[0].directive.body) if boxes else ""

    def owner(self, page: str) -> Entry:
        """The page itself, or the one that it stands below."""
        above = (one for one in self.entries.values() if self.entries[page] in one.below)
        return next(above, self.entries[page])

    def sections(self, page: str) -> list[Section]:
        """Before the first section, and each section of a page."""
        builder = self.app.builder
        assert isinstance(builder, StandaloneHTMLBuilder)
        contents = self.env.tocs[page]
        links = [item.next_node(nodes.reference) for item in list_items(contents)]
        timed = self.entries[page].minutes is not None
        shared = sections(read_chapter(page, self.source(page))) if timed else []
        if timed and len(shared) != len(links) + 1:
            raise ValueError(
                f"{page}: {len(links)} sections on the page, {len(shared) - 1} counted"
            )
        takes: list[tuple[float | None, int]] = [*shared] or [(None, 0)] * (len(links) + 1)
        found = [Section("", "", *takes[0])]
        for link, each in zip(links, takes[1:], strict=True):
            words = "".join(builder.render_partial(node)["fragment"] for node in link.children)
            found.append(Section(link["anchorname"], words.strip(), *each))
        return found

    def way_on(self, page: str) -> tuple[Entry | None, Entry | None]:
        """The pages before and after this one."""
        here = self.owner(page)
        row = self.chapters if here in self.chapters else list(self.entries.values())
        if row[-1:] == [here]:  # after the last chapter come the other pages
            row = [one for one in self.entries.values() if not one.deeper]
        at = row.index(here if here in self.chapters else self.entries[page])
        before = (
            here if here in self.chapters and page != here.page else row[at - 1] if at else None
        )
        return before, row[at + 1] if at + 1 < len(row) else None


def list_items(contents: nodes.Node) -> list[nodes.list_item]:
    """The sections of a page in Sphinx's list of its headings, those below them left out."""
    page = contents.next_node(nodes.list_item)
    inner = [one for one in page.children if isinstance(one, nodes.bullet_list)] if page else []
    items = inner[0].children if inner else []
    return [one for one in items if isinstance(one, nodes.list_item)]


def describe(page: Page) -> None:
    """What the templates know."""
    context = page.context
    course: Course = page.app.__dict__.setdefault("vitbook_course", Course(page.app))
    context["course"] = course
    context["here"] = here = course.entries.get(page.name)
    context["opened"] = context["before"] = context["after"] = None
    if here is None:
        return
    context["opened"] = course.owner(page.name)
    context["sections"] = course.sections(page.name)
    context["before"], context["after"] = course.way_on(page.name)
    for name, entry in (("prev", context["before"]), ("next", context["after"])):
        context[name] = entry and {"link": context["pathto"](entry.page), "title": entry.title}


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.chapter")
    app.add_css_file("place/place.css", priority=850)
    app.add_js_file("place/kept.js", priority=100, loading_method="defer")
    app.add_js_file("place/place.js", priority=850, loading_method="defer")
    each_page(app, describe)
