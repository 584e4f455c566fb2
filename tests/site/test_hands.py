"""What people do with a page: click, tap, press Tab, arrive before the scripts have run."""

import pytest
from answerable import NO_GUESSES, SHIFTS, VIEWS
from test_site import CHAPTERS, STILL

from tools.book_rules.length import WIDEST

CHAPTER = "attention/qk_merge.html"  # solutions, boxes with cells, folded figures, many formulas
SOME = CHAPTERS[1::11]

pytestmark = [pytest.mark.site, pytest.mark.browser]


SOLUTIONS = """() => [...document.querySelectorAll('.solution')].map(
    box => box.getBoundingClientRect().height)"""


def test_before_any_script_has_run_solutions_are_closed_and_formulas_whole(open_page):
    page = open_page(CHAPTER, NO_GUESSES, java_script_enabled=False)
    boxes = page.locator(".solution")
    heights = [boxes.nth(i).bounding_box()["height"] for i in range(boxes.count())]
    assert heights
    assert max(heights) < 80
    assert page.locator(".katex-display").first.bounding_box()["height"] > 20
    assert "\\" not in "".join(page.locator(".math").all_inner_texts())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SOME else pytest.mark.deep) for n in CHAPTERS]
)
def test_a_solution_opens_wherever_its_title_is_clicked(open_page, name):
    page = open_page(name, NO_GUESSES)
    page.add_style_tag(content=STILL)
    titles = page.locator(".solution > summary, .solution > .admonition-title")
    assert titles.count() >= 3
    place = page.url
    for at in range(titles.count()):
        title = titles.nth(at)
        width = title.bounding_box()["width"]
        for x in (20, 100, 300, width - 20):
            before = page.evaluate(SOLUTIONS)[at]
            title.click(position={"x": x, "y": 12})
            assert page.evaluate(SOLUTIONS)[at] > before + 50, f"title {at} at {x} px"
            title.click(position={"x": x, "y": 12})
            assert page.evaluate(SOLUTIONS)[at] == pytest.approx(before, abs=2)
    assert page.url == place


def test_every_control_of_the_header_shows_when_it_has_the_focus(open_page):
    page = open_page(CHAPTER, NO_GUESSES)
    seen = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
            const here = document.activeElement, style = getComputedStyle(here);
            if (!here.closest('.book-header')) return null;
            const name = here.getAttribute('aria-label') || here.title || here.innerText || '';
            const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
            return [name.trim() || here.className, outlined || style.boxShadow !== 'none'];
        }""")
        if found:
            seen[found[0]] = found[1]
        elif seen:
            break
    assert len(seen) >= 3
    assert [name for name, shown in seen.items() if not shown] == []


WIDE = """() => [...document.querySelectorAll('.katex-display')]
    .map(one => [one.scrollWidth > one.clientWidth, one.tabIndex === 0])"""


def test_tab_reaches_the_formulas_that_are_too_wide_also_after_a_turn_of_the_phone(open_page):
    page = open_page(CHAPTER, NO_GUESSES, viewport=VIEWS["phone"]["viewport"])
    assert [True, True] in page.evaluate(WIDE)
    assert all(wide == reached for wide, reached in page.evaluate(WIDE))
    page.set_viewport_size(VIEWS["light"]["viewport"])
    page.wait_for_timeout(300)
    assert [True, True] not in page.evaluate(WIDE)
    assert all(wide == reached for wide, reached in page.evaluate(WIDE))


def test_no_fold_makes_the_page_jump_while_it_loads(open_page):
    phone = {"viewport": VIEWS["phone"]["viewport"], "has_touch": True, "is_mobile": True}
    page = open_page(CHAPTER + "#exercises", NO_GUESSES, **phone)
    page.locator(".solution").first.scroll_into_view_if_needed()
    page.reload(wait_until="load")  # the browser comes back to the same place
    page.evaluate(SHIFTS)
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifted || 0") < 0.02


def test_the_contents_of_a_phone_close_when_a_place_is_chosen(open_page):
    page = open_page(
        CHAPTER, NO_GUESSES, viewport=VIEWS["phone"]["viewport"], has_touch=True, is_mobile=True
    )
    page.locator(".pages-toggle").tap()
    panel = page.locator("#book-pages")
    assert panel.is_visible()
    panel.get_by_text("Concept check").tap()
    page.wait_for_timeout(300)
    assert not panel.is_visible()
    assert page.url.endswith("#concept-check")
    heading = page.locator("#concept-check h2").bounding_box()
    assert 0 <= heading["y"] < 400


SEEN = "(({ mode, theme }) => [mode, theme])(document.documentElement.dataset)"


def test_the_button_goes_round_the_modes_and_the_page_remembers(open_page, address):
    # served: a page of the disk, loaded again at once, may not find yet what it has just stored
    page = open_page(f"{address}/{CHAPTER}", NO_GUESSES, color_scheme="light")
    button = page.locator(".theme-switch-button:visible").first
    seen = []
    for _ in range(3):
        button.click()
        seen.append(page.evaluate(SEEN))
    assert seen == [["dark", "dark"], ["light", "light"], ["auto", "light"]]
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.reload(wait_until="load")
    assert page.evaluate(SEEN) == ["auto", "dark"]

    def day_breaks(route):  # while the page comes
        page.emulate_media(color_scheme="light")
        route.continue_()

    page.route("**/frame.js*", day_breaks)
    page.reload(wait_until="load")
    assert page.evaluate(SEEN) == ["auto", "light"]
    page.unroute("**/frame.js*")
    button.click()
    page.reload(wait_until="load")
    assert page.evaluate(SEEN) == ["dark", "dark"]


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])
def test_the_list_of_pages_lies_over_a_phones_page_and_closes_again(open_page, scripts):
    page = open_page(CHAPTER, NO_GUESSES, java_script_enabled=scripts)
    pages = page.locator("#book-pages")
    assert pages.is_visible()
    assert not page.locator(".pages-toggle").is_visible()
    page.set_viewport_size(VIEWS["phone"]["viewport"])
    assert not pages.is_visible()
    for close in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.mouse.click(380, 600),  # beside the list
        lambda: page.get_by_role("button", name="Close").click(),
    ):
        page.locator(".pages-toggle").click()
        assert pages.is_visible()
        close()
        assert not pages.is_visible()


def test_a_reader_who_scrolls_up_is_offered_the_top(open_page):
    page = open_page(CHAPTER, NO_GUESSES, viewport={"width": 1000, "height": 900})
    button = page.locator(".header-top")
    page.evaluate("scrollTo(0, 5000)")
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 4970)")  # as where a figure above has got its true height
    page.wait_for_timeout(100)
    assert not button.is_visible()
    page.evaluate("scrollTo(0, 4800)")
    button.click()
    page.wait_for_function("scrollY === 0")


def test_a_link_to_something_folded_opens_the_fold(open_page):
    page = open_page(CHAPTER, NO_GUESSES)
    solution = page.locator("details.solution").nth(1)
    name = solution.get_attribute("id")
    page.evaluate("name => { location.hash = name; }", name)
    page.wait_for_timeout(300)
    assert solution.locator(".cell").first.is_visible()


CUT_OFF = """() => [...document.querySelectorAll('div.cell_input div.highlight pre')]
    .filter(code => !code.closest('details, .admonition'))  // boxes are narrower
    .filter(code => code.scrollWidth > code.clientWidth + 1)
    .map(code => code.textContent.split('\\n').reduce((a, b) => a.length > b.length ? a : b))"""


def test_code_as_wide_as_the_rules_allow_is_seen_whole(open_page):
    page = open_page("vit/block.html", NO_GUESSES, viewport={"width": 1280, "height": 900})
    assert [line for line in page.evaluate(CUT_OFF) if len(line) <= WIDEST] == []
