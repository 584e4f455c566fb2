"""The first screen of a chapter that opens on a live figure."""

import pytest
from answerable import HTML
from test_live_layout import FAULTS, FEW
from test_predictions import SEEN

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


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.parametrize("address", OPENED)
def test_a_laptop_shows_title_figure_and_first_lines_and_it_lies_well_at_every_width(
    opened, address
):
    page = opened(address, LAPTOP)
    assert page.locator("h1").inner_text().rstrip("#").strip().endswith("?")
    text = page.locator(".live-opening ~ p").first
    assert bottom(page.locator(".live-opening")) < text.bounding_box()["y"]
    assert text.bounding_box()["y"] + 2 * 29 < LAPTOP["height"]  # two lines of text
    article = page.locator("h1").bounding_box()["y"]
    assert page.locator(".vit-strip").bounding_box()["y"] > article + 500
    count = page.locator("[data-predict]").count()  # it counts among the predictions of its page
    assert page.locator(".live-opening:is([data-predict], :has([data-predict]))").count()
    assert page.locator(".predict-count").last.inner_text() == f"{count} of {count}"
    assert f"0 of {count} predictions" in page.locator(".progress-box").inner_text()
    found = {}
    for width in [*FEW, 360, 1200]:  # while it asks
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(100)
        found[width] = page.locator(".live-opening").evaluate(FAULTS)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[width].append("the page scrolls sideways")
    assert {width: faults for width, faults in found.items() if faults} == {}


@pytest.mark.parametrize("address", OPENED)
def test_a_phone_shows_what_the_figure_is_worked_with(opened, address):
    page = opened(address, PHONE)
    for one in page.locator(".live-opening :is(button, [role=slider])").all():
        assert not one.evaluate(SEEN) or bottom(one) <= PHONE["height"]


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


QUESTION = ".live-opening :is(.predict-title ~ p, .live-words, .softmax-todo)"


@pytest.mark.parametrize("address", OPENED)
@pytest.mark.parametrize("screen", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_question_is_painted_at_first_where_it_stays(new_page, address, screen, built):
    page, held = new_page(viewport=screen), []
    page.route("**/live/kit.js*", lambda route: held.append(route))  # no figure runs without it
    page.goto(f"{HTML.as_uri()}/{address}", wait_until="commit")
    question = page.locator(QUESTION).locator("visible=true").first
    question.wait_for()
    text = page.locator(".live-opening ~ p").first
    before = question.bounding_box(), text.bounding_box()["y"]
    held[0].continue_()
    page.locator(".live-opening.live-running").wait_for()
    after = question.bounding_box(), text.bounding_box()["y"]
    assert [after[0][side] for side in "xy"] == [before[0][side] for side in "xy"]
    assert after[1] == pytest.approx(before[1], abs=4)
