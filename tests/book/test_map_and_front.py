"""The drawing of a whole ViT, the strip "you are here", and what a shared link says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from pygments.token import STANDARD_TYPES

from website.pages.contents import places_of
from website.pages.myst import front_matter
from website.syntax import vit_map
from website.syntax.drawing.places import ROWS, read_place
from website.theme import share

ROOT = Path(__file__).resolve().parents[2]

PAGES = {place.slug: page for page, place in places_of(ROOT).items() if not place.deeper}
CHAPTERS = [*PAGES]
PLACES = {
    n: read_place(n, front_matter(ROOT / "book" / f"{page}.md")["map"]) for n, page in PAGES.items()
}


def drawn(address, places=PLACES):
    return BeautifulSoup(vit_map.figure(address, places), "html.parser")


def test_both_layouts_link_to_every_chapter_by_its_name():
    page = drawn(lambda n: ("2b", f"page-{n}.html"))
    for links in (page.select("svg.vit-map-wide a"), page.select("svg.vit-map-tall a")):
        assert {link["href"] for link in links} == {f"page-{n}.html" for n in CHAPTERS}
        assert all(re.match(r"Chapter \d+b?: \S", link["aria-label"]) for link in links)


def test_a_chapter_that_is_missing_is_named_without_a_link():
    page = drawn(lambda n: None if n == "looking" else ("5", f"page-{n}.html"))
    wide = page.select_one("svg.vit-map-wide")
    assert "page-looking.html" not in str(wide)
    assert "look inside" in wide.get_text()


def boxes(svg):
    """Left, top, right and bottom of each link of a drawing."""
    for rect in svg.select("a rect.m-target"):
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        yield x, y, x + width, y + height


@pytest.mark.parametrize("layout", ["wide", "tall"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("change", [-1, 1, 2])
def test_a_row_with_a_chapter_less_or_more_is_drawn_without_two_links_in_one_place(
    layout, row, change
):
    of_row = [n for n, place in PLACES.items() if place.row == row]
    more = {f"new{at}": replace(PLACES[of_row[0]], label="a new part") for at in range(change)}
    less = {n: place for n, place in PLACES.items() if change > 0 or n != of_row[-1]}
    svg = drawn(lambda n: ("12b", n), less | more).select_one(f"svg.vit-map-{layout}")
    assert {link["href"] for link in svg.select("a")} >= {*more} | ({*of_row} & {*less})
    assert change > 0 or of_row[-1] not in str(svg)
    found = list(boxes(svg))
    for one, (left, top, right, bottom) in enumerate(found):
        assert right - 3 <= float(svg["width"])
        assert bottom <= float(svg["height"])
        for other in found[:one]:
            beside = left >= other[2] or right <= other[0]
            assert beside or top >= other[3] - 7 or bottom - 7 <= other[1]


def test_the_strip_colours_the_parts_of_its_chapter():
    page = BeautifulSoup(vit_map.you_are_here(PLACES["patches"], "../index.html#x"), "html.parser")
    here = {name.removeprefix("p-") for g in page.select("g.here") for name in g["class"]}
    assert here - {"part", "here"} == {"image", "linear"}
    assert page.select_one("p").get_text().startswith(f"You are here: {PLACES['patches'].words}.")


def test_no_style_of_ours_hits_the_words_of_code_by_accident():
    tokens = {name for name in STANDARD_TYPES.values() if name}
    for path in (ROOT / "website/theme/static").glob("*.css"):
        plain = re.sub(r"/\*.*?\*/|\([^)]*\)", "", path.read_text(), flags=re.DOTALL)
        alone = re.findall(r"(?:^|[{},])\s*\.([\w-]+)\s*(?=[{,])", plain)
        assert not tokens & set(alone), path.name


def test_a_formula_in_a_description_is_readable():
    paragraph = nodes.paragraph("", "So ")
    paragraph += nodes.math("", r"\operatorname{softmax}(QK^\top / \sqrt d)\, V")
    assert share.plain(paragraph) == "So softmax(QKᵀ / √d) V"


def test_a_description_ends_with_a_sentence_or_a_word():
    assert share.shortened("One. Two.") == "One. Two."
    long = "A sentence of some length. " * 12
    assert share.shortened(long.strip()).endswith("length.")
    assert share.shortened("word " * 80).endswith("word …")
    assert len(share.shortened("word " * 80)) <= share.LONGEST + 2


def directives(name, page):
    """(argument, options, body) of each directive of a page."""
    text = (ROOT / "book" / page).read_text("utf8")
    for found in re.finditer(rf"^```+\{{{name}\}} (.+)\n((?::.+\n)*)((?:.*\n)*?)```+$", text, re.M):
        yield found[1], dict(re.findall(r":([\w-]+): (.+)", found[2])), found[3]


ASKED = list(directives("predict", "index.md"))


@pytest.mark.parametrize(("name", "options", "body"), ASKED, ids=[one[0] for one in ASKED])
def test_a_guess_of_the_front_page_leads_to_its_claim_and_has_the_same_key(name, options, body):
    pages = [f"{page}.md" for page in places_of(ROOT)]
    verdicts = {id_: of["verdict"] for page in pages for id_, of, _ in directives("claim", page)}
    (claim,) = re.findall(r"<claim-([\w-]+)>", body.partition("+++")[2])
    verdict = verdicts[claim]
    assert options["answer"] == (verdict if verdict in ("true", "false") else "it depends")
