"""Every patch asks another one, which its dot names: can that be learned without attention?"""

from functools import cache, lru_cache
from typing import Any

import torch
from torch import nn

from experiments.machinery.baselines import linear
from experiments.machinery.choose import Choice, several
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.measures import thin
from experiments.token_mixing import mixing
from experiments.token_mixing.mixing import CNN, LAYERS, LINEAR, NEAREST, WHOLE, Task
from vitbook.comparison.recall_task import PatchAnswers, answered, fit_recall
from vitbook.data import ImageSet
from vitbook.data.recall import COLORS, PATCH, recall
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.small_cnn import SmallCNN
from vitbook.training import TrainConfig

WIDE = "ConvMixer, wide kernel"  # from corner to corner in one layer
NORMED = "ViT, normed patches"  # begins as the ConvMixer does
ARMS = (*LAYERS, WIDE, NORMED, CNN)
SIDE, STEPS = 4, 300  # patches in a row; updates of the ViT
RECIPE: dict = {"batch_size": 32, "warmup_steps": 30}
IMAGES = {"train": 12_000, "validation": 500, "test": 1_000}
TRIAL_SEEDS = 3  # for each learning rate that is tried
FIRST = 220  # seed of the first part
METRICS = {
    "test_accuracy": "share of the patches of all test images answered correctly",
    "test_loss": "mean cross-entropy over these patches, in nats",
    "train_accuracy": "share of the patches of as many training images answered correctly",
    "loss": "training loss, about 100 means over equally many steps, in nats",
    "parameters": "numbers that are learned",
}


@lru_cache(maxsize=6)
def images_of(
    part: str, scale: float = 1.0, *, side: int = SIDE, partner: str = "named"
) -> ImageSet:
    """Images (n, 3, S, S) between -1 and 1, and a label for each patch (n, N)."""
    seed = FIRST + list(IMAGES).index(part)
    found = recall(scaled(IMAGES[part], scale), seed=seed, side=side, partner=partner)
    return ImageSet(2 * found.images - 1, found.labels)


def task(model: str, side: int = SIDE) -> Task:
    """Images and kernel of a model, as `mixing` takes them."""
    images = (side * PATCH, PATCH, 3, len(COLORS))
    return Task(images, 2 * side - 1 if model == WIDE else 3, STEPS, RECIPE["batch_size"])


def options_of(model: str, side: int = SIDE) -> dict:
    """The arguments of a `Hybrid`, or the widths of the CNN."""
    of, name = task(model, side), {WIDE: "ConvMixer", NORMED: WHOLE}.get(model, model)
    options = mixing.options_of(of, name, mixing.width_of(of, name))
    return options | ({"stem": "normed"} if model == NORMED else {})


def build(model: str, seed: int, side: int = SIDE) -> nn.Module:
    """A model before training, which answers for every patch."""
    torch.manual_seed(seed)
    if model == LINEAR:
        N, K = side**2, len(COLORS)
        return nn.Sequential(linear(N * 3 * PATCH**2, N * K), nn.Unflatten(1, (N, K)))
    sizes, options = task(model, side).model, options_of(model, side)
    if model == CNN:
        return PatchAnswers(SmallCNN(in_channels=3, num_classes=sizes["num_classes"], **options))
    return PatchAnswers(Hybrid(**sizes, **options))


@cache
def cost_of(model: str, side: int = SIDE) -> tuple[int, int]:
    """Parameters, and multiplications for one image."""
    with torch.device("meta"):
        built, pixels = build(model, 0, side).eval(), side * PATCH
        return count_parameters(built), count_multiplies(built, torch.empty(1, 3, pixels, pixels))


def steps_of(model: str, steps: int = STEPS, side: int = SIDE) -> int:
    """The number of updates whose multiplications are those of so many of the ViT's."""
    if model in (LINEAR, NEAREST):
        return steps if model == LINEAR else 0
    return round(steps * cost_of(WHOLE, side)[1] / cost_of(model, side)[1])


def fit(
    model: str, seed: int, log: Log, scale: float, *, steps: int, of: dict, **chosen: Any
) -> tuple[nn.Module, list[float]]:
    """Train one model for so many updates: it and its losses. `of`: side and partner."""
    known = images_of("train", scale, **of)
    config = TrainConfig(
        steps=scaled(steps, scale),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        seed=seed,
        **chosen,
    )
    built = build(model, seed, of.get("side", SIDE))
    return built, fit_recall(built, known, config, log)


def measured(model: nn.Module, losses: list[float], scale: float, of: dict) -> Outcome:
    """What `METRICS` names."""
    asked = images_of("test", scale, **of)
    known = ImageSet(*(part[: len(asked.labels)] for part in images_of("train", scale, **of)))
    loss, accuracy = answered(model, asked)
    return Outcome(
        {
            "test_accuracy": accuracy,
            "test_loss": loss,
            "train_accuracy": answered(model, known)[1],
            "loss": thin(losses),
            "parameters": count_parameters(model),
        }
    )


def judged(model: nn.Module, scale: float, of: dict) -> dict[str, float]:
    """What a trial measures."""
    loss, accuracy = answered(model, images_of("validation", scale, **of))
    return {"validation_loss": loss, "validation_accuracy": accuracy}


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model and test it."""
    name = condition["model"]
    if name == NEAREST:
        return mixing.nearest(images_of, scale)
    model, losses = fit(name, seed, log, scale, steps=steps_of(name), of={}, **chosen)
    return measured(model, losses, scale, {})


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
) -> dict:
    """Train one model for that share of the steps, and judge it on validation images."""
    name = condition["model"]
    steps = scaled(steps_of(name), length)
    return judged(fit(name, seed, log, scale, steps=steps, of={}, **tried)[0], scale, {})


EXPERIMENT = Experiment(
    what="Every patch is a small map whose dot names another patch, and has to say that patch's "
    "colour: architectures with equal parameters and equal compute; logistic regression and the "
    "nearest image.",
    chosen_on="validation images: the learning rate of each model, by the mean of three seeds, all "
    "steps long",
    metrics=METRICS,
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
    steps=lambda condition: steps_of(condition["model"]),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(trial, TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
    ),
)
