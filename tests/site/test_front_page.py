"""The front page, "you are here", and what a shared link shows, on the built site in Chromium."""

import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from PIL import Image

from tools.bench_pages import LIMITS, served, visit
from tools.cards import SIZE
from tools.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
SETTINGS = read_settings(ROOT)
CHAPTERS = [name for name in SETTINGS.documents if re.fullmatch(r"(.*/)?\d\d[a-z]?_\w+", name)]
STRIP = r'<div class="vit-strip">.*?</div>'
NARROW = {"width": 390, "height": 844}

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def built():
    if not (HTML / "index.html").is_file():
        pytest.fail("there is no site in _build/html: run make book first", pytrace=False)


@cache
def text(name):
    return (HTML / f"{name}.html").read_text("utf8")


@cache
def soup(name, part=r".*"):
    """The page, or the first part of it that fits a pattern: a whole page takes seconds."""
    found = re.search(part, text(name), re.DOTALL)
    return BeautifulSoup(found[0] if found else "", "html.parser")


@pytest.fixture
def front(built, browser):
    def opened(**options):
        page = browser.new_context(**options).new_page()
        page.goto((HTML / "index.html").as_uri())
        page.wait_for_function("document.querySelector('.vitbook-explorer').shadowRoot")
        return page

    return opened


def test_the_drawing_leads_to_every_chapter(built):
    links = {link["href"] for link in soup("index").select(".vit-map a")}
    assert links == {f"{name}.html" for name in CHAPTERS}
    assert all((HTML / link).is_file() for link in links)


def test_the_two_drawings_share_the_file_of_their_photograph(built):
    images = {image["href"] for image in soup("index").select(".vit-map image")}
    assert len(images) == 1
    assert (HTML / images.pop()).is_file()


def test_every_chapter_says_where_it_is_and_leads_back_to_the_drawing(built):
    for name in CHAPTERS:
        assert text(name).count('class="vit-strip"') == 1, name
        strip = soup(name, STRIP)
        assert strip.select(".here"), name
        home, _, anchor = strip.a["href"].partition("#")
        assert (HTML / name).parent.joinpath(home).resolve() == HTML / "index.html"
        assert soup("index").find(id=anchor), name
    assert 'class="vit-strip"' not in text("vit/depth_12_sinks")


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


def test_a_lost_reader_finds_home_from_any_depth(built):
    page = soup("404")
    assert page.a["href"] == SETTINGS.site_url
    assert not page.select("link, script, img")


def test_the_query_wanders_until_it_is_stopped(front):
    page = front()
    button = page.get_by_role("button", name="Stop motion")
    title = page.locator(".vitbook-explorer .title").first
    ring = page.locator(".vitbook-explorer .ring")
    seen = ring.get_attribute("style")
    page.wait_for_timeout(1500)
    assert ring.get_attribute("style") != seen
    assert not page.locator(".vitbook-explorer .sentence").is_visible()
    button.click()
    kept = ring.get_attribute("style")
    page.wait_for_timeout(1200)
    assert ring.get_attribute("style") == kept
    assert title.inner_text().startswith("Where row")
    assert page.locator(".vitbook-explorer .sentence").is_visible()
    assert page.get_by_role("button", name="Play motion").is_visible()


def test_nothing_moves_by_itself_and_the_page_is_light(built, browser):
    with served(HTML) as address:
        for _ in range(3):  # the contents used to fold in some visits only
            seen = visit(browser, f"{address}/index.html")
            assert seen.layout_shift < LIMITS["layout shift"]
            assert seen.whole < LIMITS["whole"]


def test_a_reader_who_wants_less_motion_sees_none(front):
    page = front(reduced_motion="reduce")
    title = page.locator(".vitbook-explorer .title").first
    seen = title.inner_text()
    page.wait_for_timeout(1200)
    assert title.inner_text() == seen
    assert page.locator(".front-still").count() == 0


def test_without_scripts_the_still_the_drawing_and_the_answers_are_there(built, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((HTML / "index.html").as_uri())
    assert page.locator(".vitbook-explorer img").first.is_visible()
    assert page.locator(".vit-map-wide, .vit-map-tall").locator("visible=true").count() == 1
    page.locator("#predict-front-half-patch summary").click()
    assert page.get_by_text("times the multiplications").is_visible()


@pytest.mark.parametrize(("width", "layout"), [(1280, "wide"), (390, "tall")])
def test_each_width_has_its_own_drawing_inside_the_screen(front, width, layout):
    page = front(viewport={"width": width, "height": 844})
    shown = page.locator(".vit-map svg").locator("visible=true")
    assert shown.count() == 1
    assert shown.get_attribute("class") == f"vit-map-{layout}"
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


@pytest.mark.parametrize(("size", "most"), [({"width": 1280, "height": 900}, 110), (NARROW, 60)])
def test_the_strip_leaves_room_for_the_question(built, browser, size, most):
    page = browser.new_context(viewport=size).new_page()
    for name in ("attention/04_many_heads", "vit/17_hybrids", "vit/18_what_attention_buys"):
        page.goto((HTML / f"{name}.html").as_uri())
        assert page.locator(".vit-strip").bounding_box()["height"] <= most, name


def test_both_buttons_are_on_the_first_screen_of_a_phone(front):
    page = front(viewport=NARROW)
    for words in ("Start", "Am I ready?"):
        box = page.locator("a.front-button", has_text=words).bounding_box()
        assert box["y"] + box["height"] < NARROW["height"]


def test_a_link_of_the_drawing_shows_where_the_keyboard_is(front):
    page = front()
    link = page.locator(".vit-map-wide a").first
    before = link.locator(".m-target").evaluate("e => getComputedStyle(e).stroke")
    page.locator("a.front-button").first.focus()
    page.keyboard.press("Tab")
    link.focus()
    assert link.locator(".m-target").evaluate("e => getComputedStyle(e).stroke") != before
