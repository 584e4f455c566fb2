"""The best arms on whole sets: those that the search found, tested once."""

import pytest
import torch

from experiments.machinery import full_tested
from experiments.machinery.experiment import load_experiment
from experiments.machinery.full_recipe import best, build
from vitbook.book.records import load_record


def test_the_arms_are_those_that_the_search_found_best():
    assert best(load_record("full_sets_arms")) == full_tested.BEST


def test_the_measured_numbers_agree_with_each_other(small_image_files):
    losses, run = [], load_experiment("full_sets_best").run
    outcome = run({"data": "cifar10"}, 1, losses.append, 0.002, learning_rate=1e-3)
    metrics, confusion = outcome.metrics, torch.tensor(outcome.metrics["confusion"])  # (10, 10)
    labels = full_tested.images_of("cifar10", "test", 0.002).labels
    assert confusion.sum(dim=1).tolist() == labels.bincount(minlength=10).tolist()
    assert metrics["test_accuracy"] == pytest.approx(confusion.trace().item() / len(labels))
    assert metrics["loss"] == [round(loss, 5) for loss in losses]
    assert len(metrics["validation_accuracy"]) == len(metrics["validation_loss"]) >= 1
    model = build("cifar10", full_tested.BEST["cifar10"], 0)
    model.load_state_dict(outcome.weights)  # a page builds the model without what trains it


def test_the_search_for_the_rates_ended_inside_what_it_tried():
    winners = load_record("full_sets_best").choice["winners"]
    assert {winner["condition"]["data"] for winner in winners} == set(full_tested.BEST)
    assert not any(winner["at_edge"] for winner in winners)


def test_the_test_images_are_those_of_the_plain_runs():
    assert load_record("full_sets_best").data == load_record("full_sets").data
