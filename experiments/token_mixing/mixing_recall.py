"""Every patch asks another one, which its dot names: can that be learned without attention?"""

from functools import cache, lru_cache
from typing import Any

import torch
from torch import nn

from experiments.machinery.baselines import linear, nearest
from experiments.machinery.choose import Choice, several
from experiments.machinery.classifier import METRICS, PatchClassifier
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.token_mixing import mixing
from experiments.token_mixing.mixing import CNN, LAYERS, LINEAR, NEAREST, WHOLE, Task
from vitbook.comparison.recall_task import PatchAnswers, answered
from vitbook.data import ImageSet
from vitbook.data.recall import COLORS, PATCH, recall
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.small_cnn import SmallCNN

WIDE = "ConvMixer, wide kernel"  # from corner to corner in one layer
NORMED = "ViT, normed patches"  # begins as the ConvMixer does
ARMS = (*LAYERS, WIDE, NORMED, CNN)
SIDE, STEPS = 4, 300  # patches in a row; updates of the ViT
RECIPE: dict = {"batch_size": 32, "warmup_steps": 30}
IMAGES = {"train": 12_000, "validation": 500, "test": 1_000}
TRIAL_SEEDS = 3  # for each learning rate that is tried
FIRST = 220  # seed of the first part


@lru_cache(maxsize=6)
def images_of(part: str, scale: float = 1.0, *, partner: str = "named") -> ImageSet:
    """Images (n, 3, S, S) between -1 and 1, and a label for each patch (n, N)."""
    seed = FIRST + list(IMAGES).index(part)
    found = recall(scaled(IMAGES[part], scale), seed=seed, side=SIDE, partner=partner)
    return ImageSet(2 * found.images - 1, found.labels)


def task(model: str) -> Task:
    """Images and kernel of a model, as `mixing` takes them."""
    images = (SIDE * PATCH, PATCH, 3, len(COLORS))
    return Task(images, 2 * SIDE - 1 if model == WIDE else 3, STEPS, RECIPE["batch_size"])


def options_of(model: str) -> dict:
    """The arguments of a `Hybrid`, or the widths of the CNN."""
    of, name = task(model), {WIDE: "ConvMixer", NORMED: WHOLE}.get(model, model)
    options = mixing.options_of(of, name, mixing.width_of(of, name))
    return options | ({"stem": "normed"} if model == NORMED else {})


def build(model: str) -> nn.Module:
    """A model before training, which answers for every patch."""
    if model == LINEAR:
        N, K = SIDE**2, len(COLORS)
        return nn.Sequential(linear(N * 3 * PATCH**2, N * K), nn.Unflatten(1, (N, K)))
    sizes, options = task(model).model, options_of(model)
    if model == CNN:
        return PatchAnswers(SmallCNN(in_channels=3, num_classes=sizes["num_classes"], **options))
    return PatchAnswers(Hybrid(**sizes, **options))


@cache
def cost_of(model: str) -> tuple[int, int]:
    """Parameters, and multiplications for one image."""
    with torch.device("meta"):
        built, pixels = build(model).eval(), SIDE * PATCH
        return count_parameters(built), count_multiplies(built, torch.empty(1, 3, pixels, pixels))


def steps_of(model: str) -> int:
    """The number of updates whose multiplications are those of the ViT's."""
    if model in (LINEAR, NEAREST):
        return STEPS if model == LINEAR else 0
    return round(STEPS * cost_of(WHOLE)[1] / cost_of(model)[1])


def on_as_many(model: nn.Module, scale: float) -> dict[str, float]:
    """The accuracy on as many training images as there are test images."""
    count = len(images_of("test", scale).labels)
    known = ImageSet(*(part[:count] for part in images_of("train", scale)))
    return {"train_accuracy": answered(model, known)[1]}


CLASSIFIER = PatchClassifier(
    build=build,
    images=images_of,
    recipe=RECIPE,
    settings=lambda condition: {"steps": steps_of(condition["model"])},
    further=on_as_many,
)


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    if condition["model"] == NEAREST:
        return nearest(images_of, scale)
    return CLASSIFIER.run(condition, seed, log, scale, **chosen)


EXPERIMENT = Experiment(
    what="Every patch is a small map whose dot names another patch, and has to say that patch's "
    "colour: architectures with equal parameters and equal compute; logistic regression and the "
    "nearest image.",
    chosen_on="validation images: the learning rate of each model, by the mean of three seeds, all "
    "steps long",
    metrics={
        **METRICS,
        "test_accuracy": "share of the patches of all test images answered correctly",
        "test_loss": "mean cross-entropy over these patches, in nats",
        "train_accuracy": "share of the patches of as many training images answered correctly",
    },
    conditions=[{"model": model} for model in (*ARMS, LINEAR)],
    once=[{"model": NEAREST}],
    seeds=range(5),
    run=run,
    data=lambda: {f"recall, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "images": task(WHOLE).model,
        "training": {"steps": STEPS, **RECIPE},
        "models": {
            model: {
                **options_of(model),
                "parameters": cost_of(model)[0],
                "multiplies": cost_of(model)[1],
                "steps": steps_of(model),
            }
            for model in ARMS
        },
        "counts": IMAGES,
        "first_seed": FIRST,
        "trial_seeds": TRIAL_SEEDS,
    },
    replay=({"model": WHOLE}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(CLASSIFIER.trial, TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
    ),
)
