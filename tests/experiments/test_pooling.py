"""Mean and class token are held against each other at two lengths; what differs is what is said."""

import sys

import torch
from torch import nn

from experiments.machinery.experiment import load_experiment

EXPERIMENT = load_experiment("pooling")
pooling = sys.modules["experiment_pooling"]
WAYS = (pooling.MEAN, pooling.ZEROS)
FIRST = {**pooling.ZEROS, "steps": pooling.SHORT}
OTHER = {condition["start"]: condition for condition in pooling.OTHERS}


def clothes(count: int = 12) -> torch.Tensor:
    return torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(5))


def size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_each_read_out_has_a_search_of_its_own_at_each_length():
    arms = EXPERIMENT.plan["arms"]
    ways = [{**way, "steps": steps} for steps in (500, 2000) for way in (*WAYS, pooling.BLIND)]
    assert arms == ways
    winners = [{"condition": arm, "value": 1e-3 * i} for i, arm in enumerate(arms)]
    for condition in pooling.OTHERS:
        assert EXPERIMENT.chosen_for(condition, winners) == EXPERIMENT.chosen_for(FIRST, winners)


def test_the_control_does_not_know_where_a_patch_was():
    seeing, blind = (pooling.build(seed=3, **way, steps=500) for way in (WAYS[0], pooling.BLIND))
    assert size(seeing) - size(blind) == 16 * 48
    images = clothes()
    turned = images.unflatten(2, (4, 7)).flip(2).flatten(2, 3)  # rows of patches, upside down
    torch.testing.assert_close(blind(turned), blind(images), rtol=0, atol=1e-5)
    assert (seeing(turned) - seeing(images)).abs().max() > 1e-3


def test_class_tokens_differ_in_their_start_only():
    zeros, random = pooling.build(seed=3, **FIRST), pooling.build(seed=3, **OTHER["random"])
    assert (zeros.cls_token == 0).all()
    assert 0.5 < random.cls_token.std() < 1.5
    zeros.cls_token.data = random.cls_token.data
    assert torch.equal(zeros(clothes()), random(clothes()))


def test_a_class_token_and_its_position_are_one_vector():
    model, moved = pooling.build(seed=3, **FIRST), pooling.build(seed=3, **FIRST)
    step = torch.randn(48)
    moved.cls_token.data += step
    moved.positions.table.data[0] -= step
    torch.testing.assert_close(model(clothes()), moved(clothes()), rtol=0, atol=1e-5)
    moved.positions.table.data[0] += step
    assert (model(clothes()) - moved(clothes())).abs().max() > 1e-3


def test_a_shifted_table_gives_each_token_the_row_of_the_next_patch():
    usual, shifted = pooling.build(seed=3, **FIRST), pooling.build(seed=3, **OTHER["shifted table"])
    table, rows = usual.positions.table.detach(), shifted.positions(torch.zeros(1, 17, 48))[0]
    assert torch.equal(rows[:16], table[1:])  # row 1 of the usual table is the first patch's
    assert (rows[16] == 0).all()
    assert size(usual) - size(shifted) == 48
    assert torch.equal(usual.patch_embed.proj.weight, shifted.patch_embed.proj.weight)
