"""Patches in another order: whole patches move, each image as it should, and nothing is lost."""

import torch

from experiments import mixer_units
from vitbook.layers.patches import patchify


def test_a_fixed_order_moves_whole_patches_and_can_be_undone():
    images = torch.randn(2, 3, 32, 32)
    order = mixer_units.fixed_order()
    moved = mixer_units.reordered(images, order)
    tokens, before = patchify(moved, 4), patchify(images, 4)
    assert torch.equal(tokens[:, 5], before[:, order[5]])
    assert torch.equal(mixer_units.reordered(moved, order.argsort()), images)


def test_shuffled_gives_each_image_an_order_of_its_own():
    places = torch.arange(64.0).view(1, 8, 8).repeat_interleave(4, 1).repeat_interleave(4, 2)
    images = places.expand(2, 3, 32, 32)
    moved = mixer_units.shuffled(images, torch.Generator().manual_seed(0))[:, 0, ::4, ::4]
    first, second = moved.flatten(1)
    assert first.sort().values.tolist() == list(range(64))
    assert not torch.equal(first, second)


def test_neighbours_alike_tells_a_slope_from_noise():
    slope = torch.arange(8.0).expand(5, 8, 8)
    assert mixer_units.neighbours_alike(slope) > 0.7
    assert abs(mixer_units.neighbours_alike(torch.randn(200, 8, 8))) < 0.1
