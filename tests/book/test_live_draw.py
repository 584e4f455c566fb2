"""Draw a digit: what the page shows is what Python computes, with mouse, keys and on a phone."""

import re

import pytest
import torch
from test_live_frame import (  # noqa: F401
    LIVE,
    PACK,
    LiveBook,
    agree,
    in_python,
    open_page,
    unpacked,
)

from experiments.drawn_digits.draw_digit import stored
from experiments.drawn_digits.draw_digit_maps import costs
from experiments.drawn_digits.hand_drawn import NOT_SURE, drawings, images_of, said
from experiments.drawn_digits.strokes import drawn
from experiments.machinery.measures import probabilities
from vitbook.data import STATISTICS, normalize
from vitbook.inspection import attention_rollout
from vitbook.inspection.occlusion import rank_correlation
from website.live.draw import SHAPES, data, samples

FIGURE = """```{live} draw
:title: Draw a digit
:scripts: vit pen pad looking draw-model draw-parts
:data: draw
Draw. You should see it read.
+++
It reads an 8.
```

See {live}`the eight <draw digit=8 layer=3 head=rollout>`.
"""
ARTICLE = {str(digit): "an" if digit == 8 else "a" for digit in range(10)}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = LiveBook(tmp_path_factory.mktemp("draw"))
    book.page("part/two", FIGURE)
    return book.build()


@pytest.fixture(scope="module")
def model():
    return stored()


@pytest.fixture(scope="module")
def digits():
    return [one for one in drawings() if one.label.isdecimal()][::5]


def pixels(some):
    return normalize(images_of(some), *STATISTICS["mnist"])


def sample(label):
    """The image (1, 1, 28, 28) of a drawing that the page offers."""
    one = next(one for one in samples() if one["label"] == label)
    image = drawn(one["strokes"], one["width"])[None, None].float()
    return normalize(image, *STATISTICS["mnist"])


@pytest.fixture
def page(open_page):  # noqa: F811
    """The page with its figure running."""
    page = open_page(viewport={"width": 1100, "height": 900})
    running(page)
    return page


NET = """() => new Promise((done) => {
    const { live } = vitbook, script = document.createElement("script"), keep = live.data;
    live.data = (name, { model }) => {
        live.data = keep;
        globalThis.net = live.vit(model.settings, live.decodeAll(model.weights));
        done();
    };
    script.src = JSON.parse(document.querySelector("#live-draw").dataset.scripts).at(-1);
    document.head.append(script);
})"""


def running(page):
    """Wait for the figure, then make a second net of the very file that it has loaded."""
    page.locator("#live-draw.live-running").wait_for()
    page.evaluate(NET)


def take(page, label):
    page.get_by_role("button", name=f"Take this drawing: {label}", exact=True).click()
    settle(page)


def settle(page):
    page.evaluate("() => new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")


def spoken(page):
    page.wait_for_timeout(350)  # it speaks once the reader rests
    return page.locator(".live-said[aria-live]").inner_text()


def shown(page):
    """The heading, and the ten percentages beside the bars."""
    return page.locator(".draw-reads .draw-head").inner_text(), page.locator(
        ".draw-percent"
    ).all_inner_texts()


def percent(share):
    p = 100 * share
    small, whole = 0 < p < 0.1, p >= 99.95 or p == 0
    return ("<0.1" if small else f"{p:.0f}" if whole else f"{p:.1f}") + "\u202f%"


def test_its_drawings_are_by_hand_one_of_each_label():
    assert [one["label"] for one in samples()] == [*"0123456789", "A", "scribble"]
    assert data()["order"] != sorted(data()["order"]) == list(range(49))


def test_without_one_patch_the_six_that_stands_there_is_unsure_and_no_other_digit_is(model):
    net, threshold = model
    images = torch.cat([sample(label) for label in "0123456789"])
    left = probabilities(net, images).amax(-1, keepdim=True) * (-costs(net, images)).exp()
    unsure = dict(zip("0123456789", (left < threshold).sum(-1).tolist(), strict=True))
    assert unsure == {**dict.fromkeys("0123456789", 0), **dict.fromkeys(SHAPES, 1)}
    start = re.search(r'START = "(.)"', (LIVE / "draw.js").read_text(encoding="utf-8"))
    assert set(start[1]) == SHAPES.keys()


@pytest.mark.browser
def test_strokes_become_the_same_pixels(page):
    some = drawings()
    pack = PACK.replace("4 *", "8 *").replace("Float32", "Float64")
    draw = f"all => ({pack})(all.map((one) => vitbook.live.pen.drawn(...one)))"
    found = page.evaluate(draw, [[one.strokes, one.width] for one in some])
    expected = torch.stack([drawn(one.strokes, one.width) for one in some])
    found = unpacked(found, *expected.shape, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.browser
def test_rollout_and_mean_are_the_packages(page, model, digits):
    images = pixels(digits[:10])
    _, maps, _ = in_python(model[0], images)  # (n, L, h, N, N)
    found = page.evaluate(
        f"""images => ({PACK})(images.flatMap((image) => {{
            const {{ maps }} = net.forward(Float32Array.from(image)), {{ looking }} = vitbook.live;
            const mean = looking.means(net, maps);
            return [...mean, ...looking.rollouts(net, mean)];
        }}))""",
        images.flatten(1).tolist(),
    )
    n, L, _, N, _ = maps.shape
    found = unpacked(found, n, 2, L, N, N)
    up_to = [attention_rollout(maps[:, : layer + 1].transpose(0, 1)) for layer in range(L)]
    agree([found[:, 0], found[:, 1]], [maps.mean(2), torch.stack(up_to, dim=1)])


@pytest.mark.browser
def test_costs_and_rank_correlations_are_pythons(page, model, digits):
    images, gone = pixels(digits[:50]), 20
    found = page.evaluate(
        """([images, patch]) => images.map((image) => {
            const x = Float32Array.from(image), dropped = new Uint8Array(net.N);
            dropped[4] = 1;
            const asked = { positions: true, dropped }, { logits } = net.forward(x, asked);
            const answer = logits.indexOf(Math.max(...logits));
            const before = vitbook.live.looking.softmax(logits)[answer];
            return vitbook.live.looking.cost(net, x, asked, patch, answer, before);
        })""",
        [images.flatten(1).tolist(), gone],
    )
    with torch.no_grad():
        tokens, kept = model[0].embed(images), torch.arange(50) != 4
        before = said_by(model[0], tokens[:, kept])
        kept[1 + gone] = False
        after = said_by(model[0], tokens[:, kept])
        answers = before.argmax(-1, keepdim=True)
        expected = (before.gather(1, answers) - after.gather(1, answers))[:, 0]
    agree([torch.tensor(found)], [expected])
    one, other = torch.rand(2, 12, generator=torch.Generator().manual_seed(0)).mul(5).round()
    correlation = page.evaluate(
        "([a, b]) => vitbook.live.looking.rankCorrelation(a, b)", [one.tolist(), other.tolist()]
    )
    assert correlation == pytest.approx(rank_correlation(one, other).item(), abs=1e-5)


def said_by(net, tokens):
    return net.forward_head(net.encoder(tokens)).log_softmax(-1)


@pytest.mark.browser
def test_bars_and_headline_say_what_python_says(page, model):
    net, threshold = model
    for one in samples():
        take(page, one["label"])
        given = probabilities(net, sample(one["label"]))
        heading, bars = shown(page)
        assert bars == [percent(share) for share in given[0].tolist()]
        (word,) = said(given, threshold)
        reads = "Not sure" if word == NOT_SURE else f"It reads {ARTICLE[word]} {word}"
        assert heading.startswith(reads)


@pytest.mark.browser
def test_without_positions_a_shuffle_changes_nothing(page):
    take(page, "5")
    with_positions = shown(page)[1]
    page.get_by_role("switch", name="Shuffle the patches").click()
    assert shown(page)[1] != with_positions
    page.get_by_role("switch", name="Position embeddings").click()
    shuffled = shown(page)[1]
    page.get_by_role("switch", name="Shuffle the patches").click()
    assert shown(page)[1] == shuffled
    page.get_by_role("switch", name="Position embeddings").click()
    assert shown(page)[1] == with_positions


@pytest.mark.browser
def test_a_patch_is_chosen_taken_out_and_put_back(page, model):
    take(page, "8")
    before = shown(page)[1]
    patch = page.locator(".draw-token + .live-patch-board .live-patch").nth(24)
    patch.click()
    head = page.locator(".draw-head").nth(1)
    assert head.inner_text() == "Where the patch in row 4, column 4 looks"
    words = r"row 4, column 4, [\d.]+\s% of the attention of the patch in row 4, column 4"
    assert re.fullmatch(words, patch.get_attribute("aria-label"))
    page.get_by_role("button", name="Take row 4, column 4 out").click()
    with torch.no_grad():
        tokens = model[0].embed(sample("8"))[:, torch.arange(50) != 25]
        given = said_by(model[0], tokens).exp()
    assert shown(page)[1] == [percent(share) for share in given[0].tolist()]
    assert head.inner_text() == "Where the class token looks"
    words = "The patch in row 4, column 4 is out, so the class token looks. "
    assert page.locator(".draw-told").first.inner_text().startswith(words)
    assert words in spoken(page)
    assert page.evaluate("document.activeElement.textContent") == "Put row 4, column 4 back"
    page.get_by_role("button", name="All back").click()
    assert shown(page)[1] == before
    assert page.evaluate("document.activeElement.textContent") == "All back"


@pytest.mark.browser
def test_a_guess_is_marked_by_keys_and_its_rank_is_told(page, model):
    take(page, "6")
    guess = page.get_by_role("radiogroup", name="Your guess")
    guess.get_by_role("radio").first.focus()
    for key in ["ArrowDown"] * 4 + ["ArrowRight"] * 2:
        page.keyboard.press(key)
    assert guess.get_by_role("radio", checked=True).get_attribute("aria-label") == "row 5, column 3"
    assert spoken(page).startswith("Your guess: row 5, column 3. ")
    page.get_by_role("button", name="Take out each patch in turn").click()
    page.get_by_role("button", name="Done: each patch").wait_for()
    image = sample("6")
    lost, had = costs(model[0], image)[0], probabilities(model[0], image).max()
    assert lost.argmax() == 4 * 7 + 2
    left = percent((had * (-lost.max()).exp()).item())
    words = page.locator(".draw-test .draw-told").inner_text()
    most = "Without row 5, column 3 the answer loses most"
    assert f"{most}: 6 falls from {percent(had)} to {left}." in words
    assert f"Your patch, row 5, column 3, is number 1 of 49: without it {left}." in words
    assert spoken(page).startswith(most)
    first = re.search(r"The map's first patch, row \d, column \d, is number (\d+) of 49", words)
    assert int(first[1]) > 1
    assert re.search(r"Rank correlation of map and loss: [+\u2212]0\.\d\d \(maps by chance", words)
    page.get_by_text("The map in numbers").click()
    page.locator(".live-table tbody tr").nth(48).wait_for()
    take(page, "4")  # the costs were those of another drawing
    page.get_by_role("button", name="Take out each patch in turn").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("hand", ["keys", "pointer"])
def test_the_first_stroke_clears_the_example_and_undo_brings_it_back(page, hand):
    take(page, "8")
    pad, paths = page.locator(".draw-pad"), page.locator(".draw-ink path")
    if hand == "keys":
        pad.focus()
        page.keyboard.press("ArrowUp")
        assert spoken(page) == "Pen up, column 13, row 7"
        page.keyboard.press("Space")
        assert spoken(page) == "The example is gone. Pen down, column 13, row 7"
        for _ in range(15):
            page.keyboard.press("ArrowDown")
        assert spoken(page) == "Pen down, column 13, row 22"
        page.keyboard.press("Space")
        assert spoken(page).startswith("Pen up. It reads a 1, probability ")
    else:
        box = pad.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 40, steps=8)
        page.mouse.up()
        settle(page)
    assert shown(page)[0] == "It reads a 1"
    assert paths.count() == 1
    if hand == "keys":
        thumb = page.locator(".draw-thumb[aria-checked=true]")
        thumb.focus()
        page.keyboard.press("Home")
        assert thumb.get_attribute("aria-label") == "layer 1, head 1"
        words = r"It reads a 1, probability [\d.]+\s%\. The class token, layer 1, head 1: "
        assert re.match(words, spoken(page))
        pad.focus()
        page.keyboard.press("Backspace")
    else:
        page.get_by_role("button", name="Undo").click()
    settle(page)
    assert shown(page)[0] == "It reads an 8"
    page.get_by_role("button", name="Clear").click()
    settle(page)
    assert shown(page)[0] == "Not sure \u2013 the board is empty"
    assert page.get_by_role("button", name="Take out each patch in turn").is_disabled()


@pytest.mark.browser
def test_a_sentence_sets_drawing_layer_and_head(page):
    page.get_by_role("link", name="the eight").click()
    page.locator(".draw-thumb[aria-checked=true][aria-label='layer 3, rollout']").wait_for()
    settle(page)
    assert shown(page)[0].startswith("It reads an 8")
    page.wait_for_function("""() => {
        const { top, bottom } = document.querySelector(".draw-token").getBoundingClientRect();
        return top > 0 && bottom < innerHeight;
    }""")  # the map, which the sentence asks about
