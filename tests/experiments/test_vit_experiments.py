"""The experiments on the parts of a ViT: what is compared is what is said."""

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import load_experiment

NAMES = ("patch_sizes", "norm_placement", "lab_grid")
EXPERIMENTS = {name: load_experiment(name) for name in NAMES}
norms = sys.modules["experiment_norm_placement"]
patches = sys.modules["experiment_patch_sizes"]


def clothes(count: int = 12) -> torch.Tensor:
    return torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(5))


def size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_every_rate_is_one_of_those_that_were_tried(name):
    script = sys.modules[f"experiment_{name}"]
    assert set(script.RATES.values()) <= set(script.GRID)
    assert EXPERIMENTS[name].settings["learning_rates_tried"] == script.GRID


def test_patch_sizes_change_nothing_but_the_embedding():
    models = {p: patches.build(p, seed=0) for p in patches.RATES}
    others = {size(model) - model.patch_embed.proj.weight.numel() for model in models.values()}
    assert len(others) == 1
    assert [model.patch_embed.num_patches for model in models.values()] == [196, 49, 16, 4, 1]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_gradient_of_each_block_is_that_of_autograd(norm):
    model, (images, labels) = norms.build(norm, depth=2, seed=1), norms.digits("validation")
    images, labels = images[:20], labels[:20]
    found = norms.gradient_by_layer(model, images, labels)
    assert all(p.grad is None for p in model.parameters())  # nothing is left for the first step
    for block, norm_found in zip(model.encoder.blocks, found, strict=True):
        loss = F.cross_entropy(model(images), labels)
        own = torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*block.parameters()])])
        assert norm_found == pytest.approx(own.norm().item(), rel=1e-4)
    assert found[0] != pytest.approx(found[1], rel=1e-2)
