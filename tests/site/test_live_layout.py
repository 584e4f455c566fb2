"""Live figures: a page does not jump when one of them starts, and at every width nothing lies on
another part, vanishes, or leaves its frame."""

import re

import pytest
from answerable import NO_GUESSES
from test_site import HTML, PAGES

LAPTOP = {"width": 1366, "height": 768}
WIDTHS = ["auto", "377px"]  # the laptop's, and one that leaves as much room inside as a phone's
NEAR = 40  # pixels
# By how much a figure grew when it started: before it ran it was without what running changed.
GROWN = """(root, width) => {
    const still = root.querySelector(".live-still"), box = root.querySelector(".live-box");
    function heightOf(runs) {
        root.classList.toggle("live-running", runs);
        [still.hidden, box.hidden] = [runs, !runs];
        return root.offsetHeight;
    }
    root.style.width = width;
    const [before, after] = [heightOf(false), heightOf(true)];
    root.style.width = "";
    return after - before;
}"""
HEIGHT = 800
FEW = [320, 600, 1000, 1100, 1280]
ALL = range(320, 1921, 40)
# A part is what has words, is drawn or can be worked with, and is inside no other part.
FAULTS = """(root) => {
    const SMALL = 18, NEAR = 3;  // pixels
    const frame = root.getBoundingClientRect(), found = [];
    const name = (one) => `${one.localName}.${one.getAttribute("class")}`;
    for (const one of root.querySelectorAll("*")) {
        if (getComputedStyle(one).position === "sticky") one.style.position = "static";
    }
    const isSeen = (one) => one.checkVisibility({ visibilityProperty: true });
    const isControl = (one) => one.matches("button, input, select, summary, [role=slider]");
    const holds = (one) => [...one.children].some(
        child => getComputedStyle(child).position === "absolute");
    const isPart = (one) => isControl(one) || one.matches("canvas, svg, table") || holds(one)
        || [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const parts = [];
    (function look(one) {
        if (!isSeen(one) || one.matches(".live-said, .live-hidden, .live-scroll")) return;
        if (one !== root && isPart(one)) parts.push(one);
        else [...one.children].forEach(look);
    })(root);
    for (const one of parts) {
        const box = one.getBoundingClientRect();
        if (box.width < 4 || box.height < 4) found.push(`${name(one)} has no size`);
        if (box.left < frame.left - 1 || box.right > frame.right + 1
            || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
            found.push(`${name(one)} leaves the frame`);
        }
    }
    for (const one of root.querySelectorAll("*")) {
        if (!isControl(one) || !isSeen(one) || one.closest(".live-hidden")) continue;
        const box = one.closest("label") || one;  // what can be pressed
        const { left, right, width, height } = box.getBoundingClientRect();
        if (Math.min(width, height) < SMALL) found.push(`${name(one)} is too small`);
        if (left < frame.left || right > frame.right) found.push(`${name(one)} is out of reach`);
    }
    parts.forEach((one, i) => parts.slice(0, i).forEach((other) => {
        const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > NEAR && high > NEAR) found.push(`${name(one)} lies on ${name(other)}`);
    }));
    return [...new Set(found)];
}"""
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

pytestmark = [pytest.mark.site, pytest.mark.browser]


def figures():
    """Pages with live figures, and the names of these."""
    built = [page for page in PAGES if (HTML / page).is_file()]
    found = {page: re.findall(r'data-live="([\w-]+)"', (HTML / page).read_text()) for page in built}
    return {page: names for page, names in found.items() if names}


def faults(browser, address, widths):
    """What is wrong with the figures of a page, by width."""
    found = {}
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_init_script(NO_GUESSES)
        page = context.new_page()
        page.set_viewport_size({"width": 1280, "height": HEIGHT})
        page.goto((HTML / address).as_uri(), wait_until="domcontentloaded")
        for name in figures()[address]:
            page.locator(f"#live-{name}").scroll_into_view_if_needed()
            page.locator(f"#live-{name}.live-running").wait_for()
        page.set_viewport_size(LAPTOP)
        for name in figures()[address]:
            by = {width: page.locator(f"#live-{name}").evaluate(GROWN, width) for width in WIDTHS}
            if max(map(abs, by.values())) > NEAR:
                found["start", name] = by
        for width in widths:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.evaluate(SETTLED)
            for name in figures()[address]:
                if wrong := page.locator(f"#live-{name}").evaluate(FAULTS):
                    found[width, name] = wrong
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found[width, "page"] = ["scrolls sideways"]
    return found


def test_there_are_live_figures():
    assert sum(map(len, figures().values())) >= 9


@pytest.mark.parametrize(
    "widths", [FEW, pytest.param(ALL, marks=pytest.mark.deep)], ids=["few", "all"]
)
@pytest.mark.parametrize("address", figures())
def test_a_figure_keeps_its_room_and_lies_well_at_every_width(browser, address, widths):
    assert faults(browser, address, widths) == {}
