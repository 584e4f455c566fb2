"""Each recipe is what its name says, and shows from the first step at which it can."""

import sys
from dataclasses import replace

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from vitbook.data import STATISTICS, ImageSet, augmentation
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, train

EXPERIMENT = load_experiment("recipe")
recipe = sys.modules["experiment_recipe"]
STEPS = 12


def clothes() -> torch.Tensor:
    return torch.rand(12, 1, 28, 28, generator=torch.Generator().manual_seed(5))


def losses(name: str) -> torch.Tensor:
    """Of 12 steps with a recipe; a warm-up takes the first 3."""

    def settings(condition):
        found = recipe.settings(condition)
        return {**found, "steps": STEPS, "warmup_steps": 3 if found["warmup_steps"] else 0}

    classifier = replace(
        recipe.CLASSIFIER,
        images=lambda part, scale: ImageSet(clothes(), torch.arange(12) % 10),
        recipe={**recipe.RECIPE, "batch_size": 4},
        settings=settings,
    )
    condition = {"recipe": name, "steps": recipe.SHORT}
    _, found = classifier.fit(condition, 2, lambda loss: None, learning_rate=4e-3)
    return torch.tensor(found)


def test_the_whole_recipe_is_what_train_does():
    torch.manual_seed(2)
    model = VisionTransformer(**recipe.MODEL)
    mean, std = STATISTICS["fashion-mnist"]
    config = TrainConfig(
        steps=STEPS,
        batch_size=4,
        warmup_steps=3,
        label_smoothing=0.1,
        weight_decay=0.05,
        learning_rate=4e-3,
        seed=2,
    )
    history = train(
        model,
        clothes(),
        torch.arange(12) % 10,
        config,
        augment=augmentation(shift=1, flip=True, fill=-mean[0] / std[0]),
        progress=False,
    )
    assert torch.equal(losses("all"), torch.tensor([row["loss"] for row in history]))


# The first step at which a recipe differs from "schedule" (counted from 0).
FIRST_SHOWS = {"constant": 1, "shift": 0, "flip": 0, "smoothing": 0, "all": 0}


@pytest.mark.parametrize("name", FIRST_SHOWS)
def test_a_recipe_shows_from_its_first_step_on(name):
    difference, first = (losses(name) - losses("schedule")).abs(), FIRST_SHOWS[name]
    assert (difference[:first] == 0).all()
    assert difference[first] > 0


def test_without_the_schedule_rate_and_gradient_are_left_alone():
    condition = {"recipe": "constant", "steps": 100}
    assert recipe.settings(condition) == {"steps": 100, "warmup_steps": 0, "clip_norm": None}
    assert [recipe.constant(step, 100, 0) for step in (0, 50, 99)] == [1, 1, 1]


def test_shift_and_flip_are_apart_and_both_in_the_whole():
    both = recipe.RECIPES["all"]["augmentation"]
    alone = [recipe.RECIPES[name]["augmentation"] for name in ("shift", "flip")]
    assert both == {**alone[0], **alone[1]}
    assert not alone[0].keys() & alone[1].keys()


def test_opponents_learn_the_same_images_for_as_long():
    assert {c["steps"] for c in recipe.OPPONENTS} == {recipe.LONG}
    assert all(c in EXPERIMENT.plan["arms"] for c in recipe.OPPONENTS)
    sizes = [
        sum(p.numel() for p in recipe.build(seed=0, **c).parameters()) for c in recipe.OPPONENTS
    ]
    assert sizes == [785 * 10, 785 * 64 + 65 * 10]
    assert not set(recipe.options(recipe.OPPONENTS[0]))
