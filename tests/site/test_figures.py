"""Figures on the built pages: one for the theme, and every head is seen at every width."""

import pytest
from answerable import NO_GUESSES, SHIFTS, VIEWS

NAME = "vit/what_attention_buys.html"
SHOWN = """() => ['light', 'dark'].map(theme =>
    [...document.querySelectorAll(`.vitbook-figure .only-${theme}`)]
        .filter(image => image.getBoundingClientRect().width > 0).length)"""

pytestmark = [pytest.mark.site, pytest.mark.browser]


def test_the_reader_who_turns_the_page_dark_sees_the_dark_pictures(open_page):
    page = open_page(NAME)
    light, dark = page.evaluate(SHOWN)
    assert (light >= 4, dark) == (True, 0)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate(SHOWN) == [0, light]
    ground = "getComputedStyle(document.querySelector('img.only-dark'))"
    assert page.evaluate(f"{ground}.backgroundColor") == "rgba(0, 0, 0, 0)"
    assert page.evaluate(f"{ground}.filter") == "none"
    page.emulate_media(media="print")
    assert page.evaluate(SHOWN) == [light, 0]


def test_without_scripts_the_light_pictures_are_there(open_page):
    page = open_page(NAME, **VIEWS["dark"], java_script_enabled=False)
    assert page.locator(".vitbook-figure .only-light").first.is_visible()
    assert not page.locator(".vitbook-figure .only-dark").first.is_visible()


HIDDEN = """() => [...document.querySelectorAll('.vitbook-explorer')]
    .map(figure => (figure.shadowRoot || figure.firstElementChild.shadowRoot))
    .map(shadow => shadow.querySelector('.scroll'))
    .map(box => box.scrollWidth - box.clientWidth)"""


def test_the_explorer_shows_every_head_without_scrolling(open_page):
    for width in (360, 600, 1280):
        page = open_page("preview.html", viewport={"width": width, "height": 900})
        page.wait_for_timeout(500)  # the figure looks at its width after it was drawn
        hidden = page.evaluate(HIDDEN)
        assert hidden
        assert max(hidden) <= 0, width


# How high a figure that has come is by itself, and the room that it was given.
ROOM = """(figure) => {
    const room = parseFloat(getComputedStyle(figure).minHeight);
    figure.style.minHeight = 0;
    const { height } = figure.getBoundingClientRect();
    figure.style.minHeight = "";
    return [room, height];
}"""


@pytest.mark.parametrize("name", ["vit/looking.html", "attention/many_heads.html"])
def test_an_explorer_that_comes_late_finds_its_room_and_moves_nothing(open_page, name):
    page = open_page(name, f"{NO_GUESSES}\n{SHIFTS}", viewport={"width": 390, "height": 844})
    figure = page.locator(".vitbook-explorer")
    figure.evaluate("figure => scrollTo({ top: figure.offsetTop + 900, behavior: 'instant' })")
    page.locator(".vitbook-explorer .card").wait_for()
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifted || 0") < 0.1
    for width in (360, 390, 430, 600, 768, 1180, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(200)  # the small maps are chosen by the width
        room, height = figure.evaluate(ROOM)
        assert room == pytest.approx(height, rel=0.05), width
