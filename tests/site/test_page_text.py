"""What a page says before it is drawn: titles, numbers of tables, visible code, its own name."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup
from test_site import HTML, PAGES, ROOT, SETTINGS

from website.pages.contents import places_of

SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
RAW = re.compile(r"\$|\\[a-zA-Z(]|(?<!\w)\w_\w(?!\w)")  # a formula that was not set
PROOF = re.compile(r"^\s*(assert\b|assert_\w+\(|glue\()", re.MULTILINE)

pytestmark = pytest.mark.site


def code_aside(element):
    """The words of an element, without names of code."""
    words = BeautifulSoup(str(element), "html.parser")
    for one in words.select("code, script, style"):
        one.decompose()
    return words.get_text(" ")


def raw_titles(page):
    """Titles, in the head, the lists, the cards and the way on, that hold a formula's source."""
    lists = "title, nav, .book-header, .front-cards, .progress-box"
    said = [code_aside(one) for one in page.select(lists)]
    said += [one["data-chapters"] for one in page.select("[data-chapters]")]
    return [line.strip() for text in said for line in text.split("\n") if RAW.search(line)]


def numbers_apart(page, name):
    """The numbers of a page's tables, where they are not 1, 2, 3 behind the chapter's."""
    found = [one.get_text() for one in page.select("caption .caption-number")]
    place = places_of(ROOT).get(name.removesuffix(".html"))
    first = f"{place.number}." if place and not place.deeper else ""
    return found if found != [f"Table {first}{n}." for n in range(1, len(found) + 1)] else []


def proof_seen(page):
    """Code that only proves, and what it prints, where no fold hides it."""
    seen = []
    for cell in page.select(".cell"):
        if cell.find_parent(class_=["exercise", "solution"]):
            continue
        code = [one.get_text() for one in cell.select(".cell_input") if not folded(one)]
        seen += [text for text in code if PROOF.search(text)]
        printed = cell.select(".output.stream, .output.text_plain")
        named = [one.get_text() for one in cell.select("summary")]
        if not code and not any(text.lower().startswith("code of this output") for text in named):
            seen += [one.get_text() for one in printed if not folded(one)]
    return seen


def folded(element):
    return element.find_parent("details") is not None


@pytest.mark.parametrize("name", PAGES)
def test_titles_are_words_tables_have_one_numbering_proofs_are_folded_and_the_foot_names_the_page(
    name,
):
    text = SCRIPT.sub("", (HTML / name).read_text("utf8"))
    page = BeautifulSoup(text, "html.parser")
    assert raw_titles(page) == []
    assert numbers_apart(page, name) == []
    assert proof_seen(page) == []
    (link,) = page.select("footer .report-link")
    filled = parse_qs(urlsplit(link["href"]).query)
    assert link["href"].startswith(f"{SETTINGS.repository}/issues/new?")
    assert (filled["page"], filled["release"]) == ([name], [SETTINGS.version])


def test_headings_in_the_search_are_words():
    text = (HTML / "_static/search/index.js").read_text("utf8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    headings = {f"{place[1]} {place[2]}" for _, *places in index["pages"] for place in places}
    assert len(headings) > 300
    assert [one for one in headings if re.search(r"\$|\\[a-zA-Z(]", one)] == []
