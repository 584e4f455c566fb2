"""Live figures and explorers draw themselves when the reader comes near: axe looks at them then.

tests/site/test_site.py looks at whole pages as they come, and there the most are still undrawn.
Each page is looked at in one view; `make test-deep` looks at all of them in all.
"""

import re

import pytest
from answerable import NO_GUESSES
from axe_playwright_python.sync_playwright import Axe
from test_site import DRAWN, HTML, OPTIONS, STILL, VIEWS, view_of

from tools.run_notebooks import served

FIGURE = re.compile(r'<div class="vitbook-explorer"|<div [^>]*\bdata-live="')
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if FIGURE.search(path.read_text("utf8"))
)
SELECTOR = "[data-live], .vitbook-explorer"
IS_DRAWN = """figure => figure.dataset.live ? figure.classList.contains("live-running")
    : Boolean(figure.shadowRoot && figure.shadowRoot.querySelector(".thumb"))"""
OPEN = """figure => [figure, figure.shadowRoot].forEach(
    root => root && root.querySelectorAll("details").forEach(fold => { fold.open = true; }))"""
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}  # the dark changes nothing else
MARK = "(figure, number) => figure.setAttribute('data-axe', number)"

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture(scope="module")
def address():
    with served(HTML) as address:
        yield address


@pytest.fixture
def drawn(browser, address):
    """drawn(name): the page, all of its figures drawn and unfolded, and axe's context of them."""
    context = browser.new_context(**VIEWS["light"], reduced_motion="reduce")
    context.add_init_script(NO_GUESSES)

    def opened(name):
        page = context.new_page()
        page.goto(f"{address}/{name}", wait_until="load")
        page.add_style_tag(content=STILL)
        figures = page.locator(SELECTOR)
        for number in range(figures.count()):
            figure = figures.nth(number)
            figure.scroll_into_view_if_needed()
            page.wait_for_function(IS_DRAWN, arg=figure.element_handle())
            figure.evaluate(OPEN)
            figure.evaluate(MARK, number)
        return page, {"include": [[f'[data-axe="{n}"]'] for n in range(figures.count())]}

    yield opened
    context.close()


def look(page, view):
    page.emulate_media(color_scheme=VIEWS[view]["color_scheme"])
    page.set_viewport_size(VIEWS[view]["viewport"])
    page.wait_for_function(
        "theme => document.documentElement.dataset.theme === theme",
        arg=VIEWS[view]["color_scheme"],
    )
    page.evaluate(DRAWN)


def test_there_are_pages_with_figures():
    assert len(PAGES) >= 5, "there is no site in _build/html: run make book first"


def barriers(drawn, name, views):
    """What axe says about the figures of a page, and what is too wide for a phone."""
    page, figures = drawn(name)
    found = []
    for view in views:
        look(page, view)
        rules = OPTIONS | (COLOURS if view == "dark" else {})
        results = Axe().run(page, context=figures, options=rules)
        found += [f"{view}: {results.generate_report()}"] * bool(results.violations_count)
    look(page, "phone")
    scroll = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return found + ["too wide for a phone"] * (scroll > 1)


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_a_figure_that_is_drawn(drawn, name):
    assert barriers(drawn, name, [view_of(name)]) == []


@pytest.mark.deep
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_a_drawn_figure_in_any_view(drawn, name):
    assert barriers(drawn, name, VIEWS) == []


def test_a_planted_barrier_is_seen_inside_figures_of_both_kinds(drawn):
    page, figures = drawn("preview.html")
    for one in (".vitbook-explorer .patch", "#live-cut .live-patch"):
        patch = page.locator(one).first
        label = patch.evaluate("""patch => {
            const label = patch.getAttribute("aria-label");
            patch.removeAttribute("aria-label");
            return label;
        }""")
        assert Axe().run(page, context=figures, options=OPTIONS).violations_count > 0, one
        patch.evaluate("(patch, label) => patch.setAttribute('aria-label', label)", label)
