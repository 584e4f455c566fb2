"""Figures on the built pages: one for the theme, letters for a phone, nothing moves."""

import re

import pytest
from test_site import CHAPTERS, HTML, VIEWS, served

NAME = "vit/what_attention_buys.html"
CHAPTERS = [HTML / name for name in CHAPTERS[1:]]

pytestmark = [pytest.mark.site]


def test_no_page_carries_a_picture_in_its_text():
    assert CHAPTERS, "there is no site in _build/html: run make book first"
    assert [p.name for p in CHAPTERS if re.search(r"<img[^>]*data:image/png", p.read_text())] == []


def test_each_figure_has_its_size_and_a_picture_for_each_theme():
    for path in CHAPTERS:
        images = re.findall(r'<img [^>]*class="only-(?:light|dark)"[^>]*>', path.read_text())
        light, dark = ([x for x in images if f"only-{theme}" in x] for theme in ("light", "dark"))
        assert len(light) == len(dark), path.name
        assert len(re.findall('loading="lazy"', "".join(light))) >= len(light) - 1, path.name
        sizes = [re.search(r'width="(\d+)" height="(\d+)"', image).groups() for image in images]
        assert sizes[::2] == sizes[1::2], path.name


@pytest.fixture(scope="module")
def address():
    with served(HTML) as address:
        yield address


SHOWN = """() => ['light', 'dark'].map(theme =>
    [...document.querySelectorAll(`.vitbook-figure .only-${theme}`)]
        .filter(image => image.getBoundingClientRect().width > 0).length)"""


@pytest.mark.browser
def test_the_reader_who_turns_the_page_dark_sees_the_dark_pictures(browser, address):
    with browser.new_context(**VIEWS["light"]) as context:
        page = context.new_page()
        page.goto(f"{address}/{NAME}", wait_until="load")
        light, dark = page.evaluate(SHOWN)
        assert (light >= 4, dark) == (True, 0)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert page.evaluate(SHOWN) == [0, light]
        ground = "getComputedStyle(document.querySelector('img.only-dark'))"
        assert page.evaluate(f"{ground}.backgroundColor") == "rgba(0, 0, 0, 0)"
        assert page.evaluate(f"{ground}.filter") == "none"
        page.emulate_media(media="print")
        assert page.evaluate(SHOWN) == [light, 0]


@pytest.mark.browser
def test_without_scripts_the_light_pictures_are_there(browser, address):
    with browser.new_context(**VIEWS["dark"], java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/{NAME}", wait_until="load")
        assert page.locator(".vitbook-figure .only-light").first.is_visible()
        assert not page.locator(".vitbook-figure .only-dark").first.is_visible()


@pytest.mark.browser
def test_on_a_phone_text_and_figures_have_the_width_of_the_screen(browser, address):
    with browser.new_context(**VIEWS["phone"]) as context:
        page = context.new_page()
        page.goto(f"{address}/{NAME}", wait_until="load")
        for what in (".bd-article section > p", ".vitbook-figure .only-light"):
            box = page.locator(what).first.bounding_box()
            assert 350 <= box["width"] <= 360, what
            assert 15 <= box["x"] <= 20, what


HIDDEN = """() => [...document.querySelectorAll('.vitbook-explorer')]
    .map(figure => (figure.shadowRoot || figure.firstElementChild.shadowRoot))
    .map(shadow => shadow.querySelector('.scroll'))
    .map(box => box.scrollWidth - box.clientWidth)"""


@pytest.mark.browser
def test_the_explorer_shows_every_head_without_scrolling(browser, address):
    with browser.new_context() as context:
        page = context.new_page()
        for width in (360, 390, 430, 600, 800, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}/preview.html", wait_until="load")
            page.wait_for_timeout(500)  # the figure looks at its width after it was drawn
            hidden = page.evaluate(HIDDEN)
            assert hidden
            assert max(hidden) <= 0, width
