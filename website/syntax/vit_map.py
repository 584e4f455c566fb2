"""One drawing of a whole Vision Transformer, and "you are here" at the head of each chapter.

    ```{vit-map}
    ```

draws it with a link to each chapter: from left to right where there is room, from top to bottom on
a phone. The line ``map`` in front of each chapter (drawing/places.py) puts a strip below its title,
too, with the chapter's parts in colour and named; it leads back to the drawing.
"""

import base64
import html
import io
from functools import cache
from pathlib import Path
from typing import cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.util.docutils import SphinxDirective

from website.pages.myst import front_matter
from website.photograph import dahlia
from website.syntax.chapter import places
from website.syntax.drawing.places import Place, read_place
from website.syntax.drawing.shapes import Address
from website.syntax.drawing.strip import strip
from website.syntax.drawing.tall import tall
from website.syntax.drawing.wide import wide
from website.syntax.goals import end_of_opening, opens
from website.syntax.shared import on_the_site, register
from website.theme.page import warn

LABEL = "whole-vit"  # of the section with the drawing
WORDS = (
    "From an image to an answer: the image is cut into patches, a linear map makes a token of "
    "each, a class token joins them, positions are added. The tokens run straight through a "
    "block, L times; two branches leave them and are added again, norm and attention, then norm "
    "and MLP. The head reads the answer from one token. Each number leads to a chapter."
)


class vit_map(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """Stands for the drawing until all pages are known."""


class VitMap(SphinxDirective):
    to_notebook = staticmethod(on_the_site("The drawing of the whole model"))

    def run(self) -> list[nodes.Node]:
        return [vit_map()]


@cache
def flower(side: int = 216) -> str:
    """A photograph as a data address: a dahlia, cut to a square."""
    whole = dahlia()
    square = whole.crop((100, 0, 100 + whole.height, whole.height)).resize((side, side))
    file = io.BytesIO()
    square.save(file, "JPEG", quality=72)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def figure(address: Address, of_chapters: dict[str, Place]) -> str:
    """The HTML of the drawing."""
    drawn = (layout(address, of_chapters, flower()) for layout in (wide, tall))
    return (
        f'<figure class="vit-map">{"".join(drawn)}'
        f'<figcaption class="visually-hidden" id="vit-map-words">{WORDS}</figcaption></figure>'
    )


def you_are_here(place: Place, uri: str | None) -> str:
    """The HTML of the strip; ``uri`` is where the whole drawing is."""
    words = f'<span class="vit-strip-here">You are here:</span> {html.escape(place.words)}'
    more = f' <a href="{html.escape(uri)}">Whole map</a>' if uri else ""
    return f'<div class="vit-strip">{strip(place)}<p>{words}.{more}</p></div>'


def place_of(page: str, chapter: str, line: object) -> Place | None:
    """Where the drawings have a chapter; a warning, and so no site, if its page does not say so."""
    try:
        return read_place(chapter, line)
    except ValueError as error:
        warn(str(error), page)
        return None


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    env, builder = app.env, app.builder
    known = {place.slug: place for place in places(env).values() if not place.deeper}

    def address(chapter: str) -> tuple[str, str] | None:
        place = known.get(chapter)
        if place is None or place.chapter not in env.found_docs:
            return None
        return place.number, builder.get_relative_uri(docname, place.chapter)

    for node in list(doctree.findall(vit_map)):
        pages = {n: Path(env.srcdir) / f"{place.chapter}.md" for n, place in known.items()}
        of = {n: place_of(docname, n, front_matter(page).get("map")) for n, page in pages.items()}
        drawn = figure(address, {n: place for n, place in of.items() if place})
        node.replace_self(nodes.raw("", drawn, format="html"))
    numbered = places(env).get(docname)
    if numbered is None or numbered.deeper:
        return
    here = place_of(docname, numbered.slug, env.metadata[docname].get("map"))
    title = doctree.next_node(nodes.title)
    if here and title is not None:
        labels = cast(StandardDomain, env.get_domain("std")).anonlabels
        home, anchor = labels.get(LABEL, ("", ""))
        uri = f"{builder.get_relative_uri(docname, home)}#{anchor}" if home else None
        parent = title.parent
        strip_ = nodes.raw("", you_are_here(here, uri), format="html")
        below = end_of_opening(parent) if opens(doctree) else parent.index(title) + 1
        parent.insert(below, strip_)


DIRECTIVES = {"vit-map": VitMap}


def setup(app: Sphinx) -> None:
    app.add_node(vit_map)
    register(app, globals())
    app.connect("doctree-resolved", resolve)
