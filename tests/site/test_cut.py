"""Cut the arrow, on the page of the preview as it was built: numbers, hands, eyes, ears."""

import re

import numpy as np
import pytest
import torch
from answerable import NO_GUESSES, VIEWS

from vitbook.book.records import load_record
from vitbook.data import matching_pairs
from vitbook.data.glyphs import GLYPH_NAMES, glyphs
from vitbook.models.vit import VisionTransformer
from website.live.cut import COUNT, PICTURES, SEED

PAGE = "preview.html"
FIGURE = "#live-cut"

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture(scope="module")
def net():
    record = load_record("matching_pairs")
    net = VisionTransformer(**record.settings["model"])
    net.load_state_dict(record.weights("attention"))
    return net.eval()


@pytest.fixture(scope="module")
def pairs():
    return matching_pairs(COUNT, seed=SEED)


@torch.no_grad()
def lead(net, image, cuts=()):
    """Logit of "same" minus that of "different"; cuts are (layer, head, query, key)."""
    may = torch.ones(2, 1, 4, 16, 16, dtype=torch.bool)
    for layer, head, query, key in cuts:
        may[layer, 0, head, query, key] = False
    x = net.embed(image[None])
    for block, mask in zip(net.encoder.blocks, may, strict=True):
        x = block(x, mask)
    different, same = net.forward_head(net.encoder.norm(x))[0].tolist()
    return same - different


@pytest.fixture
def open_figure(open_page):
    def opened(**options):
        page = open_page(PAGE, NO_GUESSES, **options)
        page.locator(FIGURE).scroll_into_view_if_needed()
        page.locator(f"{FIGURE}.live-running").wait_for()
        return page

    return opened


def shown(page):
    return float(page.locator(FIGURE).get_attribute("data-lead"))


def choose(page, layer, head):
    """Layer and head from 0; head 4 is the mean of all."""
    page.locator(".cut-head").nth(5 * layer + (0 if head == 4 else head + 1)).click()


def look_from(page, patch):
    page.locator(".live-patch").nth(patch).press("Enter")


def cut(page, layer, head, query, key):
    choose(page, layer, head)
    look_from(page, query)
    page.locator(f".cut-arrow[data-key='{key}']").press("Enter")


def test_the_known_cuts_turn_their_answers_and_no_single_arrow_does_where_more_are_named(
    net, pairs
):
    every = [(a, b, q, k) for a, b, q, k in np.ndindex(2, 4, 16, 16) if q != k]
    for i, cuts in PICTURES.items():
        before = lead(net, pairs.images[i])
        if cuts:
            assert before * lead(net, pairs.images[i], cuts) < 0, i
        if len(cuts) == 1:
            continue
        may = torch.ones(len(every), 2, 4, 16, 16, dtype=torch.bool)
        for at, arrow in enumerate(every):
            may[at][arrow] = False
        with torch.no_grad():
            x = net.embed(pairs.images[i : i + 1]).expand(len(every), -1, -1)
            for layer, block in enumerate(net.encoder.blocks):
                x = block(x, may[:, layer])
            logits = net.forward_head(net.encoder.norm(x))
        assert ((logits[:, 1] - logits[:, 0]) * before > 0).all(), i


SENTENCES = [[(0, 2, 13, 11)], [(0, 3, 13, 11)], PICTURES[96]]


def test_every_image_every_known_cut_and_every_sentence_show_the_packages_numbers(
    open_figure, net, pairs
):
    page = open_figure()
    for i, cuts in PICTURES.items():
        assert shown(page) == pytest.approx(lead(net, pairs.images[i]), abs=1e-4)
        for arrow in cuts:
            cut(page, *arrow)
        assert shown(page) == pytest.approx(lead(net, pairs.images[i], cuts), abs=1e-4)
        if cuts:
            assert "the fewest known" in page.locator(".cut-lesson").inner_text()
            assert f"arrows cut: {len(cuts)} " in page.locator(".cut-score").inner_text()
        page.locator("button", has_text="Next image").click()
    links = page.locator("a.live-set")
    assert links.count() == len(SENTENCES)
    for at, cuts in enumerate(SENTENCES):
        links.nth(at).click()
        page.wait_for_timeout(50)
        assert shown(page) == pytest.approx(lead(net, pairs.images[96], cuts), abs=1e-4)


def test_a_head_and_a_patch_can_be_cut_and_restored(open_figure, net, pairs):
    page, image = open_figure(), pairs.images[96]
    others = [(q, k) for q in range(16) for k in range(16) if q != k]
    choose(page, 0, 2)
    page.locator("button", has_text="Cut head").click()
    head = [(0, 2, q, k) for q, k in others]
    assert shown(page) == pytest.approx(lead(net, image, head), abs=1e-4)
    look_from(page, 11)
    page.locator("button", has_text="Cut patch").click()
    patch = [(a, b, q, 11) for a in range(2) for b in range(4) for q in range(16) if q != 11]
    assert shown(page) == pytest.approx(lead(net, image, head + patch), abs=1e-4)
    page.locator(".cut-history button").first.click()
    assert shown(page) == pytest.approx(lead(net, image, patch), abs=1e-4)
    page.locator("button", has_text="Restore all").click()
    assert shown(page) == pytest.approx(lead(net, image), abs=1e-4)


def changed(image, patch, old, new):
    """Another glyph in a patch: v becomes 1 - v where ink comes or goes."""
    image, ink = image.clone(), glyphs()
    top, left = patch // 4 * 8 + 1, patch % 4 * 8 + 1
    box = image[0, top : top + 5, left : left + 5]
    box[:] = torch.where(ink[old] != ink[new], 1 - box, box)
    return image


def moved(image, patch):
    """The image whose patch has changed places with the first."""
    tokens = image.unfold(1, 8, 8).unfold(2, 8, 8).clone()  # (1, 4, 4, 8, 8)
    here, first = (0, *divmod(patch, 4)), (0, 0, 0)
    tokens[here], tokens[first] = tokens[first].clone(), tokens[here].clone()
    return tokens.transpose(2, 3).reshape(image.shape)


def test_a_glyph_can_be_changed_and_moved(open_figure, net, pairs):
    page, image = open_figure(), pairs.images[96]
    first, second = pairs.kinds[96].tolist()
    one, two = pairs.glyph_patches(8)[96].int().argmax(-1).tolist()
    look_from(page, two)
    page.locator(".cut-glyph").nth(first).click()
    image = changed(image, two, second, first)
    page.wait_for_timeout(400)
    said = f"The {GLYPH_NAMES[second]} is a {GLYPH_NAMES[first]} now."
    assert page.locator(".live-said").inner_text().startswith(said)
    assert shown(page) == pytest.approx(lead(net, image), abs=1e-4)
    assert page.locator(".cut-verdict b").inner_text() == "same"
    centre = "board => board.scrollIntoView({ block: 'center', behavior: 'instant' })"
    page.locator("#live-cut .live-patch-board").first.evaluate(centre)  # the palette lies below it
    page.wait_for_timeout(300)
    boxes = [page.locator(".live-patch").nth(p).bounding_box() for p in (two, 0)]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    page.mouse.move(*middles[0])
    page.mouse.down()
    page.mouse.move(*middles[1], steps=4)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert shown(page) == pytest.approx(lead(net, moved(image, two)), abs=1e-4)
    assert one != 0
    page.locator("button", has_text="Restore all").click()
    assert shown(page) == pytest.approx(lead(net, pairs.images[96]), abs=1e-4)


def test_it_starts_in_one_head_says_where_glyphs_stand_and_buttons_keep_the_focus(
    open_figure, net, pairs
):
    page = open_figure()
    one, two = pairs.glyph_patches(8)[96].int().argmax(-1).tolist()
    labels = [one.get_attribute("aria-label") for one in page.locator(".live-patch").all()]
    named = dict(zip([one, two], pairs.kinds[96].tolist(), strict=True))
    for patch, label in enumerate(labels):
        stands = f" ({GLYPH_NAMES[named[patch]]})" if patch in named else ""
        assert label == f"row {patch // 4 + 1}, column {patch % 4 + 1}{stands}"
    page.locator(".live-handle").click()  # on the ring: the answer stays
    assert "its lead" not in page.locator(".cut-leads").inner_text()
    assert "you guess −8.5" in page.locator(".cut-leads").inner_text()
    page.locator("button", has_text="Cut the thickest arrow").press("Enter")
    score = page.locator(".cut-score").inner_text()
    assert "arrows cut: 1 " in score  # not one of each head
    page.locator("button", has_text="Restore all").press("Enter")
    assert "Restore all" in page.evaluate("document.activeElement.textContent")
    assert shown(page) == pytest.approx(lead(net, pairs.images[96]), abs=1e-4)


def test_everything_works_by_keyboard_and_is_said(open_figure, net, pairs):
    page, image = open_figure(), pairs.images[96]
    page.locator(".live-patch[aria-checked=true]").focus()
    page.keyboard.press("3")
    page.keyboard.press("Tab")
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert name == "Cut the arrow to row 3, column 4 (plus), weight 1.00"
    page.keyboard.press("Enter")
    cuts = [(0, 2, 13, 11)]
    assert shown(page) == pytest.approx(lead(net, image, cuts), abs=1e-4)
    page.wait_for_timeout(400)
    said = page.locator(".live-said").inner_text()
    assert "head 3, row 4, column 2 (T lying left) to row 3, column 4 (plus)" in said
    assert "The map promised 1.00 of the weight 1.00" in said
    assert re.search(r"of the way to the turn\. It says different, [\d.]+ % sure\. ", said)
    pressed = page.evaluate("document.activeElement.getAttribute('aria-pressed')")
    assert pressed == "true"  # the focus stays on the arrow, which now restores
    page.keyboard.press("Enter")
    assert shown(page) == pytest.approx(lead(net, image), abs=1e-4)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowUp")
    checked = page.locator(".live-patch[aria-checked=true]")
    assert checked.get_attribute("aria-label") == "row 3, column 2"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowLeft")
    assert checked.get_attribute("aria-label") == "row 4, column 1 (T lying left)"
    assert "image of yours" in page.locator(".cut-score").inner_text()
    page.keyboard.press("0")
    assert page.locator(".cut-head").first.get_attribute("aria-pressed") == "true"
    page.wait_for_timeout(400)
    said = page.locator(".live-said").inner_text()
    assert said.startswith("Mean of layer 1: row 4, column 1")  # another view: no promise again
    guess = page.locator(".live-handle")
    assert guess.get_attribute("aria-valuetext") == "no guess yet"
    guess.focus()
    page.keyboard.press("Home")
    assert guess.get_attribute("aria-valuetext") == "−12.0, different"


AT_REST = """() => new Promise(done => { // a page that was swiped glides on for a while
    let [seen, still] = [scrollY, 0];
    (function look() {
        still = scrollY === seen ? still + 1 : 0;
        seen = scrollY;
        if (still > 20) done();
        else requestAnimationFrame(look);
    })();
})"""


def test_a_swipe_from_a_glyph_scrolls_a_tap_chooses_it_and_a_rest_takes_it_along(
    open_figure, net, pairs
):
    page = open_figure(**VIEWS["phone"], has_touch=True)
    one, two = pairs.glyph_patches(8)[96].int().argmax(-1).tolist()
    finger = page.context.new_cdp_session(page)

    def touch(kind, *points):
        at = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    def middle(patch):
        box = page.locator(".live-patch").nth(patch).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    page.locator(".live-patch").nth(5).evaluate("e => e.scrollIntoView({ block: 'center' })")
    before, (x, y) = page.evaluate("scrollY"), middle(two)
    touch("touchStart", (x, y))
    for down in (20, 60, 100, 140):
        touch("touchMove", (x, y - down))
    touch("touchEnd")
    page.wait_for_function("before => scrollY > before + 60", arg=before)
    assert shown(page) == pytest.approx(lead(net, pairs.images[96]), abs=1e-4)
    page.evaluate(AT_REST)
    page.locator(".live-patch").nth(5).evaluate("e => e.scrollIntoView({ block: 'center' })")
    page.evaluate(AT_REST)
    page.touchscreen.tap(*middle(one))
    assert page.locator(".live-patch").nth(one).get_attribute("aria-checked") == "true"
    before = page.evaluate("scrollY")
    touch("touchStart", middle(two))
    page.locator(".live-patch.cut-lifted").wait_for()
    (x, y), (to_x, to_y) = middle(two), middle(0)
    for share in (0.2, 0.6, 1):
        touch("touchMove", (x + share * (to_x - x), y + share * (to_y - y)))
    touch("touchEnd")
    assert page.evaluate("scrollY") == before
    assert shown(page) == pytest.approx(lead(net, moved(pairs.images[96], two)), abs=1e-4)
