"""`hybrids`, as a page of the kit: its code and its tables on a phone."""

import pytest
from answerable import NO_GUESSES

PAGE = "vit/hybrids.html"
PHONE = {"width": 390, "height": 844}

pytestmark = [pytest.mark.site, pytest.mark.browser]


CUT = """() => [...document.querySelectorAll("article .highlight pre, article .vitbook-table")]
    .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
    .map(box => box.textContent.slice(0, 80))"""


def test_on_a_phone_code_wraps_and_tables_are_whole(open_page):
    page = open_page(PAGE, NO_GUESSES, viewport=PHONE, has_touch=True, is_mobile=True)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.locator("article .highlight pre").count() > 10
    assert page.evaluate(CUT) == []


def test_a_table_is_cards_on_a_phone_and_still_a_table_to_a_screen_reader(open_page):
    page = open_page(PAGE, NO_GUESSES, viewport=PHONE)
    table = page.get_by_role("table", name="CIFAR-10 after one pass")
    assert table.get_by_role("columnheader").count() == 5
    assert table.get_by_role("rowheader", name="AAAA").count() == 1
    cell = table.get_by_role("row", name="AAAA").get_by_role("cell").last
    said = cell.evaluate("e => getComputedStyle(e, '::before').content")
    assert said == '"minus MMMM, points"'
    box = cell.bounding_box()
    assert box["x"] + box["width"] <= PHONE["width"]
