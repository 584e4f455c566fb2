"""Figures on the built pages: one for the theme, and every head is seen at every width."""

import pytest
from answerable import VIEWS

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
