"""The experiment on positions: what its shuffling does, and what must come out equal."""

import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from vitbook.data import ImageSet
from vitbook.layers.patches import patchify
from vitbook.training import TrainConfig, train

EXPERIMENT = load_experiment("position_encodings")
script = sys.modules["experiment_position_encodings"]


def pictures(count: int = 40) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.rand(count, 1, 28, 28, generator=generator, dtype=torch.float64)


def losses(positions: str, patches: str, table=None) -> torch.Tensor:
    """The losses of eight steps in double precision, all from the same seed."""
    model = script.build(positions, seed=3).double()
    if table is not None:
        model.positions.table.data = table
    images = pictures()
    if patches == "shuffled":
        images = script.rearranged(images, script.ORDER)
    config = TrainConfig(steps=8, batch_size=10, learning_rate=4e-3, warmup_steps=2, seed=3)
    history = train(model, images, torch.arange(40) % 10, config, progress=False)
    return torch.tensor([row["loss"] for row in history], dtype=torch.float64)


def test_place_i_of_a_shuffled_image_shows_the_patch_named_by_the_order():
    images = pictures(3)
    before = patchify(images, 4)  # (3, 49, 16)
    after = patchify(script.rearranged(images, script.ORDER), 4)
    for place in (0, 7, 48):
        assert torch.equal(after[:, place], before[:, script.ORDER[place]])
    assert sorted(script.ORDER.tolist()) == list(range(49))
    assert EXPERIMENT.settings["order"] == script.ORDER.tolist()
    back = script.rearranged(script.rearranged(images, script.ORDER), script.ORDER.argsort())
    assert torch.equal(back, images)


def test_each_image_gets_an_order_of_its_own_and_keeps_its_patches():
    images = pictures(1).expand(4, -1, -1, -1)
    labels = torch.tensor([3, 1, 0, 2])
    scrambled = script.each_shuffled(ImageSet(images, labels))
    assert torch.equal(scrambled.labels, labels)
    original = patchify(images[:1], 4)[0]  # (49, 16)
    orders = []
    for patches in patchify(scrambled.images, 4):
        same = (patches[:, None] == original).all(dim=-1)  # (49, 49)
        assert torch.equal(same.sum(dim=0), torch.ones(49, dtype=torch.long))
        orders.append(tuple(same.int().argmax(dim=1).tolist()))
    assert len(set(orders)) == 4


def test_a_model_without_positions_learns_the_same_from_shuffled_patches():
    in_order, shuffled = losses("none", "in order"), losses("none", "shuffled")
    torch.testing.assert_close(in_order, shuffled, rtol=1e-9, atol=0)
    assert (in_order[0] - in_order).abs().max() > 1e-3  # it did learn


@pytest.mark.parametrize("positions", ["sincos_1d", "sincos_2d", "rotary", "learned"])
def test_a_model_with_positions_notices_the_shuffling(positions):
    difference = losses(positions, "in order") - losses(positions, "shuffled")
    assert difference.abs().max() > 1e-4


def test_a_learned_table_shuffled_like_the_patches_learns_the_same():
    table = script.build("learned", seed=3).positions.table.detach().double()
    in_order = losses("learned", "in order", table.clone())
    shuffled = losses("learned", "shuffled", table[script.ORDER])
    torch.testing.assert_close(in_order, shuffled, rtol=1e-9, atol=0)
