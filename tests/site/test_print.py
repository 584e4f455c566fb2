"""A page on paper: the article alone, in a size to be read, without what needs a screen."""

import pytest
from answerable import HTML, VIEWS
from test_arrival import SETTLED

PAGES = ["index", "preview", "attention/scaled_dot_product", "classroom/a2_block"]
SCREEN_ONLY = (
    ".book-header, .bd-docs-nav, .page-forms, .way-on, .copybtn, .headerlink, "
    "#pst-search-dialog, "
    "details.code-fold:not([open]), .ask-more, .ask-row, .ask-track input, .ask-back, "
    ".progress-box, .figure-axes, .vit-map-tall, .vitbook-explorer .controls"
)
SEEN = "all => all.filter(one => one.checkVisibility()).map(one => one.outerHTML.slice(0, 80))"

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture(scope="module", params=PAGES)
def paper(browser, request):
    """A page as the printer gets it."""
    context = browser.new_context(**VIEWS["light"], reduced_motion="reduce")
    page = context.new_page()
    page.goto((HTML / f"{request.param}.html").as_uri())
    page.evaluate(SETTLED)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    yield page
    context.close()


def test_the_title_leads_and_what_only_a_screen_can_do_is_gone(paper):
    assert paper.locator(".bd-article h1").first.is_visible()
    assert paper.locator(SCREEN_ONLY).evaluate_all(SEEN) == []
    asked = paper.locator(".bd-article .predict")
    for part in (".predict-choices", ".predict-explained", ".ask-output"):  # what waits for a guess
        some = asked.locator(part)
        assert len(some.evaluate_all(SEEN)) == some.count(), part
    covers = asked.locator(".ask-output").evaluate_all(COVERS)
    assert set(covers) <= {"none"}, "a figure lies under its cover on paper"


COVERS = "all => all.map(one => getComputedStyle(one, '::before').content)"
INKS = """all => all.filter(one => one.checkVisibility() && !one.closest("details:not([open])"))
    .map(one => {
        const { color, backgroundColor, fill, borderTopColor } = getComputedStyle(one);
        return [one.localName, color, backgroundColor, fill, borderTopColor].join(" ");
    })"""


def test_a_page_prints_alike_from_both_themes(browser, paper):
    light = paper.locator(".bd-article, .bd-article *").evaluate_all(INKS)
    with browser.new_context(**VIEWS["dark"], reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(paper.url)
        page.evaluate(SETTLED)  # a figure near the top starts after the page has come
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(".bd-article, .bd-article *").evaluate_all(INKS) == light
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert len(light) > 100
