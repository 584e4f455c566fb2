"""The ways to compute less, and their controls: the same weights, and the same saving."""

import pytest
import torch

from experiments.machinery.cheaper import SHARE, WAYS, with_way
from vitbook.models.cost import count_multiplies

MODEL = {
    "image_size": 12,
    "patch_size": 1,
    "in_channels": 2,
    "num_classes": 5,
    "embed_dim": 16,
    "depth": 2,
    "num_heads": 2,
}


@pytest.fixture(scope="module")
def models():
    weights = with_way("untouched", MODEL).state_dict()
    return {way: with_way(way, MODEL, weights).eval() for way in WAYS}


def test_every_way_has_the_weights_and_another_answer(models):
    images = torch.randn(3, 2, 12, 12)
    with torch.no_grad():
        answers = {way: model(images) for way, model in models.items()}
    for way, model in models.items():
        for name, p in models["untouched"].named_parameters():
            torch.testing.assert_close(p, model.get_parameter(name))
        same = torch.allclose(answers[way], answers["untouched"], atol=1e-6)
        assert same == (way == "untouched"), way


@pytest.mark.parametrize(
    ("way", "control"),
    [
        ("windows", "random groups"),
        ("merging", "random merging"),
        ("pruning", "random pruning"),
        ("linear", "uniform"),
    ],
)
def test_a_control_saves_at_least_as_much_as_its_way(models, way, control):
    image = torch.randn(1, 2, 12, 12)
    cost = {name: count_multiplies(models[name], image) for name in ("untouched", way, control)}
    assert cost[control] <= cost[way] < cost["untouched"]


@pytest.mark.parametrize("way", ["merging", "random merging", "pruning", "random pruning"])
def test_a_sixth_of_the_patches_goes_in_each_block(models, way):
    features = models[way].forward_features(torch.randn(1, 2, 12, 12))
    assert features.shape[1] == 1 + 144 - 2 * (144 // SHARE)


def test_random_groups_are_windows_of_a_shuffled_image(models):
    """Undo the shuffling of each layer: then no window is one of the grid."""
    for block in models["random groups"].encoder.blocks:
        order = block.attn.order
        assert order[0] == 0
        assert sorted(order.tolist()) == list(range(145))
        assert not torch.equal(order, torch.arange(145))
