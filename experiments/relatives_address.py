"""The address layer where places suffice, and with ten times the compute where they do not."""

from __future__ import annotations

import torch

from experiments import relatives_labels as labels
from experiments import relatives_recall as places
from experiments.machinery import recall
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.relatives_labels import ADDRESS
from experiments.relatives_recall import IMAGES, METRICS, RECIPE, images_of, judged, measured
from vitbook.training import TrainConfig

LONGER = 10  # times the compute of `relatives_labels`
OF = {"places": {"partner": "named"}, "labels": labels.OF}
STD = {"places": places.options_of(places.WHOLE)["position_std"], "labels": labels.STD}


def steps(condition: dict) -> int:
    """Updates with the ViT's multiplications on places; on labels with ten times the ViT's."""
    if condition["task"] == "labels":
        return LONGER * labels.steps_of(ADDRESS)
    return round(labels.steps_of(ADDRESS) * places.STEPS / labels.STEPS)


def fit(condition: dict, seed: int, log, scale: float, length: float = 1.0, **chosen):
    """Train one model for that share of its updates: it and its losses."""
    task = condition["task"]
    config = TrainConfig(
        steps=scaled(scaled(steps(condition), length), scale),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        seed=seed,
        **chosen,
    )
    torch.manual_seed(seed)
    model = labels.with_address(labels.width_of_address(), STD[task])
    return model, recall.fit(model, images_of("train", scale, **OF[task]), config, log)


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model and test it."""
    return measured(*fit(condition, seed, log, scale, **chosen), scale, OF[condition["task"]])


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """Train one model for a shorter time, and judge it on validation images."""
    model, _ = fit(condition, seed, log, scale, length, **tried)
    return judged(model, scale, OF[condition["task"]])


EXPERIMENT = Experiment(
    what="The address layer on recall by place, with the compute of the ViT in `relatives_recall`, "
    f"and on recall by label, with {LONGER} times the compute of `relatives_labels`.",
    chosen_on="validation images: the learning rate for each task, after a fifth of the steps, "
    "with one seed",
    metrics=METRICS,
    conditions=[{"task": task} for task in OF],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"recall by {task}, {part}": checksum(*images_of(part, **of))
        for task, of in OF.items()
        for part in IMAGES
    },
    settings={
        "longer": LONGER,
        "position_std": STD,
        "steps": {task: steps({"task": task}) for task in OF},
        "parameters": labels.cost_of(ADDRESS)[0],
    },
    replay=({"task": "places"}, 0),
    steps=steps,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial, length=0.2, finalists=0, limit=4
    ),
)
