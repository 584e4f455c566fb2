"""`hybrids`, as a page of the kit: its figures, its code and its tables on a phone."""

from pathlib import Path

import pytest
from answerable import NO_GUESSES

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
PAGE = HTML / "vit" / "hybrids.html"
PHONE = {"width": 390, "height": 844}

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture
def opened(browser):
    """Opens the chapter at a size."""
    contexts = []

    def opened(**options):
        contexts.append(browser.new_context(reduced_motion="reduce", **options))
        contexts[-1].add_init_script(NO_GUESSES)
        page = contexts[-1].new_page()
        page.goto(PAGE.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_figure_has_its_caption_in_both_themes(opened, theme):
    captions = opened(viewport=PHONE, color_scheme=theme).locator(".vitbook-figure figcaption")
    assert captions.count() == 3
    assert all(captions.nth(at).is_visible() for at in range(3))


CUT = """() => [...document.querySelectorAll("article .highlight pre, article .vitbook-table")]
    .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
    .map(box => box.textContent.slice(0, 80))"""


def test_on_a_phone_code_wraps_and_tables_are_whole(opened):
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.locator("article .highlight pre").count() > 10
    assert page.evaluate(CUT) == []


STARTS = """(pre) => {
    const words = document.createRange(), starts = new Map();
    words.selectNodeContents(pre);
    for (const {bottom, left} of words.getClientRects()) {
        const row = Math.round(bottom);
        starts.set(row, Math.min(left, starts.get(row) ?? left));
    }
    const first = Math.min(...starts.values()), {textIndent} = getComputedStyle(pre);
    return [...starts.values()].map((left) => Math.round((left - first) / parseFloat(textIndent)));
}"""


def test_code_that_goes_on_below_stands_further_in(opened):
    page = opened(viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    code = page.locator("article .highlight pre", has_text="sizes = {").first
    assert set(code.evaluate(STARTS)) == {0, 1}


def test_a_table_is_cards_on_a_phone_and_still_a_table_to_a_screen_reader(opened):
    page = opened(viewport=PHONE)
    table = page.get_by_role("table", name="CIFAR-10 after one pass")
    assert table.get_by_role("columnheader").count() == 5
    assert table.get_by_role("rowheader", name="AAAA").count() == 1
    cell = table.get_by_role("row", name="AAAA").get_by_role("cell").last
    said = cell.evaluate("e => getComputedStyle(e, '::before').content")
    assert said == '"minus MMMM, points"'
    box = cell.bounding_box()
    assert box["x"] + box["width"] <= PHONE["width"]
