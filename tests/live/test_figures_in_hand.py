"""The figures of single ideas: they show what Python computes, and each key does its work."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from page import DATA, FIGURES, LARGEST, LIVE, ROOT, write_page

from vitbook.layers.positions import RotaryPositions, sincos_1d, sincos_2d
from website.live import query, rotary
from website.live.pack import script
from website.pages.source import read_chapter

pytestmark = pytest.mark.browser
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("figures")).as_uri()


@pytest.fixture
def open_figure(browser, address):
    """open_figure(name, **context): the page, when the figure runs."""
    contexts = []

    def opened(name, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"{address}#live-{name}", wait_until="load")
        page.locator(f"#live-{name}.live-running").wait_for()
        return page

    yield opened
    for context in contexts:
        assert all(page.errors == [] for page in context.pages)
        context.close()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_light(name):
    assert (LIVE / f"{name}.js").stat().st_size <= LARGEST


def test_the_data_are_smaller_than_a_picture():
    for name, module in DATA.items():
        assert len(script(name, module.data())) < 10_000, name
    assert len(script("query", query.data())) < 600


def test_the_softmax_is_that_of_python(open_figure):
    torch.manual_seed(0)
    cases = []
    for width, factor, _ in itertools.product((4, 64, 1024), (True, False), range(10)):
        scores, T = (8 * torch.rand(4) - 4).tolist(), 10 ** (2 * torch.rand(()).item() - 1)
        cases.append({"scores": scores, "T": T, "d": width, "factor": factor})
    found = open_figure("softmax").evaluate("cases => cases.map(live.softmax.find)", cases)
    for case, one in zip(cases, found, strict=True):
        scores = torch.tensor(case["scores"], dtype=torch.float64)
        given = scores * (1 if case["factor"] else math.sqrt(case["d"]))
        weights = (given / case["T"]).softmax(-1)
        jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), given / case["T"])
        wanted = torch.tensor([-torch.xlogy(weights, weights).sum(), jacobian.norm()])
        said = torch.tensor([*one["weights"], one["entropy"], one["gradient"]]).double()
        torch.testing.assert_close(said, torch.cat([weights, wanted]), **CLOSE)


def test_turned_and_added_scores_are_those_of_python(open_figure):
    d, N = rotary.D, rotary.PLACES
    q, k = torch.randn(2, d, generator=torch.Generator().manual_seed(4))
    w_q, w_k = torch.randn(2, d, d, generator=torch.Generator().manual_seed(5)) / math.sqrt(d)
    turn, e = RotaryPositions(grid=N, head_dim=d), sincos_1d(N, d)
    turned = turn(q.expand(N, d)) @ turn(k.expand(N, d)).T
    added = ((q + e) @ w_q) @ ((k + e) @ w_k).T
    every = f"Array.from({{length: {N * N}}}, (_, i) => [Math.floor(i / {N}), i % {N}])"
    page = open_figure("rotary")
    for kind, wanted in (("turned", turned), ("added", added)):
        said = page.evaluate(f"{every}.map(([t, s]) => live.rotary.{kind}(t, s))")
        torch.testing.assert_close(torch.tensor(said).view(N, N), wanted, **CLOSE)


def test_the_likeness_of_patches_is_that_of_the_tables(open_figure):
    page = open_figure("alike")
    for kind, table in enumerate((sincos_1d(54, 64), sincos_2d((6, 9), 64))):
        unit = F.normalize(table, dim=-1)
        said = page.evaluate(f"Array.from({{length: 54}}, (_, p) => live.alike.alike({kind}, p))")
        torch.testing.assert_close(torch.tensor(said), unit @ unit.T, **CLOSE)


@pytest.fixture(scope="module")
def dictionary():
    """Names of `weighted_average`: its soft dictionary, its kitten's answers while it learns."""
    path = ROOT / "book" / "attention" / "weighted_average.md"
    cells = [cell.text for cell in read_chapter(path.stem, path).cells]
    names = {"torch": torch}
    for mark in ("def soft_look_up", "# a kitten"):
        (cell,) = [text for text in cells if mark in text]
        exec(cell.split("# check")[0], names)
    return names


def test_the_soft_look_up_is_that_of_the_page(open_figure, dictionary):
    keys, values = dictionary["keys"], dictionary["values"]
    random = torch.Generator().manual_seed(0)
    queries = torch.cat([8 * torch.rand(60, 2, generator=random) - 4, keys, torch.zeros(1, 2)])
    found = open_figure("query").evaluate("all => all.map(live.query.find)", queries.tolist())
    weights = (queries @ keys.T).softmax(-1)
    answers = torch.stack([dictionary["soft_look_up"](one) for one in queries])
    said = {name: torch.tensor([one[name] for one in found]) for name in found[0]}
    torch.testing.assert_close(said["weights"], weights, **CLOSE)
    torch.testing.assert_close(said["answer"], answers, **CLOSE)
    torch.testing.assert_close(weights @ values, answers)


def test_the_steps_of_learning_are_those_of_the_page(open_figure, dictionary):
    wanted = torch.stack(dictionary["answers"]).detach()
    steps = len(wanted) - 1
    found = open_figure("query").evaluate(
        f"live.query.learn({query.KITTEN}, {steps}).map((one) => live.query.find(one).answer)"
    )
    torch.testing.assert_close(torch.tensor(found), wanted, **CLOSE)


def texts(page, selector):
    return page.locator(selector).all_inner_texts()


def test_the_softmax_is_set_by_keys_by_finger_and_by_a_sentence(open_figure):
    page = open_figure("softmax", has_touch=True)
    weights = "#live-softmax .softmax-row b"
    assert texts(page, weights) == ["0.64", "0.24", "0.09", "0.03"]
    page.get_by_label("Score of key 4").focus()
    page.keyboard.press("End")
    assert texts(page, weights)[3] == "0.83"
    page.wait_for_function("document.querySelector('.live-said').textContent.includes('Key 4')")
    page.get_by_role("button", name="with 1/√d").tap()
    assert texts(page, weights)[0] == "0.02"
    page.locator("#live-softmax").get_by_role("button", name="Back").tap()
    page.locator("#set-softmax").click()
    assert float(texts(page, weights)[0]) > 0.99
    box = page.locator("#live-softmax .live-handle").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 150, box["y"] + 20, steps=4)
    page.mouse.up()
    assert texts(page, weights)[0] == "<0.001"


WEIGHTS = "#live-query .query-row b"
TOLD = "#live-query .query-told"


def weighs(page):
    """The three weights as numbers, and where the query is."""
    said = [float(one.replace("<", "")) for one in texts(page, WEIGHTS)]
    return said, page.locator("#live-query [role=slider]").get_attribute("aria-valuetext")


def test_the_query_is_moved_by_keys_by_buttons_and_by_a_sentence(open_figure):
    page = open_figure("query")
    figure, grip = page.locator("#live-query"), page.locator("#live-query [role=slider]")
    grip.focus()
    for key in ("ArrowLeft",) * 4 + ("Shift+ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert weighs(page) == ([0.69, 0.15, 0.15], "right 0.00, up 1.00, length 1.00")
    assert page.locator(TOLD).inner_text().startswith("Nearest key: cat, 0.00 away, weight 0.69.")
    page.keyboard.press("PageUp")
    page.get_by_role("button", name="Twice as long").click()
    assert weighs(page) == ([0.995, 0.002, 0.002], "right 0.00, up 4.00, length 4.00")
    assert page.locator(TOLD).inner_text().startswith("Nearest key: cat, 3.00 away, weight 0.995.")
    longer = page.get_by_role("button", name="Twice as long")
    assert longer.get_attribute("aria-disabled") == "true"
    longer.press("Enter")  # no further than the edge
    assert weighs(page)[1] == "right 0.00, up 4.00, length 4.00"
    page.wait_for_function(
        "document.querySelector('#live-query .live-said').textContent"
        ".includes('cat 0.995, fish 0.002, bear 0.002')"
    )
    page.get_by_role("button", name="Half as long").click()
    page.locator("#set-query").click()
    assert weighs(page)[1].endswith("length 4.00")
    figure.get_by_role("button", name="Back").click()
    assert weighs(page)[1] == "right 0.40, up 1.80, length 1.84"
    page.evaluate("live.query.set({x: '0', y: '0'})")
    assert weighs(page)[0] == [0.33, 0.33, 0.33]
    page.evaluate("live.query.set({learn: '60'})")
    assert page.locator("#live-query .query-plane .query-trail circle").count() == 61
    assert page.locator(TOLD).inner_text().endswith("The answer is 0.15 away from it.")
    grip.press("Home")
    assert page.locator("#live-query .query-trail circle").count() == 0


def test_the_query_is_dragged_and_the_answer_stays_among_the_values(open_figure):
    page = open_figure("query", has_touch=True, viewport={"width": 390, "height": 844})
    grip = page.locator("#live-query [role=slider]")
    grip.hover(position={"x": 30, "y": 30})  # beside its middle: it does not jump
    page.mouse.down()
    room = page.locator(".query-plane").bounding_box()
    assert weighs(page)[1] == "right 0.40, up 1.80, length 1.84"
    seen = []
    for at in range(12):  # round the plane and beyond it
        page.mouse.move(195 + 250 * math.cos(at), room["y"] + 160 + 250 * math.sin(at))
        spot = page.locator(".query-answer")
        seen.append([float(spot.get_attribute("cx")), -float(spot.get_attribute("cy"))])
    page.mouse.up()
    inside = torch.tensor(seen)
    corners = torch.tensor([*query.VALUES, query.VALUES[0]])
    for one, other in itertools.pairwise(corners):  # on the same side of each edge
        edge, way = other - one, inside - one
        assert (edge[0] * way[:, 1] - edge[1] * way[:, 0] > -1e-6).all()
    assert len({tuple(one) for one in seen}) > 6
    page.touchscreen.tap(room["x"] + 20, room["y"] + 20)  # a tap brings it there
    assert weighs(page)[1].startswith("left 3.")


def rest_at(page, label, place):
    """Where on its track a handle rests, as a position on the screen, ``place`` from 0 to 1."""
    handle = page.get_by_label(label)
    handle.scroll_into_view_if_needed()
    box = handle.locator("..").bounding_box()
    return box["x"] + place * box["width"], box["y"] + box["height"] / 2


def test_a_click_or_a_tap_on_a_track_moves_the_handle_there_and_scrolling_does_not(open_figure):
    page = open_figure("softmax", has_touch=True)
    handle = page.get_by_label("Score of key 4")
    page.mouse.click(*rest_at(page, "Score of key 4", 0.75))
    assert handle.get_attribute("aria-valuetext") == "2.0"
    page.touchscreen.tap(*rest_at(page, "Score of key 4", 0.25))
    assert handle.get_attribute("aria-valuetext") == "−2.0"
    page.keyboard.press("ArrowRight")  # it has the focus
    assert handle.get_attribute("aria-valuetext") == "−1.9"
    handle.evaluate("one => { one.closest('.live').style.width = '300px'; }")  # a short track
    page.touchscreen.tap(*rest_at(page, "Score of key 3", 0.25))
    assert page.get_by_label("Score of key 3").get_attribute("aria-valuetext") == "−2.0"
    page.mouse.click(*rest_at(page, "Score of key 3", 0.26))  # on the knob: it stays
    assert page.get_by_label("Score of key 3").get_attribute("aria-valuetext") == "−2.0"
    x, y = rest_at(page, "Score of key 4", 0.9)
    finger = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y - down} for down in (0, 60, 120)]
    for kind, at in zip(("touchStart", "touchMove", "touchMove"), points, strict=True):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert handle.get_attribute("aria-valuetext") == "−1.9"


def test_what_the_words_of_the_softmax_promise_comes(open_figure):
    """`scaled_dot_product`: the sentences of the figure in their order, each from the start."""
    page = open_figure("softmax")
    weights, meters = "#live-softmax .softmax-row b", "#live-softmax .softmax-meter b"
    assert texts(page, meters) == ["0.95 of 1.39", "0.38 of 0.50"]
    page.mouse.click(*rest_at(page, "Temperature", 0))
    cold = texts(page, weights)
    assert cold == ["1.00", "<0.001", "<0.001", "<0.001"]  # one takes all
    assert texts(page, meters) == ["0.00050 of 1.39", "0.00009 of 0.50"]  # the gradient goes
    page.locator("#live-softmax").get_by_role("button", name="Back").click()
    page.get_by_role("button", name="with 1/√d").click()
    assert texts(page, weights)[0] == "0.86"
    page.mouse.click(*rest_at(page, "Width", 0.5))  # to 64; all the way
    assert texts(page, weights) == cold
    page.get_by_label("Width").press("End")
    assert texts(page, weights) == cold  # the same
    assert texts(page, meters)[1] == "0.00000 of 0.50"


def test_the_gradient_of_a_softmax_is_at_most_a_half():
    w = torch.distributions.Dirichlet(torch.full((4,), 0.3)).sample((20_000,)).double()
    sizes = (torch.diag_embed(w) - w[:, :, None] * w[:, None]).flatten(1).norm(dim=-1)
    assert 0.49 < sizes.max() <= 0.5


def test_both_places_move_together_and_only_the_added_score_moves(open_figure):
    page = open_figure("rotary")
    scores = "#live-rotary .rotary-scores b"
    before = texts(page, scores)
    page.get_by_label("Both together").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    after = texts(page, scores)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert texts(page, "#live-rotary .rotary-control b") == ["7", "10", "7 and 10"]
    together = page.get_by_label("Both together")
    assert together.get_attribute("aria-valuetext") == "query at 7, key at 10"
    page.keyboard.press("End")  # the key stays on the line
    assert texts(page, "#live-rotary .rotary-control b") == ["28", "31", "28 and 31"]
    page.get_by_label("Place of the query").focus()
    page.keyboard.press("Home")
    assert texts(page, scores)[0] != before[0]


def test_what_the_words_of_turned_or_added_promise_comes(open_figure):
    """`positions`: the sentences of the figure in their order."""
    page = open_figure("rotary")
    scores = "#live-rotary .rotary-scores b"
    angles = """[...document.querySelectorAll("#live-rotary line.rotary-query")].map(
        (hand) => Math.atan2(-hand.getAttribute("y2"), hand.getAttribute("x2")))"""
    lengths = """[...document.querySelectorAll("#live-rotary .rotary-dials line")].map(
        (hand) => Math.hypot(hand.getAttribute("y2"), hand.getAttribute("x2")))"""
    assert min(page.evaluate(lengths)) > 0.5  # no hand is a dot
    before, angle = texts(page, scores), page.evaluate(angles)
    page.mouse.click(*rest_at(page, "Both together", 9 / 31))  # by 8 places
    after, moved = texts(page, scores), page.evaluate(angles)
    turned = [math.remainder(b - a, math.tau) for a, b in zip(angle, moved, strict=True)]
    wanted = [math.remainder(8 * 10000 ** (-i / 8), math.tau) for i in range(8)]
    assert turned == pytest.approx(wanted, abs=1e-4)
    assert all(abs(one) > 0.2 for one in turned[:4])  # the fast hands turn
    assert all(abs(one) < 0.1 for one in turned[4:])  # the slow ones hardly
    assert after[0] == before[0]
    assert after[1] != before[1]
    page.get_by_label("Place of the key").press("ArrowRight")
    alone = texts(page, scores)
    assert all(one != other for one, other in zip(alone, after, strict=True))  # both scores move
    spoken = page.locator("#live-rotary .live-hidden").inner_text()
    assert spoken.count("° a place: q at") == 8


def test_a_patch_is_chosen_by_click_by_keys_and_by_a_sentence(open_figure):
    page = open_figure("alike")
    told = "#live-alike .alike-map > p:last-child"
    assert not any("0." in one for one in texts(page, told))  # a guess is not spoilt
    page.locator("#live-alike [role=radio]").nth(54 + 4).click()
    chosen = page.locator("#live-alike [aria-checked=true]")
    names = [one.get_attribute("aria-label") for one in chosen.all()]
    assert names == ["row 1, column 5: similarity 1.00"] * 2
    chosen.last.focus()
    page.keyboard.press("ArrowDown")
    assert chosen.last.get_attribute("aria-label") == "row 2, column 5: similarity 1.00"
    page.locator("#set-alike").click()
    assert chosen.last.get_attribute("aria-label") == "row 6, column 9: similarity 1.00"


def test_what_the_words_of_who_is_like_whom_promise_comes(open_figure):
    """`positions`: the first patch of any lower row, with both tables."""
    page = open_figure("alike", viewport={"width": 700, "height": 900})
    boards = [one.bounding_box() for one in page.locator("#live-alike .live-patches").all()]
    assert boards[0]["y"] == boards[1]["y"]  # both on one screen
    for row in range(1, 6):
        page.locator("#live-alike [role=radio]").nth(9 * row).click()
        numbered, addresses = texts(page, "#live-alike .alike-map > p:last-child")
        assert numbered.startswith("End of the row above 0.97, to the right 0.97")
        assert addresses.startswith("End of the row above 0.81")
        assert "to the right 0.98" in addresses


FAILED = """([name, values]) => {
    try { live[name].set(values); } catch (error) { return error.message; }
}"""


@pytest.mark.parametrize("name", FIGURES)
def test_a_setting_that_does_not_exist_is_an_error(open_figure, name):
    page = open_figure(name)
    for values in ({"gone": "1"}, {"row": "99"}, {"d": "7"}, {"query": "40"}):
        said = page.evaluate(FAILED, [name, values])
        assert "there is no such" in said


@pytest.mark.parametrize("name", FIGURES)
def test_the_table_holds_the_numbers_and_all_fits_on_a_phone(open_figure, name):
    page = open_figure(name, viewport={"width": 390, "height": 844})
    page.locator(f"#live-{name} summary").click()
    rows, wanted = (
        page.locator(f"#live-{name} tbody tr"),
        {"softmax": 4, "rotary": 29, "alike": 54, "query": 4},
    )
    rows.nth(wanted[name] - 1).wait_for()  # a table is filled after it was opened
    assert rows.count() == wanted[name]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
