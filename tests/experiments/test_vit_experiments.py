"""The experiments on the parts of a ViT and its recipe: what is compared is what is said."""

import sys
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import load_experiment
from vitbook.data import STATISTICS, ImageSet, augmentation
from vitbook.training import TrainConfig, train, warmup_cosine
from vitbook.vit import VisionTransformer

NAMES = ("patch_sizes", "norm_placement", "recipe", "lab_grid")
EXPERIMENTS = {name: load_experiment(name) for name in NAMES}
norms = sys.modules["experiment_norm_placement"]
patches = sys.modules["experiment_patch_sizes"]
recipe = sys.modules["experiment_recipe"]


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


def recipe_losses(without: str, steps: int = 12) -> torch.Tensor:
    classifier = replace(
        recipe.CLASSIFIER,
        images=lambda part, scale: ImageSet(clothes(), torch.arange(12) % 10),
        recipe={**recipe.RECIPE, "steps": steps, "batch_size": 4, "warmup_steps": 3},
    )
    condition = {"without": without}
    _, losses = classifier.fit(condition, 2, lambda loss: None, learning_rate=4e-3)
    return torch.tensor(losses)


def test_the_whole_recipe_is_what_train_does():
    torch.manual_seed(2)
    model = VisionTransformer(**recipe.MODEL)
    settings = {**recipe.RECIPE, "steps": 12, "batch_size": 4, "warmup_steps": 3}
    mean, std = STATISTICS["fashion-mnist"]
    history = train(
        model,
        clothes(),
        torch.arange(12) % 10,
        TrainConfig(**settings, learning_rate=4e-3, seed=2),
        augment=augmentation(**recipe.AUGMENTATION, fill=-mean[0] / std[0]),
        progress=False,
    )
    expected = torch.tensor([row["loss"] for row in history])
    assert torch.equal(recipe_losses("nothing"), expected)


# The first step at which leaving it out shows in the loss (counted from 0), if it must show then.
FIRST_SHOWS = {
    "warmup": 1,
    "cosine": 5,  # the rate of step 4 is the first below its peak
    "weight decay": 1,
    "augmentation": 0,
    "label smoothing": 0,
}


@pytest.mark.parametrize("without", FIRST_SHOWS)
def test_an_ingredient_left_out_shows_from_its_first_step_on(without):
    difference = (recipe_losses(without) - recipe_losses("nothing")).abs()
    first = FIRST_SHOWS[without]
    assert (difference[:first] == 0).all()
    assert difference[first] > 0


def test_clipping_left_out_shows_where_gradients_are_large():
    assert (recipe_losses("clipping") - recipe_losses("nothing")).abs().max() > 0


def test_without_the_cosine_the_rate_stays_at_its_peak():
    for without, schedule in (("cosine", recipe.constant), ("nothing", warmup_cosine)):
        assert recipe.options({"without": without})["schedule"] is schedule
    shares = [recipe.constant(step, 12, 3) for step in range(12)]
    torch.testing.assert_close(shares, [1 / 3, 2 / 3] + [1.0] * 10)
