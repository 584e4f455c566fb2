"""Where a reader arrives: the place a link names, and the page's entry in the list of pages."""

import pytest
from answerable import NO_GUESSES
from test_site import PAGES

SIZES = [{"width": 390, "height": 844}, {"width": 1280, "height": 800}]
SOME = ["vit/looking.html", "vit/looking_depth_draw.html", "attention/positions.html"]
FIVE = [*SOME, "appendix/api.html", "preview.html"]
NEAR = 20  # pixels
PLACES = "all => all.map(one => one.id).filter(id => !id.includes(':'))"
ANCHORS = ".bd-article :is(section, .claim, .exercise, [data-live])[id]"
GROWS = "[data-live], .vitbook-explorer"
# Whatever is near the screen has started, and for ten pictures in a row nothing has moved.
SETTLED = """() => new Promise(done => {
    const near = (one) => {
        const { top, bottom } = one.getBoundingClientRect();
        return bottom > -500 && top < innerHeight + 500;
    };
    const figures = document.querySelectorAll("[data-live]");
    const starts = one => near(one) && one.checkVisibility();  // below a question: later
    const waits = () => [...figures].some(one => starts(one) && !one.matches(".live-running"));
    let [seen, still] = [null, 0];
    (function look() {
        const now = `${scrollY} ${document.documentElement.scrollHeight}`;
        still = now === seen && !waits() ? still + 1 : 0;
        seen = now;
        if (still > 10) done();
        else requestAnimationFrame(look);
    })();
})"""
# How far below its place it stands; a page that ends there can go no further.
OFF = """(id) => {
    const target = document.getElementById(id), style = getComputedStyle(target);
    const room = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const margin = parseFloat(style.scrollMarginTop) || 0;
    const off = target.getBoundingClientRect().top - room - margin;
    const ends = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
    return ends ? Math.min(off, 0) : off;
}"""

pytestmark = [pytest.mark.site, pytest.mark.browser]


def missed(browser, address, name, size, most=None):
    """Places of a page -> how far from where it should be each one is, once nothing moves."""
    found = {}
    with browser.new_context(viewport=size, reduced_motion="no-preference") as context:
        page = context.new_page()
        page.goto(f"{address}/{name}", wait_until="load")
        places = page.locator(ANCHORS).evaluate_all(PLACES)[1:]  # the first is the page's own
        grows = page.locator(GROWS).count() > 0
        for place in places[:: max(1, len(places) // most) if most else 1]:
            if grows:  # what has started once keeps its size, so each arrives on a fresh page
                page.goto("about:blank")
                page.goto(f"{address}/{name}#{place}", wait_until="load")
            else:
                page.evaluate("place => { location.hash = place; }", place)
            page.evaluate(SETTLED)
            off = page.evaluate(OFF, place)
            if abs(off) > NEAR:
                found[place] = round(off)
    return found


@pytest.mark.parametrize("size", SIZES, ids=["phone", "laptop"])
@pytest.mark.parametrize(
    ("name", "most"),
    [
        *((page, 3) for page in SOME),
        *(pytest.param(p, None, marks=pytest.mark.deep) for p in PAGES),
    ],
)
def test_a_link_leads_to_its_place_and_what_grows_above_moves_nothing(
    browser, address, name, most, size
):
    assert missed(browser, address, name, size, most) == {}


@pytest.mark.parametrize("name", SOME[:1])
def test_a_reader_who_scrolls_is_not_pulled_back(browser, address, name):
    with browser.new_context(viewport=SIZES[0]) as context:
        page = context.new_page()
        page.goto(f"{address}/{name}#summary", wait_until="load")
        page.mouse.wheel(0, -2500)
        page.evaluate(SETTLED)
        assert page.evaluate(OFF, "summary") > 800


@pytest.mark.parametrize("size", SIZES, ids=["phone", "laptop"])
def test_a_link_within_the_page_offers_the_way_back_to_where_one_was(open_page, size):
    page = open_page("attention/qk_merge.html", NO_GUESSES, viewport=size)
    back = page.get_by_role("button", name="Back to where you were")
    by_button, by_browser = back.click, page.go_back
    for hash_, go in (("#equation-eq", by_button), ("#live-bill", by_browser), ("#eq", by_button)):
        link = page.locator(f".bd-article a[href^='#'][href*='{hash_[1:]}']").last
        link.scroll_into_view_if_needed()
        page.evaluate(SETTLED)
        stood = link.bounding_box()["y"]
        link.click()
        back.wait_for()
        assert not 0 <= link.bounding_box()["y"] <= size["height"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        go()
        page.evaluate(SETTLED)
        assert link.bounding_box()["y"] == pytest.approx(stood, abs=NEAR)
        assert link.evaluate("one => one === document.activeElement")
        assert not back.is_visible()


ENTRY = """() => {
    const here = document.querySelector("#book-pages [aria-current=page]");
    if (!here || !here.checkVisibility()) return "no entry is seen";
    const { top, bottom } = here.getBoundingClientRect();
    const list = here.closest("#book-pages").getBoundingClientRect();
    const seen = top >= list.top - 1 && bottom <= Math.min(list.bottom, innerHeight) + 1;
    return seen ? "in sight" : `at ${Math.round(top)}`;
}"""


@pytest.mark.parametrize("size", SIZES, ids=["drawer", "sidebar"])
@pytest.mark.parametrize(
    "names", [FIVE, pytest.param(PAGES[:-1], marks=pytest.mark.deep)], ids=["five", "all"]
)
def test_the_list_of_pages_shows_where_one_is(browser, address, names, size):
    """One page after another in one tab, which remembers."""
    lost = {}
    with browser.new_context(viewport=size, reduced_motion="reduce") as context:
        page = context.new_page()
        for name in names:
            page.goto(f"{address}/{name}", wait_until="load")
            if name == "index.html":  # the front page is a list itself
                continue
            if size["width"] < 992:
                page.locator(".pages-toggle").click()
            page.wait_for_timeout(150)
            if (entry := page.evaluate(ENTRY)) != "in sight":
                lost[name] = entry
    assert lost == {}
