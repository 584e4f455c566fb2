"""The search of the book: an index of its sections, in place of Sphinx's index of its pages.

While the pages are written, each section, claim, row of the notation and entry of the API becomes a
*place*: a link, a heading, the words below it. Code, its output, formulas on lines of their own
and answers are left out. ``_static/search/index.js`` then holds all places, as a script, because a
page that was opened as a file may load scripts and nothing else. ``_static/search/search.js`` asks.

A line in a page tells the search by which other words a section is looked for::

    ## Why the square root of d?

    % search: scaling factor, divide by sqrt(d), normalise the scores

Words that mean the same everywhere stand in ``search_words.json`` beside this file.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from website.theme.page import Page, each_page

SAME_WORDS = Path(__file__).with_name("search_words.json")
INDEX = "_static/search/index.js"
OF_SPHINX = ("searchtools.js", "language_data.js", "sphinx_highlight.js")  # nothing needs them now
NOT_INDEXED = {"Concept check", "What to read next"}
SHOWN = 48  # words of a place that a result can show
WORD = re.compile(r"[^\W\d_]{4,}|\b[A-Z]{2,3}\b")  # a word, or a name like CNN
KEYWORDS = re.compile(r"search: *(.+)", re.DOTALL)
CAPTION = re.compile(r"<figcaption.*?>(.*?)</figcaption>", re.DOTALL)
COMMAND = re.compile(r"\\(?:[A-Za-z]+|,)")
SILENT = {"solution", "cell_input", "cell_output", "predict-title", "predict-explained"}
SILENT |= {"claim-label", "claim-verdict", "in-depth-label", "change-log", "not-searched"}
SILENT |= {"minutes", "chapter-name", "page-checks"}
DIFFICULTY = re.compile(r"Difficulty [1-3] of 3, ")  # and minutes: the first line of an exercise
SILENT_NODES = (
    nodes.literal_block,
    nodes.math_block,
    nodes.comment,
    nodes.raw,
    nodes.colspec,
    addnodes.toctree,
)
SIGNS = {
    r"\times": "×",
    r"\cdot": "·",
    r"\to": "→",
    r"\approx": "≈",
    r"\,": " ",
    r"\top": "T",
    r"\omega": "ω",
    r"\lambda": "λ",
    r"\eta": "η",
    r"\varepsilon": "ε",
    r"\mu": "μ",
    r"\sigma": "σ",
    r"\Pi": "Π",
    r"\ln": "ln",
}


@dataclass
class Place:
    """What one hit leads to."""

    page: str
    anchor: str
    above: list[str]  # the headings above it on its page
    heading: str
    kind: str = "section"  # or claim, notation, api
    keywords: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def packed(self) -> list:
        """As it stands in the index, without the page. Of a long text only the beginning stands
        there as it is, then each word once that is new."""
        words = " ".join(self.words).split()
        shown, rest = words[:SHOWN], words[SHOWN:]
        known, new = ([word.lower() for word in WORD.findall(" ".join(of))] for of in (shown, rest))
        more = " ".join(word for word in dict.fromkeys(new) if word not in known)
        texts = [" ".join(shown), more, ", ".join(self.keywords)]
        return [self.anchor, " › ".join(self.above), self.heading, *texts, self.kind]


def places(page: str, tree: nodes.document) -> list[Place]:
    """All places of a page, in the order of the page."""
    found: list[Place] = []
    for section in tree.children:
        if isinstance(section, nodes.section):
            found += of_section(page, section, [])
    return found


def of_section(page: str, section: nodes.section, above: list[str]) -> Iterator[Place]:
    heading = said(section.next_node(nodes.title))
    if heading in NOT_INDEXED:
        return
    named = first(section, "chapter-name")
    if (
        named
    ):  # the title is the chapter's question: its number goes along, and its name is asked for
        heading = f"{named[0].astext()}. {heading}"
    here = Place(page, section["ids"][0], above, heading)
    own: list[Place] = []
    collect(section, here, own)
    if named:
        here.keywords.append(named[1].astext().strip())
    if goals := first(section, "goals"):
        here.words.append(said(goals))
    yield here
    yield from own
    for child in section.children:
        if isinstance(child, nodes.section):
            yield from of_section(page, child, [*above, heading])


def first(section: nodes.section, name: str) -> nodes.Element | None:
    """The first part of a section with this class."""
    return next((one for one in section.children if name in child_classes(one)), None)


def collect(node: nodes.Node, here: Place, own: list[Place]) -> None:
    """The words below a node go to `here`; what gets a place of its own goes to `own`."""
    below = [*here.above, here.heading]
    for child in node.children:
        if isinstance(child, nodes.title) or is_subsection(child):
            continue
        if isinstance(child, nodes.comment):
            if match := KEYWORDS.fullmatch(child.astext()):
                here.keywords.append(match[1])
        elif "claim" in child_classes(child):
            own.append(of_claim(here.page, child, below))
            here.words.append(own[-1].heading)
        elif isinstance(child, addnodes.desc):
            own += of_definition(here.page, child, below)
        elif here.page == "notation" and isinstance(child, nodes.row):
            own += of_row(here, child, below)
        elif isinstance(child, nodes.paragraph | nodes.term):
            if "goals" not in child_classes(child):  # no sentence to begin with: it comes last
                here.words.append(said(child))
        elif "cell_output" in child_classes(child):
            here.words += captions(child)
        elif not is_silent(child):
            collect(child, here, own)


def is_subsection(node: nodes.Node) -> bool:
    """What sphinx-exercise calls a section, the words of an exercise, is none."""
    return isinstance(node, nodes.section) and isinstance(node.parent, nodes.section)


def of_claim(page: str, box: nodes.Element, above: list[str]) -> Place:
    says = [node for node in box.findall(nodes.inline) if "claim-says" in node["classes"]]
    place = Place(page, box["ids"][0], above, said(says[0] if says else box[0]), "claim")
    for paragraph in box.findall(nodes.paragraph):
        if not says or says[0].parent is not paragraph:
            place.words.append(said(paragraph))
    return place


def of_definition(page: str, entry: addnodes.desc, above: list[str]) -> Iterator[Place]:
    """A function or class of the API, with its first paragraph."""
    signature = entry.next_node(addnodes.desc_signature)
    if signature and signature["ids"]:
        name = signature["ids"][0]
        first = entry.next_node(nodes.paragraph)
        words = [said(first)] if first else []
        heading = name.rpartition(".")[2]
        yield Place(page, name, above, heading, "api", [name.rpartition(".")[0]], words)


def of_row(here: Place, row: nodes.row, above: list[str]) -> Iterator[Place]:
    letter, *meaning = [said(cell) for cell in row.children]
    if isinstance(row.parent, nodes.tbody) and any(meaning):
        heading = f"{letter}: {meaning[0]}"
        yield Place(here.page, here.anchor, above, heading, "notation", [], meaning[1:])


def captions(output: nodes.Node) -> Iterator[str]:
    for raw in output.findall(nodes.raw):
        for caption in CAPTION.findall(raw.astext()):
            yield re.sub(r"<.*?>", "", caption)


def said(node: nodes.Node) -> str:
    """The words of a heading or a paragraph, a short formula among them."""
    if isinstance(node, nodes.math):
        return formula(node.astext())
    if isinstance(node, nodes.Text):
        return node.astext()
    if is_silent(node):
        return ""
    between = " " if isinstance(node, nodes.entry) else ""
    return between.join(said(child) for child in node.children).strip("\n")


def formula(tex: str) -> str:
    """A formula in plain signs; one that needs more than the simplest is three dots."""
    tex = re.sub(r"\\sqrt(\{d\}| d\b)", "√d", tex)
    tex = COMMAND.sub(lambda found: SIGNS.get(found[0], found[0]), tex)
    return "…" if "\\" in tex else re.sub(r"[{}]|\^(?=T)", "", tex)


def is_silent(node: nodes.Node) -> bool:
    known = type(node).__name__ == "solution_node"
    timed = isinstance(node, nodes.paragraph) and DIFFICULTY.match(node.astext())
    return (
        known or bool(timed) or isinstance(node, SILENT_NODES) or bool(SILENT & child_classes(node))
    )


def child_classes(node: nodes.Node) -> set[str]:
    return set(node.get("classes", ())) if isinstance(node, nodes.Element) else set()


def replace_search(app: Sphinx) -> None:
    """Sphinx makes neither its index nor its search page."""
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.search = False
    places_of(app).clear()


def places_of(app: Sphinx) -> dict[str, list[Place]]:
    """What is found while the pages are written, by page."""
    return app.__dict__.setdefault("vitbook_places", {})


def read(page: Page) -> None:
    scripts = page.context.get("script_files", [])
    scripts[:] = [one for one in scripts if "sphinx_highlight" not in str(one.filename)]
    if page.doctree is not None:
        places_of(page.app)[page.name] = places(page.name, page.doctree)


def search_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    yield "search", {}, "search.html"


def write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    index = {"same": json.loads(SAME_WORDS.read_text("utf-8")), "pages": []}
    for name, found in places_of(app).items():
        if found:
            uri = app.builder.get_target_uri(name)
            index["pages"].append([uri, *[place.packed() for place in found]])
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (folder / INDEX).parent.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).write_text(f"window.bookIndex={text};\n", encoding="utf-8")
    for name in OF_SPHINX:
        (folder / "_static" / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    app.add_js_file("search/search.js", loading_method="defer")
    app.connect("builder-inited", replace_search)
    each_page(app, read, priority=900)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
