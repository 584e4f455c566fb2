"""What the front page is made of: the way in, the cards of the chapters, and their pictures.

    ```{start} preview ready
    ```

makes two buttons, each with the page's minutes, and says how many hours the whole course takes. To
who comes back ``front/back.js`` shows instead where they were; it is part of the page, because
nothing may move when it comes.

    ```{chapter-cards}
    I | Attention | From a weighted average to many heads.
    ```

makes a grid of parts and chapters, in the order of ``_toc.yml``. A line is a part. A chapter says
in its own front matter

    card: Why look back instead of remembering? | 4 | 10 5 90 95 photo

which are its question, the figure of the page that stands on the card (the first is 1), and in per
cent what of the figure is shown (left, top, right, bottom; without them, all of it). ``photo``: not
to be inverted for the dark theme. Titles, minutes and hours come from the pages. ``cards.py``
reads the lines, and cuts the pictures when the pages are written.

    ```{train-still} cut-digits
    ```

draws what the recorded runs of an experiment of the page "Train one here" knew right before its cut
and an update later, a line for each, and leaves what becomes of them to the page.

The page loads ``front/front.css``.
"""

import html
import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from website.pages.counts import Counts, count_file, hours
from website.syntax.cards import SIZE, Card, Part, cut_pictures, picture_name, read_card, read_parts
from website.syntax.chapter import places, plain_title
from website.syntax.place import Course
from website.syntax.shared import BookDirective, Notebook, Written, on_the_site, register
from website.theme.page import Page, each_page, warn
from website.theme.site import STATIC

RUNS = STATIC.parents[1] / "live/train-record.json"
BUTTONS = ("Start", "Am I ready?")


class front(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """Stands for buttons (``pages``) or cards (``parts``) until all pages are known."""


class Start(SphinxDirective):
    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # website/build/render.py
        return [front(pages=self.arguments)]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        links = [f"{{doc}}`{name}`" for name in written.argument.split()]
        return notebook.text(" · ".join(links), written.line)


class ChapterCards(BookDirective):
    required_arguments = 0
    to_notebook = staticmethod(on_the_site("The list of chapters"))

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        try:
            return [front(parts=read_parts(list(self.content)))]
        except ValueError as error:
            self.warn(str(error))
            return []


class TrainStill(BookDirective):
    """A drawing with a link, in the page itself: its colours are those of the theme."""

    to_notebook = staticmethod(on_the_site("A drawing of recorded runs"))

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RUNS))
        recorded = json.loads(RUNS.read_text("utf8"))[self.arguments[0]]["percent"]
        before, after = ([run[at] for run in recorded] for at in (0, 1))
        words = (
            f"Train one here: right answers of {len(recorded)} models. Before their attention is "
            f"cut: {min(before)} to {max(before)} %. An update later: {min(after)} "
            f"to {max(after)} %. What becomes of them is a question."
        )
        runs = zip(before, after, strict=True)
        lines = "".join(f"M130 {110 - a}L170 {110 - b}" for a, b in runs)
        made = (
            f'<a class="front-still" href="train.html"><svg viewBox="0 0 320 140" role="img" '
            f'aria-label="{words}"><path class="still-axis" d="M10 10V110H310M150 4V110"/>'
            f'<path class="still-runs" d="{lines}"/>'
            f'<path class="still-open" d="M174 {110 - max(after)}C220 40 250 20 306 '
            f'{110 - max(before)}M174 {110 - min(after)}H306"/>'
            f'<text x="122" y="{110 - min(before)}" text-anchor="end">{min(before)} to '
            f'{max(before)} % right</text><text x="240" y="66" class="still-ask">?</text>'
            f'<text x="150" y="130" class="still-cut">attention is cut</text></svg></a>'
        )
        return [nodes.raw("", made, format="html")]


class Pages:
    """The chapters that this build has: page names, titles, minutes."""

    def __init__(self, app: Sphinx, docname: str) -> None:
        self.app, self.docname = app, docname
        known = {page: place for page, place in places(app.env).items() if not place.deeper}
        there = [page for page in known if page in app.env.found_docs]
        self.names = {known[page].slug: page for page in there}  # in the book's order
        self.numbers: dict[str, str] = {known[page].slug: known[page].number for page in there}
        self.parts = {known[page].slug: known[page].part for page in there}

    def uri(self, name: str) -> str:
        return html.escape(self.app.builder.get_relative_uri(self.docname, name))

    def path(self, name: str) -> Path:
        return Path(self.app.env.doc2path(name))

    def title(self, chapter: str) -> str:
        return html.escape(plain_title(self.app.env.titles[self.names[chapter]].astext()))

    def hours(self, chapters: list[str]) -> str:
        return hours([self.path(self.names[n]) for n in chapters])


def buttons(pages: Pages, names: list[str]) -> str:
    """Two links that look like buttons, and the hours of the whole course."""
    links = [
        f'<a class="front-button" href="{pages.uri(name)}">{words} '
        f"<span>{count_file(pages.path(name)).read} min</span></a>"
        for words, name in zip(BUTTONS, names, strict=True)
        if name in pages.app.env.found_docs
    ]
    chapters = list(pages.names)
    total = f"{len(chapters)} chapters, {pages.hours(chapters)} hours with all exercises. "
    return (
        f'<p class="front-start">{"".join(links)}</p><p class="front-who">{total}'
        "For you if you know Python, linear algebra and a little PyTorch. No GPU. Free.</p>"
        + come_back(pages)
    )


def come_back(pages: Pages) -> str:
    """A box for who comes back, the chapters that it tells of, and the scripts that fill it."""
    course = Course(pages.app)
    keys = ("page", "number", "title", "question", "part", "minutes")
    told = [{key: getattr(one, key) for key in keys} for one in course.chapters]
    data = html.escape(json.dumps(told, ensure_ascii=False))
    scripts = "".join(
        (STATIC / name).read_text("utf8") for name in ("place/kept.js", "front/back.js")
    )
    data = f'data-chapters="{data}"'
    return f'<div class="front-back" {data} hidden></div>\n<script>\n{scripts}</script>'


def grid(pages: Pages, parts: list[Part]) -> tuple[str, list[Card]]:
    """The list of parts and cards, and the cards; what this build lacks is left out."""
    cards, entries = [], []
    for chapter, name in pages.names.items():
        try:
            cards.append(read_card(chapter, pages.app.env.metadata[name].get("card")))
        except ValueError as error:
            warn(str(error), name)
    counts = {one.chapter: count_file(pages.path(pages.names[one.chapter])) for one in cards}
    longest = max((one.read + one.do for one in counts.values()), default=1)
    for one in parts:
        own = [each for each in cards if pages.parts[each.chapter] == one.caption]
        entries.append(part(pages, one, [each.chapter for each in own]))
        entries += [card(pages, each, counts[each.chapter], longest) for each in own]
    for caption in {pages.parts[one.chapter]: 0 for one in cards}:
        if caption not in {one.caption for one in parts}:
            words = f"the cards need a line for {caption!r}: number | title | words"
            warn(words, pages.docname)
    return f'<ul class="front-cards">{"".join(entries)}</ul>', cards


def part(pages: Pages, entry: Part, chapters: list[str]) -> str:
    told = ""
    if chapters:
        first, last = (pages.numbers[chapters[at]] for at in (0, -1))
        which = f"Chapter {first}" if first == last else f"Chapters {first} to {last}"
        hours = pages.hours(chapters)
        told = f"<p>{which}<br>about {hours} {'hour' if hours == '1' else 'hours'}</p>"
    return (
        f'<li class="front-part"><h3><span>{entry.sign}</span> {html.escape(entry.title)}</h3>'
        f"<p>{html.escape(entry.words)}</p>{told}</li>"
    )


def card(pages: Pages, entry: Card, minutes: Counts, longest: int) -> str:
    width, height = SIZE
    images = "".join(
        f'<img class="only-{theme}" src="_images/{picture_name(entry.chapter, theme)}" alt="" '
        f'loading="lazy" width="{width}" height="{height}">'
        for theme in ("light", "dark")
    )
    read, do = (f"{100 * n / longest:.0f}%" for n in (minutes.read, minutes.do))
    number = pages.numbers[entry.chapter]
    return (
        f'<li class="front-card"><div class="front-picture" aria-hidden="true">{images}</div>'
        f'<div class="front-words"><p class="front-title"><span class="front-tile">{number}'
        f"</span> {pages.title(entry.chapter)}</p>"
        f'<p class="front-question"><a href="{pages.uri(pages.names[entry.chapter])}">'
        f"{html.escape(entry.question)}</a></p>"
        f'<p class="front-minutes"><span class="front-bar" aria-hidden="true">'
        f'<i style="width:{read}"></i><i style="width:{do}"></i></span>'
        f"{minutes.read} read + {minutes.do} do min</p></div></li>"
    )


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(front)):
        pages = Pages(app, docname)
        if "pages" in node:
            made = buttons(pages, node["pages"])
        else:
            made, cards = grid(pages, node["parts"])
            of_pages = [(one, f"{pages.names[one.chapter]}.html") for one in cards]
            app.__dict__["vitbook_cards"] = of_pages
        node.replace_self(nodes.raw("", made, format="html"))


def load(page: Page) -> None:
    if page.doctree is not None and 'class="front-start"' in page.context.get("body", ""):
        page.app.add_css_file("front/front.css")


def pictures(app: Sphinx, exception: Exception | None) -> None:
    """When all pages are written, in whatever form their figures are by then."""
    if exception is None:
        for told in cut_pictures(Path(app.outdir), getattr(app, "vitbook_cards", [])):
            warn(told)


DIRECTIVES = {"start": Start, "chapter-cards": ChapterCards, "train-still": TrainStill}


def setup(app: Sphinx) -> None:
    app.add_node(front)
    register(app, globals())
    app.connect("doctree-resolved", resolve)
    each_page(app, load)
    app.connect("build-finished", pictures, priority=900)
