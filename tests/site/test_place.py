"""Where the reader is, and where to go: header, list of pages, the way on, and who comes back."""

import json
import re
from functools import cache

import pytest
from answerable import HTML, KEY, ROOT
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from test_site import OPTIONS, STILL

from website.pages.contents import places_of
from website.pages.counts import count_file
from website.pages.myst import front_matter
from website.syntax.cards import read_card

PLACES = places_of(ROOT)
CHAPTERS = [page for page, place in PLACES.items() if not place.deeper]
QUESTIONS = {
    page: read_card(page, front_matter(ROOT / "book" / f"{page}.md")["card"]).question
    for page in CHAPTERS
}
CHAPTER = "vit/looking"
NEXT = CHAPTERS[CHAPTERS.index(CHAPTER) + 1]
NUMBER = PLACES[CHAPTER].number
OF = f"Chapter {NUMBER}"  # as the header says it: not of how many, for one is 2b
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
ROUNDING = 0.5

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture
def reader(open_page, address):
    """reader(name, **context): the page; what it keeps lasts for the test."""
    return lambda name=CHAPTER, **options: open_page(f"{address}/{name}.html", **options)


@cache
def soup(page, start):
    """What begins so in a page, up to its end: a whole page takes seconds."""
    text = (HTML / f"{page}.html").read_text("utf8")
    return BeautifulSoup(re.search(rf"{start}.*?</nav>", text, re.DOTALL)[0], "html.parser")


@cache
def minutes_of(name):
    return count_file(ROOT / "book" / f"{name}.md").read


def kept(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{KEY}')") or "{}")


def keep(page, **state):
    page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, json.dumps(state)])


@pytest.mark.parametrize("page", PLACES)
def test_next_is_the_next_chapters_question_and_what_goes_deeper_is_a_card(page):
    chapter = PLACES[page].chapter
    at = CHAPTERS.index(chapter)
    found = soup(page, '<nav class="way-on')
    deeper = [one for one, place in PLACES.items() if place.deeper and place.chapter == chapter]
    cards = {card["href"] for card in found.select(".way-deeper a")}
    assert {href.rpartition("/")[2] for href in cards} == {
        f"{one.rpartition('/')[2]}.html" for one in deeper if one != page
    }
    if after := CHAPTERS[at + 1 : at + 2]:
        link = found.select_one(".way-next")
        assert link["href"].endswith(f"{PLACES[after[0]].slug}.html")
        assert link.select_one(".way-title").text == QUESTIONS[after[0]]
        head = (HTML / f"{page}.html").read_text("utf8").partition("</head>")[0]
        assert re.search(rf'<link rel="next"[^>]*href="{re.escape(link["href"])}"', head)
    else:
        assert not found.select(".way-next")


@pytest.mark.parametrize("page", [*CHAPTERS, "notation", "vit/looking_depth_draw"])
def test_the_list_has_each_chapters_minutes_and_what_is_below_the_open_one_alone(page):
    pages = soup(page, '<nav id="book-pages"')
    found = {
        item["data-page"]: item.a.select_one(".pages-minutes")
        for item in pages.select("li[data-page]")
    }
    told = {name: int(one.contents[0]) for name, one in found.items() if one}
    opened = PLACES[page].chapter if page in PLACES else ""
    below = [one for one, place in PLACES.items() if place.deeper and place.chapter == opened]
    assert {one for one in told if PLACES.get(one) and PLACES[one].deeper} == set(below)
    assert {*CHAPTERS} <= {*told}
    for name, minutes in told.items():
        assert minutes == minutes_of(name), name
    shared = [float(one["data-minutes"]) for one in pages.select("[data-minutes]")]
    assert sum(shared) == pytest.approx(told.get(page, 0), abs=ROUNDING)


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_the_header_says_where_one_is_and_how_long_it_still_takes(reader, width):
    page = reader(viewport={"width": width, "height": 800})
    header, minutes = page.locator(".book-header"), page.locator(".header-minutes")
    assert header.inner_text().replace("\n", " ").count(OF if width > 576 else NUMBER) == 1
    assert minutes.inner_text() == "30 min left"
    page.evaluate("document.getElementById('near-and-far').scrollIntoView()")
    page.evaluate(SETTLED)
    assert 20 <= int(minutes.inner_text().split()[0]) < 30
    if width > 576:
        assert OF not in header.inner_text()
        assert header.inner_text().replace("\n", " ").rstrip().count("Near and far") == 1
        assert page.locator(".header-question").is_visible() == (width >= 992)
    told = [minutes.inner_text() for _ in read_on(page)]
    seen = [int(one.split()[0]) for one in told if one.endswith("left")]
    assert f"exercises {count_file(ROOT / 'book' / f'{CHAPTER}.md').do} min" in told
    assert seen == sorted(seen, reverse=True)  # it never takes longer again
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for part in (".header-search", ".theme-switch-button", ".header-minutes", ".logo__mark"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.locator(".pages-toggle").is_visible() == (width < 992)


MARKED = "#book-pages [aria-current=location]"


def test_the_section_in_sight_is_marked_the_first_and_the_last_too(reader):
    page = reader()
    assert page.locator(MARKED).count() == 0  # nothing of the first is seen yet
    for name, words in (("near-and-far", "Near and far"), ("summary", "Summary")):
        page.evaluate(f"document.getElementById('{name}').scrollIntoView()")
        page.evaluate(SETTLED)
        assert page.locator(MARKED).all_inner_texts() == [words]
        box, room = page.locator(MARKED).bounding_box(), page.locator("#book-pages").bounding_box()
        assert room["y"] <= box["y"]
        assert box["y"] + box["height"] <= room["y"] + room["height"]
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.evaluate(SETTLED)
    assert page.locator(MARKED).all_inner_texts() == ["What to read next"]


def read_on(page):
    """From the top to the bottom, which moves away while figures come."""
    page.evaluate("scrollTo(0, 0)")
    while True:
        page.evaluate(SETTLED)
        yield
        if page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 1"):
            return
        page.evaluate("scrollBy(0, 600)")


def test_who_reads_to_the_end_has_a_tick_and_who_jumps_there_has_none(reader, address):
    page = reader()
    page.evaluate("document.getElementById('summary').scrollIntoView()")
    page.evaluate(SETTLED)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.evaluate(SETTLED)
    assert "done" not in kept(page)
    assert page.locator("#book-pages .is-done").count() == 0
    assert len([*read_on(page)]) > 10
    assert "done" not in kept(page)  # nobody reads so fast
    page.goto(f"{address}/notation.html")
    keep(page, spent={CHAPTER: 60_000 * minutes_of(CHAPTER) / 2})
    page.goto(f"{address}/{CHAPTER}.html")
    assert len([*read_on(page)]) > 10
    assert kept(page)["done"] == {CHAPTER: True}
    assert page.locator(".header-minutes").inner_text() == "✓ read"
    ticked = "all => all.map(one => one.dataset.page)"
    assert page.locator("#book-pages .is-done").evaluate_all(ticked) == [CHAPTER]
    button = page.get_by_role("button", name="Read to the end")
    button.click()  # not true: taken back
    assert kept(page)["done"] == {}
    assert page.locator("#book-pages .is-done").count() == 0
    page.goto(f"{address}/notation.html")
    keep(page, done={NEXT: True})
    page.reload()
    assert page.locator("#book-pages .is-done").evaluate_all(ticked) == [NEXT]


def test_who_comes_back_finds_place_minutes_what_was_left_out_and_how_to_forget_it(reader, address):
    page = reader("index")
    assert page.locator("a.front-button", has_text="Start").is_visible()
    assert not page.locator(".front-back").is_visible()
    page.goto(f"{address}/{CHAPTER}.html")
    left_out = "attention/weight_sharing"
    before = CHAPTERS[: CHAPTERS.index(CHAPTER)]
    keep(page, done={one: True for one in before if one != left_out}, read=True)
    page.reload()
    page.evaluate("document.getElementById('cut-one-arrow').scrollIntoView()")
    page.evaluate(SETTLED)
    left = page.locator(".header-minutes").inner_text().split()[0]
    ids = page.locator("section:has(> h2)").evaluate_all("all => all.map(one => one.id)")
    page.goto(f"{address}/index.html")
    back = page.locator(".front-back")
    said = " ".join(back.inner_text().split())
    where = f"Cut one arrow section {ids.index('cut-one-arrow') + 1} of {len(ids)},"
    assert said.startswith(f"You were here today, in {NUMBER} Looking at attention {where}")
    assert f"{left} of 30 minutes left" in said
    assert f"{len(before) - 1} of {len(CHAPTERS)} chapters read." in said
    assert f"Left out on the way: {PLACES[left_out].number}, One" in said
    assert not page.locator("a.front-button", has_text="Start").is_visible()
    assert page.locator("#live-cut-front").is_visible()  # the figure stays
    back.get_by_role("link", name="Go on").click()
    page.wait_for_url(f"{address}/{CHAPTER}.html#cut-one-arrow")
    page.goto(f"{address}/index.html")
    page.once("dialog", lambda dialog: dialog.accept())
    back.get_by_role("button", name="Forget where I was").click()
    assert not back.is_visible()
    assert page.locator("a.front-button", has_text="Start").is_visible()
    assert not {"last", "done", "seen", "spent"} & {*kept(page)}


def test_who_finished_a_chapter_is_led_to_the_next_question(reader):
    page = reader("index")
    keep(
        page,
        done={CHAPTER: True},
        last={"page": CHAPTER, "title": f"{NUMBER}. Looking", "anchor": ""},
    )
    page.reload()
    back = page.locator(".front-back")
    assert QUESTIONS[NEXT] in back.inner_text()
    assert back.get_by_role("link", name="Go on").get_attribute("href") == f"{NEXT}.html"
    page.add_style_tag(content=STILL)
    results = Axe().run(page, context=".front-back", options=OPTIONS)
    assert results.violations_count == 0, results.generate_report()


def test_without_a_script_the_header_still_says_what_is_true_everywhere(reader):
    page = reader(java_script_enabled=False)
    assert OF in page.locator(".book-header").inner_text().replace("\n", " ")
    assert page.locator(".header-minutes").inner_text() == "30 min"
    assert not page.locator(".header-search, .theme-switch-button").locator("visible=true").count()
