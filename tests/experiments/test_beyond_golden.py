"""What no golden replay runs through: refusals, timings, and what is asked of finished models."""

import json
import math
import sys

import pytest
import torch
from torch import nn

from experiments.drawn_digits.hand_drawn import NOT_SURE, Drawing, drawings, said, score, share
from experiments.drawn_digits.strokes import drawn
from experiments.full_sets import recipe
from experiments.full_sets.parts import CoarseStem
from experiments.machinery.choose import several
from experiments.machinery.experiment import load_experiment
from experiments.machinery.measures import (
    BINS,
    calibration_error,
    multiplies,
    probabilities,
    reliability,
    thin,
)
from experiments.token_mixing import mixing
from experiments.token_mixing.mixing import Task, width_of
from vitbook.book.records import Record

TIMING = load_experiment("qk_timing")
timing = sys.modules["experiment_qk_timing"]
SETS = ("mnist", "fashion-mnist", "cifar10")
TASK = Task(images=(16, 8, 1, 2), kernel_size=3, steps=1, batch_size=1)
REFUSED = {
    "a stem in training": (
        lambda: CoarseStem(in_channels=2, embed_dim=6)(torch.randn(3, 2, 32, 28)),
        r"\(B, 2, 28, 28\), got \(3, 2, 32, 28\)",
    ),
    "an odd stem": (lambda: CoarseStem(in_channels=2, embed_dim=7), "even, got 7"),
    "a pen without width": (
        lambda: drawn([[(0.1, 0.2)]], 0),
        "width must lie between 0 and 1, got 0",
    ),
    "an empty stroke": (lambda: drawn([[]], 0.08), "a stroke must be a list of points"),
    "a model that no width makes equal": (
        lambda: width_of(TASK, "Mixer"),
        "Mixer has no width with about",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_named(call, words, monkeypatch):
    monkeypatch.setattr(mixing, "TOLERANCE", 1e-6)
    with pytest.raises(ValueError, match=words):
        call()


def test_a_digit_counts_when_right_and_sure_and_all_else_when_not_sure():
    some = [Drawing(label, "plain", "middle", []) for label in ("3", "3", "4", "A", "empty")]
    rows = torch.full((5, 10), 0.01, dtype=torch.float64)
    for row, (answer, sure) in enumerate([(3, 0.9), (3, 0.4), (9, 0.8), (1, 0.3), (0, 0.9)]):
        rows[row, answer] = sure
    words = said(rows, threshold=0.5)
    assert words == ["3", NOT_SURE, "9", NOT_SURE, "0"]
    counts = score(some, words)
    assert counts == {"3": (1, 2), "4": (0, 1), "A": (1, 1), "empty": (0, 1)}
    assert share(counts, digits=True) == pytest.approx(1 / 3)
    assert share(counts, digits=False) == pytest.approx(1 / 2)


def test_a_file_that_holds_no_drawings_is_refused(tmp_path):
    for content in ("[", json.dumps({"strokes": [{"label": "3"}]}), json.dumps({})):
        (tmp_path / "strokes.json").write_text(content)
        with pytest.raises(ValueError, match=r"strokes\.json must be"):
            drawings(tmp_path / "strokes.json")


def test_augmentation_costs_an_arm_what_it_costs_the_one_that_was_measured_with_it():
    for name, costs in recipe.COST.items():
        measured = next(arm for arm in costs if recipe.AUGMENTED in recipe.words(arm))
        bare = measured.removesuffix(f", {recipe.AUGMENTED}")
        assert recipe.augmented(bare) == recipe.augmented(measured) == measured
        assert recipe.cost(name, measured) == costs[measured]
        more = recipe.cost(name, recipe.augmented(recipe.PLAIN)) - costs[recipe.PLAIN]
        assert more == pytest.approx(costs[measured] - costs[bare])


def test_the_best_arm_of_each_set_counts_averaged_weights_too():
    runs = []
    for name in SETS:
        for i, arm in enumerate(recipe.ARMS[name]):
            metrics = {"validation_accuracy": i / 10, "averaged_accuracy": 0.0}
            if (name, arm) == ("mnist", recipe.COARSE):
                metrics["averaged_accuracy"] = 0.9
            runs.append({"condition": {"data": name, "arm": arm}, "seed": 100, "metrics": metrics})
    nothing = dict.fromkeys(("what", "chosen_on", "date"), "")
    nothing |= {key: {} for key in ("settings", "versions", "data", "weight_files")}
    nothing |= {"machines": [], "wall_seconds": 0.0, "folder": None}
    metrics = dict.fromkeys(("validation_accuracy", "averaged_accuracy"), "share")
    record = Record(name="toy", runs=runs, metrics=metrics, **nothing)
    expected = {name: recipe.ARMS[name][-1] for name in SETS} | {"mnist": recipe.COARSE}
    assert recipe.best(record) == expected


def test_the_order_of_the_products_does_not_change_the_scores():
    x, wq, wk, m = timing.tensors(7, 5, 3, seed=0)
    scores = [order(x, wq, wk, m) for order in timing.ORDERS.values()]
    assert scores[0].shape == (7, 7)
    torch.testing.assert_close(scores[0], scores[1])
    torch.testing.assert_close(scores[0], scores[2])
    assert not torch.allclose(scores[0], scores[0].T, atol=1e-3)


def test_multiplications_are_those_of_the_formulas():
    n, width, d = 7, 5, 3
    counted = {name: timing.multiplies(f, n, width, d) for name, f in timing.ORDERS.items()}
    assert counted == {
        "separate": (2 * n * width * d + n * n * d) / 1e9,
        "reordered": (2 * n * width * d + n * n * width) / 1e9,
        "merged": (n * width * width + n * n * width) / 1e9,
    }
    crossing = {**timing.SQUARE, "head_dim": 384}
    assert crossing in TIMING.conditions
    merged, separate = (timing.ORDERS[name] for name in ("merged", "separate"))
    assert timing.multiplies(merged, **crossing) == timing.multiplies(separate, **crossing)


def test_the_mean_is_over_this_seed_and_the_next_ones():
    asked = []

    def trial(condition, seed, log, scale, **given):
        asked.append((condition, seed, scale, given))
        return {"loss": math.inf if seed == 8 else float(seed), "accuracy": 1 / seed}

    given = {"length": 1.0, "learning_rate": 2e-3}
    found = several(trial, 3)({"a": 1}, 100, print, 0.5, **given)
    assert asked == [({"a": 1}, seed, 0.5, given) for seed in (100, 101, 102)]
    assert found == {"loss": 101, "accuracy": pytest.approx((1 / 100 + 1 / 101 + 1 / 102) / 3)}
    assert several(trial, 2)({}, 7, print, 1.0)["loss"] == math.inf  # one diverged
    assert several(trial, 1)({}, 7, print, 1.0)["loss"] == 7


# --- what several experiments measure, against counts and tables worked out by hand


def test_multiplies_are_those_of_one_image():
    assert multiplies(nn.Linear(3, 5), torch.randn(7, 3)) == 3 * 5


def test_a_thin_curve_has_the_means_of_equal_stretches():
    assert thin([1.0, 3.0, 5.0, 9.0, 100.0], points=2) == [2.0, 7.0]
    assert thin([1.0, 2.0], points=100) == [1.0, 2.0]
    assert len(thin([0.5] * 400)) == 100


def test_probabilities_are_the_softmax_of_every_image():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    images = torch.randn(501, 1, 2, 2)  # more than one batch
    given = probabilities(model, images)
    assert given.shape == (501, 3)
    torch.testing.assert_close(given, model(images).detach().double().softmax(dim=-1))


def test_an_answer_counts_in_the_bin_of_its_confidence():
    given = torch.tensor(
        [[1.0, 0.0, 0.0], [0.1, 0.5, 0.4], [0.5, 0.4, 0.1], [0.34, 0.33, 0.33]], dtype=torch.float64
    )
    table = reliability(given, torch.tensor([0, 1, 2, 0]))
    assert len(table) == BINS == 15
    assert table[14] == [1, 1, 1]  # all of its confidence, and right
    assert table[7] == [2, 1, 1]  # half sure twice, right once
    assert table[5] == [1, 0.34, 1]
    assert sum(row[0] for row in table) == 4
    expected = (2 / 4) * abs(0.5 - 0.5) + (1 / 4) * abs(0.34 - 1)
    assert calibration_error(table) == pytest.approx(expected)


def test_calibration_error_weighs_each_bin_by_its_answers():
    table = [[0, 0, 0], [30, 6.0, 3], [10, 8.0, 10]]  # off by 0.1 and by 0.2
    assert calibration_error(table) == pytest.approx(0.75 * 0.1 + 0.25 * 0.2)
