"""The bill of the merge: it counts as PyTorch does, asks before it shows, its words are true."""

import itertools
import re

import pytest
from page import running, write_asking
from playwright.sync_api import expect
from vitbook.figures.qk_merge import bill

from vitbook.layers.attention import MultiHeadSelfAttention

pytestmark = pytest.mark.browser
ASKS = """<div class="predict" id="predict-bill" data-predict="bill" data-number="6.7"
data-within="1.7" data-track="0.1 100 log" data-unit="times"><p class="predict-title">Predict</p>
<p>By what factor?</p><div class="ask-both"><div class="ask-asked"></div>
<div class="predict-explained"><p class="predict-right">6.7 times</p></div></div></div>"""
WAYS = {"separate": "separate", "merged": "merged", "reordered": "re-ordered"}
WIDTHS, HEADS, TOKENS = (
    (48, 96, 192, 384, 768, 1536),
    (1, 2, 3, 4, 6, 8, 12, 16),
    (50, 197, 577, 1025, 4097),
)
TOLD, TODO = ".bill-told", ".bill-todo"


@pytest.fixture
def opened(new_page, tmp_path):
    """opened(asks): the page, when the figure runs."""
    return lambda asks=ASKS, **options: running(
        new_page, write_asking(tmp_path, "bill", asks), "bill", reduced_motion="reduce", **options
    )


def text(page, where):
    return " ".join(page.locator(where).inner_text().replace("\u2011", "-").split())


def slider(page, name):
    return page.get_by_role("slider", name=name, exact=True)


def test_the_counts_are_those_that_pytorch_makes(opened):
    cases = [
        {"D": D, "h": h, "N": N, "n": n}
        for D, h, N in itertools.product((48, 768), (1, 2, 12, 16), (50, 197))
        for n in (1, 14, N)
    ]
    found = opened("").evaluate("cases => cases.map(live.bill.find)", cases)
    for case, one in zip(cases, found, strict=True):
        wanted = bill(case["D"], case["h"], case["N"], case["n"])
        once = one["once"].values()
        for way, name in WAYS.items():
            lines = [times * count for times, count in zip(one["times"][way], once, strict=True)]
            assert lines == list(wanted[name].values())
            assert one["total"][way] == sum(lines)
        square = case["D"] ** 2
        layer = MultiHeadSelfAttention(embed_dim=case["D"], num_heads=case["h"])
        assert layer.qkv.weight[case["D"] :].numel() == one["numbers"]["separate"]
        assert one["numbers"] == {
            "separate": 2 * square,
            "merged": case["h"] * square,
            "reordered": 2 * square,
        }


def test_the_bill_asks_before_it_shows(opened):
    page = opened()
    figure, ring = page.locator("#live-bill"), page.get_by_role("slider", name="Your guess")
    look = figure.get_by_role("button", name=re.compile("Look|Keep"))
    assert ring.get_attribute("aria-valuetext") == "no guess yet"
    assert not look.is_visible()
    seen = figure.inner_text()
    assert "262 million" in seen
    assert not re.search(r"6\.7|1,752|590|7\.1", seen)
    assert not slider(page, "Heads").is_visible()
    page.locator("summary").click()
    assert page.locator("tbody tr").all_inner_texts()[1].split() == ["merged"]
    page.locator("summary").click()
    for _ in range(50):
        ring.press("ArrowRight")
    assert look.inner_text() == "Keep 3.16"
    figure.get_by_role("button", name="fairly").click()
    assert text(page, ".ask-said").startswith("You said 3.16 times, fairly sure. It is 6.7 times")
    assert text(page, ".bill-merged .bill-total").startswith("1,752 million, 6.7 times")
    page.locator("summary").click()
    expect(page.locator("tbody tr").nth(1)).to_contain_text("1,752,007,680")
    slider(page, "Tokens that ask").press("Home")
    assert not page.locator(".ask-said").is_visible()  # it was said of other sizes
    slider(page, "Tokens that ask").press("End")
    assert page.locator(".ask-said").is_visible()
    figure.get_by_role("button", name="take it back").click()
    assert not look.is_visible()
    page.wait_for_timeout(400)  # what is spoken comes after a while
    assert "1,752" not in figure.inner_text()


def test_one_drag_is_one_move(opened):
    page = opened("")
    box = slider(page, "Tokens that ask").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 2000, middle[1], steps=30)
    page.mouse.up()
    assert text(page, TOLD).startswith("Tokens that ask 197 to 1: separate falls from 262 million")


AMOUNT = r"([\d.,]+(?: million)?)"
MOVED = rf"(separate|merged|re-ordered) (?:(grows|falls) from {AMOUNT} to|stays at) {AMOUNT}"


def value(words):
    number, _, unit = words.rstrip(",.").partition(" ")
    return float(number.replace(",", "")) * (1e6 if unit else 1)


def test_each_sentence_is_true(opened):
    """Each control at both ends and one step from them; one head and 16, one token asks and all."""
    page = opened("")
    keys = ("Home", "ArrowRight", "End", "ArrowLeft")
    names = ("Width D of the tokens", "Heads", "Tokens", "Tokens that ask")
    at = {"D": 4, "h": 6, "N": 1, "n": 8}
    ends = {"D": 5, "h": 7, "N": 4, "n": 8}
    for heads, asking, (name, which) in itertools.product(
        ("Home", "End"), ("Home", "End"), zip(names, at, strict=True)
    ):
        for one, key in (("Heads", heads), ("Tokens that ask", asking)):
            slider(page, one).press(key)
            at["h" if one == "Heads" else "n"] = {
                "Home": 0,
                "End": ends["h" if one == "Heads" else "n"],
            }[key]
        for key in keys:
            before = dict(at)
            step = {"Home": -99, "End": 99, "ArrowRight": 1, "ArrowLeft": -1}[key]
            at[which] = min(ends[which], max(0, at[which] + step))
            slider(page, name).press(key)
            if at == before:
                continue
            old, new = (
                {way: sum(lines.values()) for way, lines in bill(*sizes(one)).items()}
                for one in (before, at)
            )
            words, todo = text(page, TOLD), text(page, TODO)
            found = re.findall(MOVED, words)
            assert [one[0] for one in found] == list(WAYS.values()), words
            for way, how, start, end in found:
                assert value(end) == pytest.approx(new[way], rel=0.05), words
                assert how != "grows" or new[way] > old[way] > 0, words
                assert how != "falls" or new[way] < old[way], words
                assert not start or value(start) == pytest.approx(old[way], rel=0.05), words
            least = min(new, key=new.get)
            names = " and ".join(way for way in new if new[way] == new[least])
            assert re.search(rf"Cheapest: {names}[.,]", words), words
            share = re.search(r"([\d.]+) of separate", words)
            assert (share is None) == (least == "separate")
            if share:
                assert float(share[1]) == pytest.approx(new[least] / new["separate"], rel=0.03)
            assert ("With one head the merge pays" in todo) == (at["h"] == 0 and at["n"] == 8)
            assert ("The keys were nearly the whole bill" in todo) == (at["h"] > 0 and at["n"] == 0)
            assert ("Making keys is worth it" in todo) == (least == "separate" and at["n"] < 8)


def sizes(at):
    N = TOKENS[at["N"]]
    return WIDTHS[at["D"]], HEADS[at["h"]], N, round(N ** (at["n"] / 8))


def test_a_sentence_sets_the_bill_and_refuses_what_there_is_not(opened):
    page = opened()
    page.evaluate("live.bill.set({ask: '1'})")
    assert page.get_by_role("slider", name="Your guess").count() == 0  # the question made room
    assert text(page, TOLD).startswith("One of 197 tokens asks.")
    page.evaluate("live.bill.set({heads: '1'})")
    assert text(page, TOLD).startswith("All 197 tokens ask. The head’s M takes 116 million")
    failed = "values => { try { live.bill.set(values); } catch (error) { return error.message; } }"
    for values in ({"gone": "1"}, {"heads": "5"}, {"ask": "3"}, {"width": "700"}):
        assert "there is no such setting" in page.evaluate(failed, values)
