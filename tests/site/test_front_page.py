"""The front page, "you are here", and what a shared link shows, on the built site in Chromium."""

import re
from functools import cache
from xml.etree import ElementTree

import pytest
from answerable import HTML, ROOT
from bs4 import BeautifulSoup
from PIL import Image

from tools.bench import visit
from website.live.cut import PICTURES
from website.pages.contents import places_of
from website.pages.settings import read_settings
from website.syntax.cards import SIZE

SETTINGS = read_settings(ROOT)
CHAPTERS = [page for page, place in places_of(ROOT).items() if not place.deeper]
STRIP = r'<div class="vit-strip">.*?</div>'
NARROW = {"width": 390, "height": 844}

pytestmark = pytest.mark.site


@cache
def text(name):
    return (HTML / f"{name}.html").read_text("utf8")


@cache
def soup(name, part=r".*"):
    """The page, or the first part of it that fits a pattern: a whole page takes seconds."""
    found = re.search(part, text(name), re.DOTALL)
    return BeautifulSoup(found[0] if found else "", "html.parser")


@pytest.fixture
def front(open_page):
    def opened(**options):
        page = open_page("index.html", **options)
        page.locator("#live-cut-front.live-running").wait_for()
        return page

    return opened


def test_every_chapter_says_where_it_is_and_leads_back_to_the_drawing(built):
    for name in CHAPTERS:
        assert text(name).count('class="vit-strip"') == 1, name
        strip = soup(name, STRIP)
        assert strip.select(".here"), name
        home, _, anchor = strip.a["href"].partition("#")
        assert (HTML / name).parent.joinpath(home).resolve() == HTML / "index.html"
        assert soup("index").find(id=anchor), name
    assert 'class="vit-strip"' not in text("vit/looking_depth_sinks")


def test_every_chapter_has_a_card_with_a_question_and_a_picture(built):
    cards = soup("index").select(".front-card")
    assert [card.a["href"] for card in cards] == [f"{name}.html" for name in CHAPTERS]
    for card in cards:
        assert card.a.get_text().endswith("?")
        for image in card.select("img"):
            assert image["alt"] == ""
            assert image["loading"] == "lazy"
            size = Image.open(HTML / image["src"]).size
            assert size == SIZE == (int(image["width"]), int(image["height"]))


def test_every_page_says_once_what_it_is(built):
    descriptions = []
    for name in SETTINGS.documents:
        page = soup(name, r".*?</head>")
        assert len(page.select('meta[name="viewport"]')) == 1, name
        told = {tag["property"]: tag["content"] for tag in page.select("meta[property]")}
        assert told["og:title"], name
        assert told["og:url"].startswith(SETTINGS.site_url), name
        image = told["og:image"].removeprefix(SETTINGS.site_url)
        assert Image.open(HTML / image).size == (1200, 630), name
        found = page.select('meta[name="description"]')
        assert len(found) == 1, name
        assert 20 < len(found[0]["content"]) < 230, name
        descriptions.append(found[0]["content"])
    assert len(set(descriptions)) == len(descriptions)
    assert soup("index").title.get_text() == SETTINGS.title


def test_the_sitemap_lists_every_page_and_no_other(built):
    tree = ElementTree.parse(HTML / "sitemap.xml")
    found = [one.text for one in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    others = {f"{SETTINGS.site_url}{name}.html" for name in SETTINGS.documents[1:]}
    assert found[0] == SETTINGS.site_url
    assert set(found[1:]) == others
    assert len(found) == len(SETTINGS.documents)


def test_a_lost_reader_finds_home_at_any_depth(new_page, address):
    found = soup("404")
    assert found.a["href"] == SETTINGS.site_url
    assert not found.select("link, script, img")
    page, asked = new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    lost = f"{address}/v0.1.0/vit/gone/for/good.html"
    page.route(lost, lambda route: route.fulfill(path=HTML / "404.html", status=404))
    page.goto(lost)
    assert asked == [lost]
    assert page.locator("main svg").bounding_box()["width"] > 40


def says(page):
    return page.locator(".cut-verdict b").inner_text()


def lead(page):
    return float(page.locator("#live-cut-front").get_attribute("data-lead"))


def test_the_first_cut_is_the_readers_and_nothing_moves_before(front):
    page = front(reduced_motion="no-preference")
    figure, told = page.locator("#live-cut-front"), page.locator(".cut-front-told")
    assert told.inner_text().startswith("Your turn.")
    seen = figure.inner_text()
    page.wait_for_timeout(3000)  # a film's first scene took less
    assert figure.inner_text() == seen
    assert says(page) == "different"
    page.get_by_role("button", name="Cut the thickest arrow").click()
    assert says(page) == "same"
    assert page.locator(".cut-arrow[aria-pressed=true]").count() == 1
    page.get_by_role("button", name="Next picture").click()
    assert "2 together do" in told.inner_text()
    page.get_by_role("button", name="Show a way").click()
    told.filter(has_text="Turned round with 2 arrows, the fewest known.").wait_for()


def test_the_known_cuts_turn_each_picture_by_keyboard_and_are_said(front):
    page = front()
    for cuts in sorted(filter(None, PICTURES.values()), key=len):
        before = lead(page)
        for layer, head, query, key in cuts:
            page.locator(".cut-head").nth(5 * layer + head + 1).press("Enter")
            page.locator(".live-patch").nth(query).press("Enter")
            page.locator(f".cut-arrow[data-key='{key}']").press("Enter")
        assert before * lead(page) < 0
        assert "the fewest known." in page.locator(".cut-front-told").inner_text()
        page.wait_for_timeout(400)
        assert "the fewest known." in page.locator(".live-said").inner_text()
        page.get_by_role("button", name="Next picture").press("Enter")


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.deep)])
def test_nothing_moves_by_itself(browser, address, times):
    for _ in range(times):  # the contents used to fold in some visits only
        _, shift = visit(browser, f"{address}/index.html")
        assert shift < 0.02


def test_without_scripts_the_still_the_drawing_and_the_answers_are_there(open_page):
    page = open_page("index.html", java_script_enabled=False)
    assert page.locator(".live-still").is_visible()
    assert page.get_by_role("img", name="two small shapes twice").first.is_visible()
    assert page.locator(".vit-map-wide, .vit-map-tall").locator("visible=true").count() == 1
    assert page.get_by_text("times the multiplications").is_visible()


FIRST = (".live-title", ".cut-verdict", ".cut-front-told", ".live-patch >> nth=11")
BUTTONS = ("a.front-button:has-text('Start')", "a.front-button:has-text('Am I ready?')")


@pytest.mark.parametrize(
    ("size", "layout", "buttons"),
    [({"width": 1280, "height": 720}, "wide", ()), (NARROW, "tall", BUTTONS)],
)
def test_a_first_screen_has_question_answer_and_shapes_and_each_width_its_drawing(
    front, size, layout, buttons
):
    page = front(viewport=size)
    page.wait_for_timeout(300)
    for part in (*(f"#live-cut-front {part}" for part in FIRST), *buttons):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] < size["height"], part
    shown = page.locator(".vit-map svg").locator("visible=true")
    assert shown.count() == 1
    assert shown.get_attribute("class") == f"vit-map-{layout}"
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
