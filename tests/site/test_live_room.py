"""Live figures keep their room until they run: a page does not jump when one of them starts."""

import re

import pytest
from answerable import NO_GUESSES
from test_site import HTML, PAGES

LAPTOP = {"width": 1366, "height": 768}
WIDTHS = ["auto", "377px"]  # the laptop's, and one that leaves as much room inside as a phone's
NEAR = 40  # pixels
# The height that a figure had before it ran is the one without what running changed.
HEIGHTS = """(root, width) => {
    const still = root.querySelector(".live-still"), box = root.querySelector(".live-box");
    function heightOf(runs) {
        root.classList.toggle("live-running", runs);
        [still.hidden, box.hidden] = [runs, !runs];
        return root.offsetHeight;
    }
    root.style.width = width;
    return [heightOf(false), heightOf(true)];
}"""

pytestmark = [pytest.mark.site, pytest.mark.browser]


def figures():
    """Pages with live figures, and the names of these."""
    built = [page for page in PAGES if (HTML / page).is_file()]
    found = {page: re.findall(r'data-live="([\w-]+)"', (HTML / page).read_text()) for page in built}
    return {page: names for page, names in found.items() if names}


def test_nothing_below_a_figure_moves_when_it_starts(browser):
    moved = {}
    with browser.new_context(viewport=LAPTOP, reduced_motion="reduce") as context:
        context.add_init_script(NO_GUESSES)
        page = context.new_page()
        for address, names in figures().items():
            page.goto((HTML / address).as_uri(), wait_until="domcontentloaded")
            for name in names:
                figure = page.locator(f"#live-{name}")
                figure.scroll_into_view_if_needed()
                page.locator(f"#live-{name}.live-running").wait_for()
                for width in WIDTHS:
                    before, runs = figure.evaluate(HEIGHTS, width)
                    moved[address, name, width] = runs - before
    assert len(moved) >= 18
    shifted = {at: by for at, by in moved.items() if abs(by) > NEAR}
    assert shifted == {}
