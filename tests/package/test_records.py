"""Records: what a page may ask of one, and what it is told when it asks wrongly."""

import hashlib
import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy import stats

from vitbook.book import records
from vitbook.book.intervals import ratio_of_medians, student_interval, wilson_interval
from vitbook.book.records import list_records, load_record

VIT, CNN, KNN = {"model": "vit", "depth": 2}, {"model": "cnn", "depth": 2}, {"model": "knn"}
ACCURACY = {"vit": [0.9, 0.92, 0.97], "cnn": [0.91, 0.94, 0.96]}


def content(folder) -> dict:
    runs = [{"condition": KNN, "seed": 0, "metrics": {"accuracy": 0.99, "seconds": 1.0}}]
    for seed in (2, 0, 1):  # in the order in which they ended
        for condition in (VIT, CNN):
            accuracy = ACCURACY[condition["model"]][seed]
            metrics = {"accuracy": accuracy, "curve": [seed, seed + 1.0], "seconds": 2.0}
            runs.append({"condition": condition, "seed": seed, "metrics": metrics})
    save_file({"w": torch.arange(6.0).half(), "n": torch.tensor(3)}, folder / "toy.safetensors")
    sha256 = hashlib.sha256((folder / "toy.safetensors").read_bytes()).hexdigest()
    entry = {"file": "toy.safetensors", "sha256": sha256, "condition": VIT, "seed": 0}
    return {
        "format": 1,
        "name": "toy",
        "what": "A toy.",
        "chosen_on": "validation images",
        "settings": {"model": {"depth": 2}},
        "metrics": {"accuracy": "right", "curve": "loss", "seconds": "s", "hits": "found"},
        "runs": runs,
        "machines": [{"device": "a processor"}, {"device": "a GPU"}],
        "versions": {"torch": "2"},
        "data": {"digits": "ab"},
        "wall_seconds": 13.0,
        "date": "2026-01-01",
        "weight_files": {"vit": entry},
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "toy.json").write_text(json.dumps(content(tmp_path)))
    return tmp_path


@pytest.fixture
def toy(folder):
    return load_record("toy", folder)


def test_values_come_in_the_order_of_the_seeds(toy):
    np.testing.assert_array_equal(toy.values("accuracy", model="vit"), ACCURACY["vit"])
    np.testing.assert_array_equal(toy.values("accuracy", model="cnn", depth=2), ACCURACY["cnn"])
    np.testing.assert_array_equal(toy.values("accuracy", model="knn"), [0.99])
    assert toy.seeds == [0, 1, 2]
    assert toy.conditions == [KNN, VIT, CNN]
    assert toy.device == "a processor; a GPU"


def test_the_interval_is_the_one_that_scipy_gives(toy):
    values = ACCURACY["vit"]
    for confidence in (0.95, 0.8):
        interval = toy.interval("accuracy", model="vit", confidence=confidence)
        low, high = stats.t.interval(
            confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
        )
        np.testing.assert_allclose(interval, (np.mean(values), low, high), rtol=1e-12)
        np.testing.assert_allclose(interval.half, (high - low) / 2, rtol=1e-12)
    assert toy.mean("accuracy", model="vit") == pytest.approx(np.mean(values))


def test_a_difference_is_paired_by_seed(toy):
    paired = toy.difference("accuracy", VIT, {"model": "cnn"})
    minus = np.subtract(ACCURACY["vit"], ACCURACY["cnn"])
    np.testing.assert_allclose(paired, student_interval(minus), rtol=1e-12)
    assert paired.mean == pytest.approx(minus.mean())


def test_weights_come_back_in_float32_and_counters_as_they_were(toy):
    weights = toy.weights()
    assert weights["w"].dtype == torch.float32
    torch.testing.assert_close(weights["w"], torch.arange(6.0))
    assert weights["n"].dtype == torch.int64
    torch.testing.assert_close(toy.weights("vit")["w"], weights["w"])


def test_damaged_weights_are_not_read(toy, folder):
    path = folder / "toy.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match=r"toy.safetensors is missing or damaged"):
        toy.weights()
    path.unlink()
    with pytest.raises(ValueError, match=r"toy.safetensors is missing or damaged"):
        toy.weights()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not readable"),
        ("[]", "not a record in format 1"),
        ('{"format": 2}', "not a record in format 1"),
        ('{"format": 1}', "lacks the entry 'name'"),
    ],
)
def test_a_damaged_file_is_named(folder, text, words):
    (folder / "toy.json").write_text(text)
    with pytest.raises(ValueError, match=rf"toy.json.*{words}"):
        load_record("toy", folder)


def test_a_ratio_of_medians_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        theirs, ours = random.lognormal(0, 0.5, 20), 3 * random.lognormal(0, 0.5, 20)
        ratio = ratio_of_medians(ours, theirs)
        assert ratio.low <= ratio.mean <= ratio.high
        held += ratio.low < 3 < ratio.high
    assert 0.9 < held / 200 <= 0.99


BAD_INPUT = [
    (lambda r, f: load_record("tiy", f), ValueError, r"records \(toy\), got 'tiy'"),
    (lambda r, f: load_record("../toy", f), ValueError, "name must be one of the records"),
    (lambda r, f: r.values("acuracy", model="vit"), ValueError, "metric must be one of"),
    (lambda r, f: r.values("accuracy"), ValueError, "3 conditions fit"),
    (lambda r, f: r.values("accuracy", model="gru"), ValueError, 'no condition .*"knn"'),
    (lambda r, f: r.values("curve", model="knn"), ValueError, "no condition fits"),
    (lambda r, f: r.interval("accuracy", model="knn"), ValueError, "at least two"),
    (lambda r, f: r.interval("curve", model="vit"), ValueError, r"shape \(3, 2\)"),
    (lambda r, f: r.difference("accuracy", VIT, KNN), ValueError, "same seeds to be paired, got"),
    (lambda r, f: r.weights("cnn"), ValueError, "weights .'vit'., got 'cnn'"),
    (lambda r, f: student_interval([1.0, float("nan")]), ValueError, "finite"),
    (lambda r, f: student_interval([1, 2], 1.0), ValueError, "between 0 and 1"),
    (lambda r, f: ratio_of_medians([0, 2], [1, 2]), ValueError, "ours must be"),
    (lambda r, f: ratio_of_medians([1, 2], [1, math.inf]), ValueError, "theirs must have"),
]


def test_bad_input_is_named(bad_input, toy, folder, refused):
    call, error, words = bad_input
    refused(lambda: call(toy, folder), error, words)


@pytest.mark.parametrize("name", list_records())
def test_the_packages_own_records_are_whole(name):
    record = load_record(name)
    assert record.name == name
    assert record.what
    assert record.chosen_on
    assert record.device
    for condition in record.conditions:
        runs = [run for run in record.runs if run["condition"] == condition]
        assert len({run["seed"] for run in runs}) == len(runs)
        assert all(run["metrics"].keys() == runs[0]["metrics"].keys() for run in runs)
        assert runs[0]["metrics"].keys() <= record.metrics.keys()
    for label in record.weight_files:
        assert all(value.isfinite().all() for value in record.weights(label).values())
    stored = sum((records.FOLDER / e["file"]).stat().st_size for e in record.weight_files.values())
    assert stored <= 1_000_000


@pytest.mark.parametrize("name", list_records())
def test_the_means_and_intervals_in_a_file_are_those_of_its_seeds(name):
    record = load_record(name)
    rows = json.loads((records.FOLDER / f"{name}.json").read_text("utf-8"))["summary"]
    assert rows
    for row in rows:
        runs = [run["metrics"] for run in record.runs if run["condition"] == row["condition"]]
        values = [run[row["metric"]] for run in runs]
        assert row["mean"] == pytest.approx(np.mean(values))
        if len(values) > 1:
            assert (row["low"], row["high"]) == pytest.approx(student_interval(values)[1:])


def test_wilson_intervals_are_those_of_the_textbook():
    assert wilson_interval(50, 100) == pytest.approx((0.5, 0.4038, 0.5962), abs=1e-4)
    assert wilson_interval(20, 20) == pytest.approx((1.0, 0.8389, 1.0), abs=1e-4)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.0, 0.1611), abs=1e-4)


def test_a_ratio_is_of_medians_and_who_never_learned_counts():
    assert ratio_of_medians([6, 6, 6], [1, 2, 3]).mean == 3
    assert ratio_of_medians([6] * 9 + [math.inf], [2] * 9) == (3, 3, 3)
    half = ratio_of_medians([6] * 6 + [math.inf] * 4, [2] * 9)
    assert (half.mean, half.low, half.high) == (3, 3, math.inf)
    assert ratio_of_medians([math.inf] * 9, [2] * 9).mean == math.inf
