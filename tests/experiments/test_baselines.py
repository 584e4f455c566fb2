"""The baselines learn from and are tested on the very images of the other records."""

import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from vitbook.book.records import load_record
from vitbook.data import ImageSet

EXPERIMENT = load_experiment("baselines")
baselines = sys.modules["experiment_baselines"]


@pytest.mark.parametrize("name", ["digits", "pooling", "recipe"])
def test_small_records_saw_the_same_images(name):
    other = load_record(name).data
    assert other
    assert other.items() <= load_record("baselines").data.items()


def test_the_long_runs_saw_the_same_images():
    ours, other = load_record("baselines").data, load_record("full_sets").data
    assert {
        key.replace(" whole,", ","): value for key, value in ours.items() if "whole" in key
    } == (other)


def test_the_nearest_image_lends_its_label():
    torch.manual_seed(0)
    learn = ImageSet(torch.randn(50, 1, 3, 4), torch.arange(50) % 7)
    asked = learn.images[torch.tensor([3, 49, 20])] + 0.01 * torch.randn(3, 1, 3, 4)
    assert baselines.nearest(learn, asked).tolist() == [3, 0, 6]
    apart = torch.cdist(asked.flatten(1), learn.images.flatten(1)).argmin(dim=1)
    assert baselines.nearest(learn, asked).equal(learn.labels[apart])


def test_a_shift_moves_each_row_by_one_pixel():
    image = torch.arange(6.0).view(1, 1, 2, 3)
    assert baselines.shifted(image).tolist() == [[[[0, 0, 1], [3, 3, 4]]]]


def test_a_rate_at_the_edge_of_the_grid_is_not_the_end_of_the_search(monkeypatch):
    def learned_with(name, learn, rate, seed, scale):
        return rate

    def loss_of(best):
        def evaluated(rate, images, labels):
            return type("Result", (), {"loss": abs(rate - best)})

        return evaluated

    monkeypatch.setattr(baselines, "logistic_regression", learned_with)
    nothing = ImageSet(torch.zeros(1), torch.zeros(1))
    for best, found in ((0.05, 0.03), (1e-4, 1e-4), (3e-3, 3e-3)):
        monkeypatch.setattr(baselines, "evaluate", loss_of(best))
        rate, tried = baselines.chosen_rate("digits", nothing, nothing, 1.0)
        assert rate == found
        rates = [row[0] for row in tried]
        assert min(rates) < rate < max(rates)


def test_no_choice_was_made_at_the_edge_of_its_grid():
    record = load_record("baselines")
    for name in baselines.SETS:
        one = {"data": name, "model": "logistic regression"}
        rates, trials = (
            record.values(key, **one) for key in ("learning_rate", "learning_rates_tried")
        )
        for rate, tried in zip(rates, trials, strict=True):
            assert tried[:, 0].min() < rate < tried[:, 0].max()
