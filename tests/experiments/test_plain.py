"""The opponents of a task are trained, chosen on validation images, and tested once."""

import pytest
import torch

from experiments.machinery.plain import LINEAR, MLP, NEAREST, PLAIN, RATES, plain, updates
from vitbook.data import ImageSet


def images(part):
    """Class 1 where the first pixel is bright."""
    seed = ("train", "validation", "test").index(part)
    pictures = torch.randn(300, 1, 3, 3, generator=torch.Generator().manual_seed(seed))
    return ImageSet(pictures, (pictures[:, 0, 0, 0] > 0).long())


@pytest.mark.parametrize("name", PLAIN)
def test_an_opponent_learns_what_is_there_and_says_what_it_cost(name):
    losses = []
    metrics = plain(name, images, steps=100, log=losses.append, scale=1.0).metrics
    assert len(losses) == updates(name, 100)
    assert metrics["test_accuracy"] > (0.7 if name == NEAREST else 0.85)
    assert metrics["parameters"] == {NEAREST: 0, LINEAR: 20, MLP: 64 * 10 + 2 * 65}[name]
    if name != NEAREST:
        assert metrics["learning_rate"] in RATES


@pytest.mark.parametrize("name", PLAIN)
def test_an_image_may_ask_several_things(name):
    def two(part):
        pictures, first = images(part)
        return ImageSet(pictures, torch.stack([first, (pictures[:, 0, 2, 2] > 0).long()], dim=1))

    metrics = plain(name, two, steps=100, log=lambda loss: None, scale=1.0).metrics
    assert metrics["test_accuracy"] > (0.6 if name == NEAREST else 0.85)
    assert metrics["parameters"] == {NEAREST: 0, LINEAR: 40, MLP: 64 * 10 + 4 * 65}[name]


def test_any_other_model_makes_its_own_steps():
    assert updates("vit", 100) == 100
