"""The search of the built site: the right section first, from a disk, too, and by keyboard."""

import json
import re
from pathlib import Path

import pytest
from answerable import HTML, ROOT, VIEWS
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from test_site import OPTIONS, STILL

from website.pages.contents import places_of
from website.pages.moved import notebooks_in

HERE = Path(__file__).resolve().parent
QUERIES = json.loads((HERE / "search_queries.json").read_text("utf8"))
SHUT = json.loads((HERE / "search_queries_shut.json").read_text("utf8"))["queries"]
INDEX = HTML / "_static" / "search" / "index.js"
PAGE = "vit/hybrids.html"
PLACES = places_of(ROOT)
ENOUGH = 0.85  # the share of queries whose first hit must be right: 17 of 20

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture
def dialog(open_page):
    """dialog(words): a chapter with its search field open and these words in it."""

    def asked(words, **options):
        page = open_page(PAGE, **options)
        page.keyboard.press("Control+k")
        page.keyboard.type(words)
        page.wait_for_selector("#pst-search-dialog .search-asked [role=status]:not(:empty)")
        return page

    return asked


def test_a_hit_names_its_chapter_and_begins_with_a_sentence_of_its_own(dialog):
    hits = dialog("what the factor does for learning").locator("#pst-search-dialog .search-above")
    assert "2. Why divide by the square root of d?" in hits.all_inner_texts()
    found = json.loads(
        INDEX.read_text("utf8").removeprefix("window.bookIndex=").removesuffix(";\n")
    )
    first = {page: places[0] for page, *places in found["pages"]}
    for page in ("attention/scaled_dot_product", "attention/qk_merge", "vit/looking"):
        _, _, heading, text, *_ = first[f"{page}.html"]
        assert heading.startswith(f"{PLACES[page].number}. ")
        assert not re.match(r"\d|After it", text)


TIMES = """queries => queries.map(({query}) => Math.min(...[1, 2, 3].map(() => {
    const start = performance.now();
    window.bookSearch.search(query, 30);
    return performance.now() - start;
})))"""


def test_the_right_section_is_found_first_and_at_once_for_what_students_ask(open_page):
    page = open_page("search.html")
    page.wait_for_function("window.bookSearch")
    found = page.evaluate(
        """queries => queries.map(({query}) =>
            window.bookSearch.search(query, 3).hits.map(hit => hit.address))""",
        QUERIES,
    )
    wrong = [
        f"{query['query']}: {hits[:1]}"
        for query, hits in zip(QUERIES, found, strict=True)
        if hits[0] not in query["right"]
    ]
    assert len(wrong) <= (1 - ENOUGH) * len(QUERIES), wrong
    assert all(set(hits) & set(query["right"]) for query, hits in zip(QUERIES, found, strict=True))
    assert max(page.evaluate(TIMES, QUERIES)) < 20  # milliseconds


@pytest.mark.parametrize("queries", [QUERIES, SHUT], ids=["open", "shut"])
def test_the_sections_that_are_looked_for_exist(queries):
    for query in queries:
        for address in query["right"]:
            name, _, anchor = address.partition("#")
            assert f'id="{anchor}"' in (HTML / name).read_text("utf8") or not anchor, address


def test_the_index_is_light_and_waits_for_the_reader(open_page):
    assert INDEX.stat().st_size <= 400_000
    loaded = open_page(PAGE).evaluate("performance.getEntries().map(one => one.name)")
    assert not [url for url in loaded if url.endswith(("index.js", "engine.js"))]


def test_keys_and_clicks_lead_into_a_section_or_to_all_results(dialog):
    page = dialog("why divide by sqrt d")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/scaled_dot_product.html?found#why-the-square-root-of-d")
    page = dialog("combine convolution and attention")
    page.locator(".search-hits a[href*='hybrids']").first.click()  # on the same page
    assert not page.locator("#pst-search-dialog").evaluate("dialog => dialog.open")
    page = dialog("why divide by sqrt d")
    page.keyboard.press("Enter")  # the first hit
    page.wait_for_url("**/scaled_dot_product.html?found#why-the-square-root-of-d")
    page = dialog("attention")
    page.keyboard.press("ArrowUp")  # nothing above the field
    page.locator(".search-all").press("Enter")
    page.wait_for_url("**/search.html?q=attention")
    page.wait_for_selector(".search-hits li:nth-child(9)")


def test_on_the_page_that_is_the_best_hit_one_is_led_to_a_section(dialog):
    page = dialog("17. hybrids")  # the title
    links = page.locator(".search-hits a").evaluate_all("all => all.map(one => one.href)")
    assert page.url in links[1:]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{PAGE}?found#*")


TOLD = {
    "atention heatmap": "“atention” is not in the book; this is for “attention”.",
    "xylophone": "Nothing found for “xylophone”. “xylophone” is not in the book.",
    "rotary": "places",
}


def test_a_screen_reader_hears_what_was_found(dialog):
    page = dialog("attention")
    for asked, told in TOLD.items():
        page.locator("#pst-search-dialog input").fill(asked)
        expect(page.locator("#pst-search-dialog [role=status]")).to_contain_text(told)


@pytest.mark.parametrize("view", ["dark", "phone"])  # the widths differ, and the colours
def test_results_have_no_barriers(dialog, open_page, view):
    page = dialog("attention map", **VIEWS[view])
    page.add_style_tag(content=STILL)
    search = {"include": [["#pst-search-dialog"]]}  # test_site.py looks at the page below it
    assert Axe().run(page, context=search, options=OPTIONS).violations_count == 0
    page = open_page("search.html?q=attention+map", **VIEWS[view])
    page.wait_for_selector(".search-hits li")
    page.add_style_tag(content=STILL)
    assert Axe().run(page, context="main", options=OPTIONS).violations_count == 0


def test_words_for_the_search_stay_out_of_the_notebooks():
    notebooks = notebooks_in(HTML / "notebooks")
    assert notebooks
    assert not [path.name for path in notebooks if "% search" in path.read_text("utf8")]
