"""Recipes for small ViTs on whole data sets: the arms that `full_sets_arms` compares.

The name of an arm says what it is made of: its words, between commas.
"""

from collections.abc import Callable

import torch
from torch import nn

from experiments.full_sets.augment import stronger
from experiments.full_sets.full_sets import SETTINGS, images_of
from experiments.full_sets.parts import Averaged, CoarseStem, KeepHalf, refined
from experiments.machinery.experiment import logged, scaled
from vitbook.book.records import Record
from vitbook.command.recipes import SHAPES, augment, build_model, train_config
from vitbook.layers.init import init_weights
from vitbook.models.hybrid import Hybrid
from vitbook.training import TrainConfig, train, warmup_cosine

PLAIN, LARGE_FIRST = "plain", "large patches first"
COARSE, FINE = "coarse stem", "fine stem"  # with as many tokens as patches of 7, of 4
HALF, AUGMENTED = "half the tokens", "augmented"
_SMALL = (PLAIN, LARGE_FIRST, COARSE, f"{COARSE}, {AUGMENTED}", f"{FINE}, {HALF}")  # 28 x 28
_COLOUR = (PLAIN, LARGE_FIRST, FINE, f"{FINE}, {HALF}", f"{FINE}, {HALF}, {AUGMENTED}")
ARMS: dict = {"mnist": _SMALL, "fashion-mnist": _SMALL, "cifar10": _COLOUR}
LEARNED: dict = {"mnist": 54_000, "fashion-mnist": 54_000, "cifar10": 45_000}  # images, 9 of 10

LARGE_SHARE = 0.6  # of the steps, with patches twice as large
# patches of 14 take 13,000 parameters more than those of 7, so the limit asks for narrower MLPs
NARROWER = {"mlp_ratio": 1.25}
HALF_SHARE = 0.8  # of the steps, with half of the tokens
SMOOTHING = 0.1  # of the labels, in the augmented arm
WARM_AGAIN = 100  # steps; after the patches became smaller, AdamW starts anew
STANDS_FOR = {  # the words in the names of arms, for a record
    "narrower": NARROWER,
    "large_share": LARGE_SHARE,
    "half_share": HALF_SHARE,
    "label_smoothing": SMOOTHING,
}
SECOND_SEED = 1000  # added to the seed for the order of the images after that

# What a step takes, in steps of the plain arm of the same data set, the mean over a whole run. As
# `python -m experiments.full_sets.costs` measured it, on a busy machine; Fashion-MNIST
# takes what MNIST took. What the augmentation adds was within the noise, so it counts as nothing.
_COST_SMALL = dict(zip(_SMALL, (1.0, 0.67, 1.23, 1.23, 1.9), strict=True))
_COST_COLOUR = dict(zip(_COLOUR, (1.0, 0.57, 1.17, 0.77, 0.77), strict=True))
COST = {"mnist": _COST_SMALL, "fashion-mnist": _COST_SMALL, "cifar10": _COST_COLOUR}


def words(arm: str) -> list[str]:
    """What an arm is made of."""
    return arm.split(", ")


def has_stem(arm: str) -> bool:
    """Whether convolutions make the tokens of an arm."""
    return COARSE in words(arm) or FINE in words(arm)


def augmented(arm: str) -> str:
    """The same arm with augmentation, if it does not have it yet."""
    return arm if AUGMENTED in words(arm) else f"{arm}, {AUGMENTED}"


def cost(name: str, arm: str) -> float:
    """What a step of an arm takes, in those of the plain arm; also of an arm that gets augmented.

    In that case the augmentation adds what it adds to the arm that was measured with and without.
    """
    costs = COST[name]
    if arm in costs:
        return costs[arm]
    with_it = next(other for other in costs if AUGMENTED in words(other))
    bare, without_it = (one.removesuffix(f", {AUGMENTED}") for one in (arm, with_it))
    return costs[bare] + costs[with_it] - costs[without_it]


def plain_steps(name: str) -> int:
    """The updates of `full_sets`, in its minutes."""
    return train_config(SETTINGS[name]).total_steps(LEARNED[name])


def epochs_of(name: str, steps: int) -> float:
    """The passes over the images that so many updates make."""
    return round(steps * SETTINGS[name]["batch_size"] / LEARNED[name], 2)


def steps_of(name: str, arm: str, minutes: float = 1.0) -> int:
    """How many updates an arm makes in so many times the minutes of `full_sets`."""
    return round(minutes * plain_steps(name) / cost(name, arm))


def stem_arguments(name: str, arm: str) -> dict:
    """The model of an arm with a stem, in words of a `Hybrid`: 16 tokens, or 49, of CIFAR-10 64.

    The stem "coarse" is none of Hybrid's: `build` puts it in.
    """
    coarse = COARSE in words(arm)
    return {
        **SHAPES[name],
        "patch_size": 7 if coarse else 4,
        "stem": "coarse" if coarse else "conv",
        "embed_dim": 72 if coarse else 96 if name == "cifar10" else 80,
        "layers": ["attention"] * 3,
        "position_std": 0.5,
        "num_heads": 4,
        "mlp_ratio": 2.0,
    }


def build(name: str, arm: str, seed: int, patches: int = 1) -> nn.Module:
    """The model of an arm with the weights of a seed; `patches` times as large as at the end."""
    if not has_stem(arm):
        settings = {**SETTINGS[name], "seed": seed}
        settings["patch_size"] *= patches
        narrower = LARGE_FIRST in words(arm) and name != "cifar10"
        return build_model({**settings, **NARROWER} if narrower else settings)
    given = stem_arguments(name, arm)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if COARSE not in words(arm):
            return Hybrid(**given)
        model = Hybrid(**{**given, "stem": "patches"})  # of the same grid, so the positions fit
        sizes = {key: given[key] for key in ("in_channels", "embed_dim")}
        model.patch_embed = CoarseStem(**sizes).apply(init_weights)
        return model


def prepared(name: str, arm: str, seed: int, steps: int) -> Averaged:
    """The model of an arm as it is trained for so many steps, at the end at least."""
    model = build(name, arm, seed)
    if HALF in words(arm):
        model.dropout = KeepHalf(round(HALF_SHARE * steps))  # right after the positions
    return Averaged(model)


def fit(
    name: str,
    arm: str,
    steps: int,
    seed: int,
    log: Callable[[float], None],
    scale: float,
    *,
    learning_rate: float,
    evaluations: int = 0,
) -> tuple[Averaged, list[dict]]:
    """Train one of the ARMS of a data set, or one `augmented`: the model and its rows.

    It looks at the validation images so many times, evenly spaced.
    """
    steps = scaled(steps, scale)
    learned = images_of(name, "train")
    options: dict = {
        "augment": stronger(name) if AUGMENTED in words(arm) else augment(SETTINGS[name]),
        "loss_function": logged(log, SMOOTHING if AUGMENTED in words(arm) else 0.0),
        "progress": False,
    }
    if evaluations:
        options["evaluate_on"] = images_of(name, "validation", scale)
        options["evaluate_every"] = max(1, steps // evaluations)
    given = {
        "batch_size": scaled(SETTINGS[name]["batch_size"], scale),
        "learning_rate": learning_rate,
        "weight_decay": SETTINGS[name]["weight_decay"],
        "warmup_steps": scaled(SETTINGS[name]["warmup_steps"], scale),
    }
    model, history, done = prepared(name, arm, seed, steps), [], 0
    if LARGE_FIRST in words(arm):
        large, done = build(name, arm, seed, patches=2), round(LARGE_SHARE * steps)
        config = TrainConfig(**given, steps=done, seed=seed)
        history = train(large, *learned, config, schedule=from_step(0, steps), **options)
        model = Averaged(refined(large, model.model))
    config = TrainConfig(**given, steps=steps - done, seed=seed + (SECOND_SEED if done else 0))
    history += train(model, *learned, config, schedule=from_step(done, steps), **options)
    return model, history


def from_step(done: int, total: int) -> Callable[[int, int, int], float]:
    """The schedule of all steps, for a training that begins after some of them."""

    def schedule(step: int, _: int, warmup_steps: int) -> float:
        again = min(1.0, (step + 1) / WARM_AGAIN) if done else 1.0
        return again * warmup_cosine(done + step, total, warmup_steps)

    return schedule


def best(record: Record) -> dict[str, str]:
    """For each data set the arm with the highest validation accuracy, averaged weights or not.

    Args:
        record: `full_sets_arms`.
    """

    def score(name: str, arm: str) -> float:
        both = ("validation_accuracy", "averaged_accuracy")
        return max(float(record.mean(metric, data=name, arm=arm)) for metric in both)

    return {name: max(arms, key=lambda arm: score(name, arm)) for name, arms in ARMS.items()}
