"""The numbers of chapters, and references to them, as ``_toc.yml`` counts: pages/contents.py.

The title of a chapter has its number in front, "6. Where is a token?", that of a page in depth the
number of its chapter. The second exercise of that chapter is "Exercise 6.2", in its title and
wherever ``{ref}`` names its label. On a page that is no numbered chapter the count is plain: 1, 2.

``{chapter}`looking` `` is a link "chapter 12". Other words hold ``{number}`` or ``{name}``:
``{chapter}`Chapter {number}, {name} <looking>` ``. In place of a page there may be a label, whose
page gives the number: ``{chapter}`chapter {number}, in depth <sec-looking-sinks>` ``.
"""

from pathlib import Path
from typing import cast

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

from website.pages.contents import CHAPTER, Place, chapter_called, places_of
from website.pages.number import TITLE
from website.syntax import in_depth
from website.syntax.shared import Later, Links, register
from website.theme.page import warn

KIND = "vitbook-chapter"


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
    are counted where their page is known as it looks in the end (folds.py)."""
    for docname, figures in env.toc_fignumbers.items():
        chapter = chapter_number(env, docname)
        first = () if chapter is None else (chapter,)
        exercises = figures.get("exercise", {})
        figures.pop("table", None)
        figures["exercise"] = {id_: (*first, at) for at, id_ in enumerate(exercises, 1)}
    return []


class ChapterRole(Later):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        words = self.title if self.has_explicit_title else CHAPTER
        return [self.later(KIND, self.target, nodes.inline("", words))], []

    @staticmethod
    def to_notebook(content: str, links: Links) -> str:
        text, target = links.split(content)
        page, address = chapter_called(target, links.places), ""
        if page is None:
            page, (_, address) = links.site.page_of(target), links.site.label(target)
        if page not in links.places:
            raise KeyError(f"no chapter and no label in one is called {target}")
        title, top = links.site.document(page)
        number, name = links.places[page].number, plain_title(title)
        words = (text or CHAPTER).format(number=number, name=name)
        here = page == links.document and not address
        return words if here else f"[{words}]({address or top})"


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """A link to the chapter or the label; words alone on the page itself, and where a build of a
    part of the book lacks the page."""
    if node["reftype"] != KIND:
        return None
    target, known = node["reftarget"], places(env)
    labels = cast(StandardDomain, env.get_domain("std")).anonlabels
    page, anchor = chapter_called(target, known), ""
    if page is None:
        page, anchor = labels.get(target, ("", ""))
    if page not in known:
        words = f"no chapter and no label in one is called {target!r}"
        warn(words, node)
        return nodes.inline("", target)
    there = page in env.titles
    name = plain_title(env.titles[page].astext()) if there else target
    words = content.astext().format(number=known[page].number, name=name)
    if not there or (page == node["refdoc"] and not anchor):
        return nodes.inline("", words)
    uri = app.builder.get_relative_uri(node["refdoc"], page) + (anchor and f"#{anchor}")
    return nodes.reference("", words, internal=True, refuri=uri)


def plain_title(title: str) -> str:
    """A title as its page has it, without the number."""
    return TITLE.sub("", in_depth.TITLE.sub("", title, count=1), count=1)


ROLES = {"chapter": ChapterRole()}


def setup(app: Sphinx) -> None:
    app.add_transform(Titles)
    register(app, globals())
    app.connect("missing-reference", resolve)
    app.connect("env-get-updated", number_exercises, priority=900)  # after Sphinx's own count
