"""Name the fault: its numbers are those of the recorded trainings, and findings name each fault."""

import base64
import itertools
import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_live_frame import ROOT

from vitbook.book.clinic import PATIENTS, load_patient
from vitbook.book.faults import FAULTS as KNOWN
from vitbook.book.faults import model_with
from vitbook.book.records import load_record
from vitbook.data import pointer
from website.live.fault import data
from website.live.fault_words import FAULTS, TESTS

PAGE = """```{live} fault
:title: Name the fault
:data: fault
Run tests. You should see one that differs.
+++
A still.
```

{live}`The third <fault patient=c tests=first,twice>`.
"""
KEYS = list(TESTS)
NUMBERS = {fault: number for number, fault in PATIENTS.items()}


@pytest.fixture(scope="module")
def made():
    return data()


@pytest.fixture(scope="module")
def rows(made):
    """Name -> an array with a row for the healthy model and each patient."""

    def unpacked(one):
        kind = next(k for k in ("u8", "f32") if k in one)
        values = np.frombuffer(base64.b64decode(one[kind]), {"u8": "u1", "f32": "<f4"}[kind])
        return values.reshape(one["shape"])

    return {name: unpacked(one) for name, one in made["arrays"].items()}


@pytest.fixture(scope="module")
def names(made):
    """The faults in the order of the rows."""
    return ["none", *(made["faults"][at][0] for at in made["patients"])]


# --- the data ---


def test_the_faults_are_those_of_the_clinic_in_the_words_of_its_page_and_another_order(made, names):
    assert list(FAULTS) == list(KNOWN) == [name for name, *_ in made["faults"]]
    assert sorted(made["patients"]) == list(range(12))
    page = (ROOT / "book/vit/training_depth_clinic.md").read_text("utf8").replace("`", "")
    for name, line, *_ in made["faults"]:
        assert f"* - {name}\n  - {line}\n" in page
    assert sum(NUMBERS[fault] == at for at, fault in enumerate(names) if at) <= 2


LATE = 12  # of the hundred means of the loss are the last hundred of 800 updates


@torch.no_grad()
def test_what_is_measured_is_what_the_clinics_patients_answer(rows, names):
    """Worked out anew, from the black boxes that readers get."""
    images, labels, *_ = pointer(200, seed=0)
    moved = images.unflatten(2, (3, 8)).flip(2).flatten(2, 3)
    record = load_record("clinic")
    for row, fault in list(enumerate(names))[1:]:
        patient = load_patient(NUMBERS[fault])
        found = dict(zip(KEYS, rows["values"][row], strict=True))
        torch.manual_seed(0)
        logits, late = patient.logits(images), np.mean(patient.loss[-LATE:])
        sums = patient.maps(images).sum(-1)
        expected = {
            "code": (logits - model_with(patient.weights)(images)).abs().max(),
            "sums": sums.flatten()[(sums - 1).abs().argmax()],
            "new": late - F.cross_entropy(logits, labels),
        }
        if fault != "never in evaluation mode":  # which draws new noise at each call
            expected["rows"] = (logits - patient.logits(moved)).abs().max()
            expected["twice"] = torch.zeros(())
        for key, value in expected.items():
            assert found[key] == pytest.approx(float(value), abs=1e-4), (fault, key)
        curves = {"loss": patient.loss, "accuracy": patient.accuracy, "late": late}
        curves["seeds"] = record.values("test_accuracy", fault=fault)
        curves["trained"] = record.values("train_accuracy", fault=fault)[0]
        for key, value in curves.items():
            assert rows[key][row] == pytest.approx(value, abs=1e-6), (fault, key)


def fewest(signs, row):
    """The fewest tests whose signs no other row has."""
    others = [signs[other] for other in range(1, 13) if other != row]
    for count in range(1, len(KEYS) + 1):
        for tests in itertools.combinations(range(len(KEYS)), count):
            if all((one[list(tests)] != signs[row][list(tests)]).any() for one in others):
                return count
    return None


def test_one_to_three_tests_name_each_fault_and_the_first_loss_none(rows, names):
    signs, first = rows["signs"].astype(int), KEYS.index("first")
    needed = dict(zip(names[1:], (fewest(signs, row) for row in range(1, 13)), strict=True))
    assert set(needed.values()) == {1, 2, 3}
    assert (signs[0] == 0).all()
    assert (signs[:, first] == 0).all()
    assert abs(rows["values"][:, first] - math.log(4)).max() < 0.02
    assert needed["scores not divided by sqrt(d)"] == 3
    for row, name in list(enumerate(names))[1:]:
        shows = KEYS.index(FAULTS[name][2])
        assert signs[row, shows] != 0
        alike = (signs[1:, shows] == signs[row, shows]).sum()
        assert (alike == 1) == (needed[name] == 1), name


def test_a_finding_differs_by_the_rule_that_the_page_states(made, rows):
    """More than 0.3 from the healthy one; where the name says "0 or not", only if it is 0."""
    for at, (_, _, name, _, _, zero) in enumerate(made["tests"]):
        found, differs = rows["values"][:, at], rows["signs"][:, at] != 0
        assert ("(0 or not)" in name) == zero
        expected = np.abs(found) < 1e-3 if zero else np.abs(found - found[0]) > 0.3
        assert (differs == expected).all(), name


def test_what_the_page_says_of_the_healthy_model_and_of_curves_holds(rows, names):
    """Silenced attention leaves the same answer for all images, the last MLP does not; five curves
    show nothing, and their accuracies are those of the healthy model."""
    healthy = dict(zip(KEYS, rows["values"][0], strict=True))
    assert healthy["mix"] < 1e-6 < 1 < healthy["mlp"]
    assert rows["curves"][0] == 0
    like = {name for name, kind in zip(names, rows["curves"], strict=True) if kind == 0}
    unseen = {name for name, seeds in zip(names, rows["seeds"], strict=True) if min(seeds) > 0.99}
    assert len(like - {"none"}) == 5
    assert unseen - like == {"labels shuffled in a quarter of batches"}
    assert like < unseen


# --- in the browser ---


def written(value, digits):
    """As the page writes a number: with a true minus, without minus zero."""
    text = f"{abs(float(value)):.{digits}f}"
    return ("\u2212" if value < 0 and float(text) else "") + text


def percent(value):
    return f"{written(100 * float(value), 1)}\u00a0%"


SHOWN = """() => {
    const seen = [], all = (selector) => [...document.querySelectorAll(selector)];
    for (let p = 0; p < 12; p++) {
        all(".fault-test").forEach((test) => test.click());
        all("#live-fault .live-button")[1].click(); // the answer
        seen.push({
            results: all(".fault-test b").map((node) => node.textContent),
            healthy: all(".fault-test small").map((node) => node.textContent),
            facts: all(".fault-facts p").map((node) => node.textContent),
            images: all(".fault-frame svg").map((node) => node.getAttribute("aria-label")),
            points: all(".fault-patient").map((node) => node.getAttribute("points")),
            told: document.querySelector(".fault-told").textContent,
        });
        if (p < 11) all("#live-fault .live-button")[2].click(); // the next
    }
    return seen;
}"""


def beside(differs, zero, text):
    like = "not 0, like healthy" if zero else "like healthy"
    return f"{'differs from healthy' if differs else like} {text}"


@pytest.mark.browser
def test_every_number_on_the_page_is_pythons(page, made, rows, names):
    shown = page.evaluate(SHOWN)
    digits = [test.digits for test in TESTS.values()]
    healthy, signs = rows["values"][0], rows["signs"].astype(int)
    zeros = [zero for *_, zero in made["tests"]]
    for row, seen in enumerate(shown, 1):
        found = rows["values"][row]
        assert seen["results"] == [written(v, d) for v, d in zip(found, digits, strict=True)]
        wanted = [written(v, d) for v, d in zip(healthy, digits, strict=True)]
        said = zip(signs[row], zeros, wanted, strict=True)
        assert seen["healthy"] == [beside(*one) for one in said]
        facts = [rows["late"], rows["trained"], rows["seeds"][:, 0]]
        for said, values, form in zip(
            seen["facts"], facts, (lambda v: written(v, 2), percent, percent), strict=True
        ):
            assert said.endswith(f" {form(values[row])} healthy {form(values[0])}")
        loss, accuracy = rows["loss"], rows["accuracy"]
        for said, curve, form in zip(
            seen["images"], (loss, accuracy), (lambda v: written(v, 2), percent), strict=True
        ):
            ends = [form(curve[at, end]) for at in (row, 0) for end in (0, -1)]
            assert f"from {ends[0]} to {ends[1]}; healthy from {ends[2]} to {ends[3]}" in said
        drawn = [[100 - float(xy.split(",")[1]) for xy in line.split()] for line in seen["points"]]
        assert np.allclose(drawn[0], 100 * loss[row] / 1.6, atol=1e-4)
        assert np.allclose(drawn[1], 100 * accuracy[row], atol=1e-4)
        assert seen["told"].startswith(f"It is: {names[row]}. {FAULTS[names[row]][1]}")
        assert all(percent(value) in seen["told"] for value in rows["seeds"][row])
        count = fewest(signs, row)
        words = "One finding suffices" if count == 1 else f"Of your findings {count} suffice"
        assert words in seen["told"]
        assert f"“{TESTS[FAULTS[names[row]][2]].name}”: " in seen["told"]
    assert "the last patient. Named with proof: 0 of 12; wrong names: " in shown[-1]["told"]


FOLLOWED = """() => {
    const seen = [], all = (selector) => [...document.querySelectorAll(selector)];
    const one = (selector) => all("#live-fault " + selector)[0];
    const press = (words) => all(".live-button").find((b) => b.textContent === words).click();
    one(".fault-strike input").click();
    for (let p = 0; p < 12; p++) {
        let run = 0;
        const left = () => one(".fault-now b").textContent;
        while (left() !== "1 fault left of 12.") all(".fault-test")[run++].click();
        one(".fault-name:not(.fault-ruled) input").click();
        press("Name it");
        seen.push([run, one(".fault-told").textContent]);
        if (p < 11) press("Next patient");
    }
    return seen;
}"""


@pytest.mark.browser
def test_the_instruction_followed_from_the_top_names_each_patient_and_the_game_ends(
    page, rows, names
):
    chapter = (ROOT / "book/vit/training.md").read_text("utf8")
    assert "Run tests until one fault is left; a normal finding rules out, too." in chapter
    signs, seen = rows["signs"].astype(int)[1:], page.evaluate(FOLLOWED)
    for at, (run, words) in enumerate(seen):
        left = [(signs[:, :n] == signs[at, :n]).all(1).sum() for n in (run - 1, run)]
        assert left[0] > left[1] == 1
        assert words.startswith(f"Right: {names[at + 1]}. ")
    runs = sum(run for run, _ in seen)
    score = f"Named with proof: 12 of 12, with {runs} tests (fewest possible: 15); wrong names: 0."
    assert seen[-1][1].endswith(f"That was the last patient. {score}")
    marks = page.locator(".live-table", has_text="Your score")
    assert marks.locator("tbody tr").count() == 12
    page.get_by_role("button", name="Again, from A").click()
    assert page.locator(".fault-head").inner_text().split("\n")[0].startswith("Patient A, 1 of 12")
    assert page.locator(".fault-known").count() == 0
    assert marks.is_hidden()


def told(page):
    return page.locator(".fault-told").inner_text()


@pytest.mark.browser
def test_a_fault_is_found_with_the_keyboard_alone(page):
    first = page.locator(".fault-test").first
    first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # the next group of tests
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # the same images twice
    page.locator(
        ".live-said",
        has_text="change of the logits: 2.80, differs from healthy 0.00. 1 fault left of 12.",
    ).wait_for(state="attached")
    found = "The same images twice, change of the logits: 2.80, differs from healthy 0.00"
    assert page.get_by_role("button", name=found, exact=True).is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # strike out
    assert page.locator(".fault-ruled").count() == 11
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")  # the last fault
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert told(page).startswith("Right: never in evaluation mode.")
    assert (
        page.locator(".fault-head span").inner_text()
        == "Named with proof: 1 of 1, with 2 tests (fewest possible: 1); wrong names: 0."
    )
    page.keyboard.press("Enter")  # the focus waits on the next patient
    assert page.locator(".fault-head b").inner_text() == "Patient B, 2 of 12"


@pytest.mark.browser
def test_a_wrong_name_hears_what_speaks_against_it_and_a_right_one_without_proof_what_is_left(page):
    names, button = page.get_by_role("radio"), page.get_by_role("button", name="Name it")
    twice = page.get_by_role("button", name="The same images twice")
    score = page.locator(".fault-head span")
    assert button.is_disabled()
    names.nth(8).check()
    button.click()
    assert told(page).startswith("Right, but not proven: never in evaluation mode.")
    assert "Your findings do not exclude 11 others" in told(page)
    assert "“The same images twice, change of the logits” does." in told(page)
    twice.click()  # too late
    assert score.inner_text().startswith("Named with proof: 0 of 1; wrong names: ")
    page.reload()
    names.nth(4).check()  # positions added twice, and nothing is known yet
    button.click()
    assert told(page).startswith("No. So far nothing speaks against")
    twice.click()
    button.click()
    assert "gave 0.00; here it gives 2.80" in told(page)
    names.nth(8).check()
    button.click()
    assert score.inner_text().endswith("wrong names: 2.")


@pytest.mark.browser
def test_a_sentence_runs_tests_and_a_strange_one_is_refused(page):
    page.locator("a.live-set").click()
    page.locator(".fault-head b", has_text="Patient C, 3 of 12").wait_for()
    assert page.locator(".fault-known").count() == 2
    table = page.locator(".live-table", has_text="The curves as a table")
    table.locator("summary").click()
    table.locator("tbody tr").nth(3).wait_for()
    assert table.locator("th").last.inner_text() == "800"
    for strange in ({"patient": "m"}, {"patient": "a", "tests": "none"}, {"test": "first"}):
        page.evaluate(
            "(to) => { document.querySelector('a.live-set').dataset.set = to; }",
            json.dumps(strange),
        )
        page.locator("a.live-set").click()
    page.wait_for_timeout(50)
    assert len(page.errors) == 3
    assert all("there is no such setting" in one for one in page.errors)
    page.errors.clear()
