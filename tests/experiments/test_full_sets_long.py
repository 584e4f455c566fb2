"""The long runs on whole sets: `full_sets_best`, augmented, several times as long."""

import sys

import pytest
import torch

from experiments.machinery import full_tested
from experiments.machinery.experiment import load_experiment
from experiments.machinery.full_recipe import AUGMENTED, build, words
from vitbook.book.records import load_record

EXPERIMENT = load_experiment("full_sets_long")
script = sys.modules["experiment_full_sets_long"]


def test_the_arms_are_those_of_the_short_runs_augmented_once():
    assert set(script.ARMS) == set(full_tested.BEST)
    for name, arm in script.ARMS.items():
        short = words(full_tested.BEST[name])
        assert words(arm).count(AUGMENTED) == 1
        assert words(arm)[: len(short)] == short


def test_the_rates_are_those_that_the_short_runs_chose():
    winners = load_record("full_sets_best").choice["winners"]
    assert {winner["condition"]["data"]: winner["value"] for winner in winners} == script.RATES


def test_a_run_takes_so_many_times_the_steps_of_a_short_one():
    short = load_experiment("full_sets_best")
    for name, times in script.MINUTES.items():
        steps = EXPERIMENT.steps({"data": name}), short.steps({"data": name})
        assert steps[0] == pytest.approx(times * steps[1], rel=0.001)  # augmenting counts nothing


def test_the_measured_numbers_agree_with_each_other(small_image_files):
    outcome = EXPERIMENT.run({"data": "cifar10"}, 1, lambda loss: None, 0.002)
    metrics, confusion = outcome.metrics, torch.tensor(outcome.metrics["confusion"])  # (10, 10)
    labels = full_tested.images_of("cifar10", "test", 0.002).labels
    assert confusion.sum(dim=1).tolist() == labels.bincount(minlength=10).tolist()
    assert metrics["test_accuracy"] == pytest.approx(confusion.trace().item() / len(labels))
    model = build("cifar10", full_tested.BEST["cifar10"], 0)
    model.load_state_dict(outcome.weights)  # without what trains it
