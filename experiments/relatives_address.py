"""The address layer on recall by place, as the layers of `relatives_recall` were trained."""

from __future__ import annotations

import torch

from experiments import relatives_labels as labels
from experiments import relatives_recall as places
from experiments.machinery import recall
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.several import several
from experiments.relatives_labels import ADDRESS
from experiments.relatives_recall import (
    IMAGES,
    METRICS,
    RECIPE,
    TRIAL_SEEDS,
    images_of,
    judged,
    measured,
)
from vitbook.training import TrainConfig

STD = places.options_of(places.WHOLE)["position_std"]
STEPS = round(labels.steps_of(ADDRESS) * places.STEPS / labels.STEPS)  # the ViT's multiplications


def fit(seed: int, log, scale: float, length: float = 1.0, **chosen):
    """Train one model for that share of its updates: it and its losses."""
    config = TrainConfig(
        steps=scaled(scaled(STEPS, length), scale),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        seed=seed,
        **chosen,
    )
    torch.manual_seed(seed)
    model = labels.with_address(labels.width_of_address(), STD)
    return model, recall.fit_recall(model, images_of("train", scale), config, log)


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model and test it."""
    return measured(*fit(seed, log, scale, **chosen), scale, {})


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """Train one model for that share of the steps, and judge it on validation images."""
    return judged(fit(seed, log, scale, length, **tried)[0], scale, {})


EXPERIMENT = Experiment(
    what="The address layer, which reads from places that it names without looking at what is "
    "there, on recall by place: as many parameters and as much compute as in `relatives_recall`.",
    chosen_on="validation images: the learning rate, by the mean of three seeds, all steps long",
    metrics=METRICS,
    conditions=[{"model": ADDRESS}],
    seeds=range(5),
    run=run,
    data=lambda: {f"recall, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "training": {"steps": STEPS, **RECIPE},
        "width": labels.width_of_address(),
        "position_std": STD,
        "parameters": labels.cost_of(ADDRESS)[0],
        "multiplies": labels.cost_of(ADDRESS)[1],
    },
    replay=({"model": ADDRESS}, 0),
    steps=lambda condition: STEPS,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(trial, TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
    ),
)
