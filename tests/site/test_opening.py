"""The first screen of a chapter that opens on a live figure."""

import pytest
from answerable import HTML
from test_live_layout import FAULTS

OPENED = [
    page.relative_to(HTML).as_posix()
    for page in sorted(HTML.glob("*/*.html"))
    if "live-opening" in page.read_text("utf8")
]
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture
def opened(open_page):
    """opened(address, screen, **context): the page at its top, when the figure runs."""

    def opens(address, screen, **options):
        page = open_page(address, viewport=screen, **options)
        if options.get("java_script_enabled", True):
            page.locator(".live-opening.live-running").wait_for()
        return page

    return opens


def test_a_chapter_opens_so():
    pages = {"attention/scaled_dot_product.html", "attention/qk_merge.html", "vit/looking.html"}
    assert pages <= set(OPENED)


@pytest.mark.parametrize("address", OPENED)
def test_the_question_stands_above_and_nothing_lies_on_another_part_while_it_asks(opened, address):
    page = opened(address, LAPTOP)
    assert page.locator("h1").inner_text().rstrip("#").strip().endswith("?")
    count = page.locator("[data-predict]").count()  # it counts among the predictions of its page
    assert f"0 of {count} predictions" in page.locator(".progress-box").inner_text()
    found = {}
    for screen in (PHONE, LAPTOP):
        page.set_viewport_size(screen)
        page.wait_for_timeout(100)
        found |= {screen["width"]: page.locator(".live-opening").evaluate(FAULTS)}
    assert {width: faults for width, faults in found.items() if faults} == {}


@pytest.mark.parametrize("address", OPENED)
def test_who_runs_no_script_sees_the_cell_above_and_reads_what_it_would_tell(opened, address):
    page = opened(address, LAPTOP, java_script_enabled=False)
    still = page.locator(".live-opening > .live-still")
    assert still.locator(".cell img").first.is_visible()
    assert still.locator(":scope > p").last.is_visible()
    frame = page.locator(".live-opening").bounding_box()
    for one in still.locator("summary, .cell_input").all():
        box = one.bounding_box()
        assert box is None or box["x"] + box["width"] <= frame["x"] + frame["width"]
    assert page.locator(".live-opening > .live-words").is_visible()
