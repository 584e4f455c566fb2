"""The figures of single ideas: they show what Python computes, and each key does its work."""

import itertools
import json
import math
import re

import pytest
import torch
import torch.nn.functional as F
from page import FIGURES, ROOT, running, write_page

from vitbook.figures import scaled_dot_product as drawing
from vitbook.layers.positions import RotaryPositions, sincos_1d, sincos_2d
from website.live import query, rotary, softmax
from website.pages.source import read_chapter

pytestmark = pytest.mark.browser
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("figures")).as_uri()


@pytest.fixture
def open_figure(new_page, address):
    """open_figure(name, **context): the page, when the figure runs."""
    return lambda name, **options: running(new_page, f"{address}#live-{name}", name, **options)


def test_the_softmax_is_that_of_python(open_figure):
    places, draws = range(len(drawing.WIDTHS)), range(softmax.DRAWS)
    cases = [
        {"at": at, "divided": divided, "draw": draw}
        for at, divided, draw in itertools.product(places, (True, False), draws)
    ]
    found = open_figure("softmax").evaluate("cases => cases.map(live.softmax.find)", cases)
    for case, one in zip(cases, found, strict=True):
        d = drawing.WIDTHS[case["at"]]
        by = math.sqrt(d) if case["divided"] else 1
        given = drawing.meeting(case["draw"])[:, d - 1].sort().values / by
        said = torch.tensor([one["given"], one["weights"]], dtype=torch.float64)
        torch.testing.assert_close(said, torch.stack([given, given.softmax(0)]), **CLOSE)
        assert one["size"] == pytest.approx(math.sqrt(d) / by, rel=0.05)  # of 6,000 pairs
        assert given.abs().max() < drawing.SHOWN  # no dot leaves the axis


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


TODO, KEYS_TOLD = "#live-softmax .softmax-todo", "#live-softmax .softmax-told"


def told(page):
    """The lower line of the sixteen keys."""
    return " ".join(page.locator(KEYS_TOLD).inner_text().split())


def guess(page, steps, look):
    """Move the ring down from its first place and look."""
    page.get_by_label("Your guess").focus()
    for _ in range(steps):
        page.keyboard.press("ArrowDown")
    page.locator("#live-softmax").get_by_role("button", name=look, exact=True).click()


def test_the_sixteen_keys_ask_before_they_show(open_figure):
    page = open_figure("softmax", reduced_motion="reduce")
    figure, ring = page.locator("#live-softmax"), page.get_by_label("Your guess")
    assert ring.get_attribute("aria-valuetext") == "no guess yet"
    look = figure.get_by_role("button", name=re.compile("Look|Keep"))
    assert not look.is_visible()
    ring.press("Enter")
    assert "256? Drag the ring." in page.locator(TODO).inner_text()
    assert not page.get_by_label("Numbers in each vector").is_visible()
    assert "1.00" not in figure.inner_text()
    guess(page, 10, look="Keep 0.60")
    assert told(page).startswith("You said 0.60, it is 1.00.")
    figure.get_by_role("button", name="take it back").click()
    guess(page, 10, look="certain")
    assert told(page).startswith(
        "You said 0.60, it is 1.00. From 4 to 256 numbers a typical score grew from ±2.0 to ±16."
    )
    figure.get_by_role("button", name="take it back").click()
    assert not look.is_visible()
    figure.get_by_role("button", name="skip, and look").click()
    assert "the largest weight grew from 0.41 to 1.00" in told(page)
    assert not ring.is_visible()


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ({"answers": {"largest-weight": {"said": "0.3"}}}, "You said 0.30, it is 1.00."),
        ({"answers": {}, "read": True}, "At 4 numbers a typical score is ±2.0"),
        ({"answers": {}}, "A head compares"),
    ],
)
def test_what_the_page_keeps_of_its_reader_opens_the_sixteen_keys(open_figure, kept, words):
    page = open_figure("softmax", reduced_motion="reduce")
    page.add_init_script(f"globalThis.kept = {{ load: () => ({json.dumps(kept)}) }}")
    page.reload(wait_until="load")
    page.locator("#live-softmax.live-running").wait_for()
    assert told(page).startswith(words)


CHANGE = r"(grew|fell) from ±?(\d+(?:\.\d+)?) to ±?(\d+(?:\.\d+)?)"
LEAD = r"by ([\d.]+): the next gets e−[\d.]+(?: = |, less than )([\d.]+\d)"


def test_each_sentence_of_the_sixteen_keys_is_true(open_figure):
    """Each control to both ends and by one step, divided and not, in each draw."""
    page = open_figure("softmax", reduced_motion="reduce")
    figure = page.locator("#live-softmax")
    figure.get_by_role("button", name="skip, and look").click()
    handle, switch = page.get_by_label("Numbers in each vector"), figure.get_by_role("switch")
    for _ in range(softmax.DRAWS):
        for divided in (False, True):
            for key in ("Home", "ArrowRight", "End", "ArrowLeft", "End"):
                handle.press(key)
                words = told(page)
                assert words.startswith("From ")
                for way, before, after in re.findall(CHANGE, words):
                    assert (float(after) > float(before)) == (way == "grew"), words
                ((lead, part),) = re.findall(LEAD, words)
                assert math.exp(-float(lead)) == pytest.approx(float(part), abs=0.006), words
                assert not divided or "a typical score is still ±1.0" in words, words
            switch.click()
        figure.get_by_role("button", name="Another draw").click()


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
    page = open_figure("rotary", has_touch=True)
    handle, other = page.get_by_label("Place of the key"), page.get_by_label("Place of the query")
    page.mouse.click(*rest_at(page, "Place of the key", 0.75))
    assert handle.get_attribute("aria-valuenow") == "23"
    page.touchscreen.tap(*rest_at(page, "Place of the key", 0.25))
    assert handle.get_attribute("aria-valuenow") == "8"
    page.keyboard.press("ArrowRight")  # it has the focus
    assert handle.get_attribute("aria-valuenow") == "9"
    handle.evaluate("one => { one.closest('.live').style.width = '300px'; }")  # a short track
    page.touchscreen.tap(*rest_at(page, "Place of the query", 0.5))
    assert other.get_attribute("aria-valuenow") == "16"
    page.mouse.click(*rest_at(page, "Place of the query", 0.53))  # on the knob: it stays
    assert other.get_attribute("aria-valuenow") == "16"
    x, y = rest_at(page, "Place of the key", 0.9)
    finger = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y - down} for down in (0, 60, 120)]
    for kind, at in zip(("touchStart", "touchMove", "touchMove"), points, strict=True):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert handle.get_attribute("aria-valuenow") == "9"


def test_the_ring_is_dragged(open_figure):
    page = open_figure("softmax", reduced_motion="reduce")
    ring = page.get_by_label("Your guess")
    ring.hover(position={"x": 22, "y": 30})  # below its middle: it does not jump
    box = ring.bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + 22, box["y"] + 30 + 16, steps=3)  # a fifth of the bar
    page.mouse.up()
    assert ring.get_attribute("aria-valuetext") == "0.50"


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
    together, places = page.get_by_label("Both together"), "#live-rotary .rotary-control b"
    together.press("End")  # the key stays on the line
    assert texts(page, places)[1] == "31"
    assert re.fullmatch(r"query at \d+, key at 31", together.get_attribute("aria-valuetext"))
    page.get_by_label("Place of the query").press("Home")
    assert texts(page, scores)[0] != alone[0]
    assert texts(page, places)[0] == "0"
    spoken = page.locator("#live-rotary .live-hidden").inner_text()
    assert spoken.count("° a place: q at") == 8


def test_what_the_words_of_who_is_like_whom_promise_comes(open_figure):
    """`positions`: the first patch of any lower row, with both tables."""
    page, told = open_figure("alike"), "#live-alike .alike-map > p:last-child"
    assert not any("0." in one for one in texts(page, told))  # a guess is not spoilt
    for row in range(1, 6):
        page.locator("#live-alike [role=radio]").nth(9 * row).click()
        numbered, addresses = texts(page, told)
        assert numbered.startswith("End of the row above 0.97, to the right 0.97")
        assert addresses.startswith("End of the row above 0.81")
        assert "to the right 0.98" in addresses
    page.locator("#set-alike").click()
    chosen = page.locator("#live-alike [aria-checked=true]")
    names = [one.get_attribute("aria-label") for one in chosen.all()]
    assert names == ["row 6, column 9: similarity 1.00"] * 2


FAILED = """([name, values]) => {
    try { live[name].set(values); } catch (error) { return error.message; }
}"""


ROWS = {"softmax": 16, "rotary": 29, "alike": 54, "query": 4}


@pytest.mark.parametrize("name", FIGURES)
def test_a_strange_setting_is_refused_and_the_table_has_the_numbers(open_figure, name):
    page = open_figure(name)
    for values in ({"gone": "1"}, {"row": "99"}, {"d": "7"}, {"query": "40"}):
        assert "there is no such" in page.evaluate(FAILED, [name, values])
    page.locator(f"#live-{name} summary").click()
    rows = page.locator(f"#live-{name} tbody tr")
    rows.nth(ROWS[name] - 1).wait_for()  # a table is filled after it was opened
    assert rows.count() == ROWS[name]
