"""Map and answer: it ranks as PyTorch does, asks before it shows, and its words are true."""

import math
import re

import pytest
import torch
from page import running, write_asking
from test_bill import slider
from vitbook.figures.looking import CLASSES, LEFT, cifar_model, in_shares, photographs

from vitbook.data import STATISTICS, normalize
from vitbook.inspection import attention_maps
from vitbook.inspection.occlusion import occlusion as replaced
from website.live import occlusion
from website.live.pack import script

pytestmark = pytest.mark.browser
ASKS = """<div class="predict" id="predict-five" data-predict="five" data-answer="none"
data-choices='["none", "one", "two", "three", "four", "five"]'><p class="predict-title">Predict</p>
<p>How many?</p><div class="ask-both"><div class="ask-asked"><ul class="predict-choices">
<li><p>none</p></li><li><p>one</p></li><li><p>two</p></li><li><p>three</p></li><li><p>four</p></li>
<li><p>five</p></li></ul></div><div class="predict-explained"><p class="predict-right">none</p>
<p>Chance has none.</p></div></div></div>"""
TOLD, TODO, SIDE = ".occ-told", ".occ-todo", ".occ-side"
MAP, ANSWER, STRIP = (
    "Patch in the map",
    "Patch in the picture of the answer",
    "Patches in the map’s order",
)


@pytest.fixture(scope="module")
def known():
    """For each photograph: even shares, drops, the answer and how sure it is."""
    _, seen = photographs()
    model, x = cifar_model("deep"), normalize(seen, *STATISTICS["cifar10"])
    shares = 145 * attention_maps(model, x)[-1].mean(1)[:, 0, 1:]
    sure, answers = model(x).detach().softmax(-1).max(-1)
    drops = replaced(model, x, 3).flatten(1)
    return [
        (shares[at], drops[at], CLASSES[answers[at]], sure[at].item()) for at in range(len(LEFT))
    ]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("occlusion")
    (folder / "data.js").write_text(script("occlusion", occlusion.data()), "utf8")
    pages = (("asks", ASKS), ("open", ""))
    return {name: write_asking(folder, "occlusion", asks, "data.js") for name, asks in pages}


@pytest.fixture
def opened(new_page, addresses):
    """opened(name): the page, when the figure runs."""
    return lambda name="asks", **options: running(
        new_page, addresses[name], "occlusion", reduced_motion="reduce", **options
    )


def text(page, where):
    return " ".join(page.locator(where).inner_text().split())


def test_the_patches_stand_in_pytorchs_order(opened, known):
    page = opened("open")
    for at, (shares, drops, answer, _) in enumerate(known):
        found = page.evaluate("at => ({...live.occlusion.read(at)})", at)
        moves = in_shares(drops[None])[0]
        for order, values in ((found["byMap"], shares), (found["byMove"], moves)):
            assert sorted(order) == list(range(144))
            assert (values[order].diff() <= 1e-6).all()
        assert found["moves"] == pytest.approx(moves.tolist(), rel=1e-4)
        five = [set(values.topk(5).indices.tolist()) for values in (shares, moves)]
        assert found["common"] == len(five[0] & five[1])
        assert found["answer"] == answer


def test_it_asks_before_it_shows(opened, known):
    page = opened()
    figure = page.locator("#live-occlusion")
    seen = figure.inner_text()
    assert "1st of 144 in the map" in seen
    assert not re.search(r"for the answer|falls|rises|stays|In common|of the five", seen)
    assert page.locator(".occ-frame.occ-of-answer").count() == 0
    shown = ".occ-answer .occ-heat rect:not([fill-opacity='0'])"
    assert page.locator(shown).count() == 0
    slider(page, MAP).press("Home")  # the map alone can be walked over
    assert text(page, TOLD).startswith("Row 1, column 1: ")
    assert "answer" not in slider(page, MAP).get_attribute("aria-valuetext")
    page.locator("summary").click()
    assert page.locator("tbody tr").first.inner_text().split("\t")[3] == "your guess first"
    assert page.locator("tbody tr").count() == 144
    page.locator("summary").click()
    figure.get_by_role("radio", name="three").check()
    figure.get_by_role("button", name="fairly").click()
    assert text(page, ".ask-said") == "You said three, fairly sure. Right is none."
    assert "you said three, it is none of five" in text(page, SIDE)
    marked = "all => all.map(one => one.className.trim())"  # the third alone, and none is filled
    assert page.locator(".occ-five i").evaluate_all(marked) == ["", "", "occ-said", "", ""]
    assert page.locator(shown).count() > 20
    assert page.locator(".occ-frame.occ-of-answer").count() == 10  # in both pictures
    slider(page, STRIP).press("ArrowRight")
    assert not page.locator(".ask-said").is_visible()  # it was said before the first move
    figure.get_by_role("button", name="Another photograph").click()
    assert "you said" not in text(page, SIDE)  # of another photograph nothing was guessed
    assert known[1][2] in text(page, ".occ-says")
    page.evaluate("kept.change(({ answers }) => delete answers.five)")
    assert page.locator(shown).count() == 0
    assert "frog" in text(page, ".occ-says")


def middle(page, patch):
    """Where a patch lies in the picture of the answer."""
    box, side = page.locator(".occ-answer").bounding_box(), 12
    row, column = divmod(patch, side)
    return [
        box[at] + (place + 0.5) * box[size] / side
        for at, size, place in (("x", "width", column), ("y", "height", row))
    ]


WORDS = re.compile(
    r"Row (\d+), column (\d+) in the mean colour: “(\w+)” (rises from|falls from|stays at) "
    r"([\d.]+)(?: to ([\d.]+))? %\. It is (\d+)\w\w of 144 in the map, (\d+)\w\w for the answer\."
)


def test_each_sentence_is_true(opened, known):
    """In each photograph all three controls at both ends and one step from them, and the peaks."""
    page = opened("open")
    for shares, drops, answer, sure in known:
        by_map = shares.argsort(descending=True).tolist()
        by_move = drops.abs().argsort(descending=True).tolist()
        said = text(page, TOLD)
        common = len(set(by_map[:5]) & set(by_move[:5]))
        assert ("none is among" in said) == (common == 0), said
        found = set()
        walk = [(name, key) for name in (MAP, ANSWER, STRIP) for key in ("End", "ArrowLeft")]
        walk += [(name, key) for name in (MAP, ANSWER, STRIP) for key in ("Home", "ArrowRight")]
        walk += [(STRIP, "Home"), ("mouse", by_move[0])]
        for name, key in walk:
            before = text(page, TOLD)
            if name == "mouse":
                page.mouse.move(*middle(page, key))
            else:
                slider(page, name).press(key)
            words, todo = text(page, TOLD), text(page, TODO)
            if words == before:
                continue
            row, column, named, how, start, end, in_map, in_answer = WORDS.fullmatch(words).groups()
            patch = 12 * (int(row) - 1) + int(column) - 1
            after = sure * math.exp(-drops[patch].item())
            assert named == answer
            assert float(start) == pytest.approx(100 * sure, abs=0.051), words
            assert float(end or start) == pytest.approx(100 * after, abs=0.051), words
            assert how != "rises from" or after > sure, words
            assert how != "falls from" or after < sure, words
            assert [by_map[int(in_map) - 1], by_move[int(in_answer) - 1]] == [patch, patch], words
            found |= {patch} & {by_map[0], by_move[0]}
            assert ("moves the answer most. Now" in todo) == (
                patch == by_move[0] and by_map[0] not in found
            )
            assert todo.startswith("The map’s strongest patch") == (
                patch == by_map[0] and by_move[0] not in found
            )
        assert found == {by_map[0], by_move[0]}
        assert text(page, TODO).startswith(
            "Three photographs" if answer == known[2][2] else "One photograph is one sample"
        )
        page.get_by_role("button", name="Another photograph").click()


def test_a_mouse_moves_the_frame_by_passing_and_a_finger_by_a_tap(opened):
    page = opened("open", has_touch=True)
    page.mouse.move(*middle(page, 6 * 12 + 4))
    assert text(page, ".occ-ranks").startswith("Row 7, column 5")
    for kind in ("map", "answer"):  # one frame on both
        chosen = page.locator(f".occ-{kind} .occ-chosen")
        assert [chosen.get_attribute(name) for name in "xy"] == ["4", "6"]
    page.mouse.move(5, 5)
    assert text(page, ".occ-ranks").startswith("Row 7, column 5")  # it stays
    page.touchscreen.tap(*middle(page, 2 * 12 + 1))
    assert text(page, ".occ-ranks").startswith("Row 3, column 2")
    strip = page.locator(".occ-strip").bounding_box()
    page.mouse.move(strip["x"] + 2, strip["y"] + 9)
    assert "1st in the map" in text(page, ".occ-ranks")
    assert slider(page, STRIP).get_attribute("aria-valuenow") == "1"


def test_a_sentence_sets_it_and_is_refused_what_there_is_not(opened):
    page = opened()
    page.evaluate("live.occlusion.set({photo: 'temple', patch: '2-1'})")
    assert text(page, TOLD).startswith("Row 2, column 1 in the mean colour")
    page.evaluate("live.occlusion.set({photo: 'flower'})")
    assert "It is a flower" in text(page, TOLD)
    failed = "values => { try { live.occlusion.set(values); } catch (e) { return e.message; } }"
    for values in ({"gone": "1"}, {"photo": "dog"}, {"patch": "13-1"}, {"patch": "x"}):
        assert "there is no such setting" in page.evaluate(failed, values)


def test_the_map_names_none_of_the_five_with_room_to_spare(known):
    """The prediction's answer, on processors that round otherwise, too."""
    shares, drops, answer, _ = known[0]
    strong = torch.topk(shares, 7).indices
    assert drops[strong].abs().max() < 0.7 * drops.abs().topk(5).values[-1]
    assert answer == "frog"
