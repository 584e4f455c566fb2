"""Garments on a canvas: seven architectures, equal parameters and compute; what disturbs them."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from experiments.machinery.baselines import nearest
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Log, Outcome, checksum, scaled
from experiments.machinery.image_sets import image_set
from experiments.machinery.patch_orders import dropped, shuffled
from experiments.token_mixing import mixing, mixing_pairs
from experiments.token_mixing.mixing import LAYERS, LINEAR, NEAREST, Task
from vitbook.comparison.garments_task import MEAN, STD, on_canvases
from vitbook.data import ImageSet
from vitbook.layers.positions import resample_positions
from vitbook.training import evaluate

# garments rather than CIFAR-10: the record `mixing_pilot` says why
TASK = Task(images=(56, 7, 1, 10), kernel_size=5, steps=400, batch_size=64)
SET = "fashion-mnist"
PARTS = ("train", "validation", "test")
FIRST = 210  # seed of the places in the first part
DISTURBED = 1000  # test images
LARGER = 84  # pixels: 12 x 12 patches
DISTURBANCES = {
    "untouched": "as they are",
    "shuffled": "with the patches of each in an order of its own",
    "quarter": "with a quarter of the patches blank",
    "half": "with half of the patches blank",
    "shift_3": "3 pixels further right and down, about half a patch",
    "shift_7": "7 pixels further right and down, a whole patch",
    "larger": f"on a canvas of {LARGER} x {LARGER} pixels; left out where a model cannot",
}


@lru_cache(maxsize=8)
def images_of(part: str, scale: float = 1.0, side: int = TASK.images[0]) -> ImageSet:
    """Garments somewhere on a canvas (n, 1, side, side), normalized, and labels (n,)."""
    return on_canvases(image_set(SET, part, scale), side, FIRST + PARTS.index(part))


CLASSIFIER = mixing.classifier(TASK, images_of)


def for_larger(model: Any, name: str) -> nn.Module | None:
    """The same weights for images of `LARGER` pixels; None for what is tied to its grid."""
    if name not in LAYERS:
        return model  # a CNN with a mean at the end takes any size
    if "mixer" in LAYERS[name]:
        return None
    task = Task(
        images=(LARGER, *TASK.images[1:]), kernel_size=TASK.kernel_size, steps=1, batch_size=1
    )
    larger: Any = mixing.made(task, name, mixing.width_of(TASK, name))
    weights = model.state_dict()
    if "positions.table" in weights:
        weights["positions.table"] = resample_positions(
            weights["positions.table"], model.patch_embed.grid, larger.patch_embed.grid
        )
    larger.load_state_dict(weights)
    return larger.eval()


def disturbances(model: nn.Module, name: str, scale: float) -> dict[str, float]:
    """The accuracy on some test images, disturbed in each way."""
    images, labels = (of[: scaled(DISTURBED, scale)] for of in images_of("test", scale))
    random, P = torch.Generator().manual_seed(18), TASK.images[1]
    changed = {
        "untouched": images,
        "shuffled": shuffled(images, P, random),
        "quarter": dropped(images, P, 0.25, random),
        "half": dropped(images, P, 0.5, random),
        "shift_3": mixing.shifted(images, 3),
        "shift_7": mixing.shifted(images, 7),
    }
    found = {how: evaluate(model, x, labels).accuracy for how, x in changed.items()}
    larger = for_larger(model, name)
    if larger is not None:
        wide = images_of("test", scale, LARGER).images[: len(labels)]
        found["larger"] = evaluate(larger, wide, labels).accuracy
    return {f"accuracy_{how}": value for how, value in found.items()}


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    if condition["model"] == NEAREST:
        return nearest(images_of, scale)
    model, metrics = mixing.trained(CLASSIFIER, condition, seed, log, scale, **chosen)
    if condition["model"] == LINEAR:
        return Outcome(metrics)
    return Outcome(metrics | disturbances(model, condition["model"], scale))


EXPERIMENT = replace(
    mixing_pairs.EXPERIMENT,
    what="Garments of Fashion-MNIST anywhere on a canvas, 8 x 8 patches: seven architectures and a "
    "small CNN with equal parameters and equal compute, and what disturbed images do to them; "
    "logistic regression and the nearest image.",
    chosen_on="validation images, a part of the training side: the learning rate of each model; "
    "the pictures were chosen in `mixing_pilot`",
    metrics={
        **mixing_pairs.EXPERIMENT.metrics,
        **{
            f"accuracy_{how}": f"share of {DISTURBED:,} test images right, {words}"
            for how, words in DISTURBANCES.items()
        },
    },
    run=run,
    data=lambda: {f"garments on a canvas, {part}": checksum(*images_of(part)) for part in PARTS},
    settings={
        "images": TASK.model,
        "training": TASK.recipe,
        "models": mixing.sizes(TASK),
        "first_seed": FIRST,
        "mean": MEAN,
        "std": STD,
        "disturbances": DISTURBANCES,
        "larger": LARGER,
    },
    steps=lambda condition: 0 if condition["model"] == NEAREST else CLASSIFIER.steps(condition),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.25, finalists=0
    ),
)
