"""Every patch asks for another one by a label that moves: what is learned without keys?"""

from __future__ import annotations

from functools import cache, partial

import torch
from torch import nn

from experiments import relatives_recall as places
from experiments.machinery import recall
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.mixers import Address
from experiments.machinery.relatives import HEADS, TOLERANCE, WHOLE
from experiments.machinery.several import several
from experiments.relatives_recall import (
    FIRST,
    IMAGES,
    METRICS,
    RECIPE,
    SIDE,
    images_of,
    judged,
    measured,
)
from vitbook.comparison.layer import made
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig

ADDRESS, PATIENT = "address", "address, ten times the compute"
LONGER = 10  # times, of the patient one
MODELS = (WHOLE, "Mixer", "ConvMixer", "uniform", "no mixing", ADDRESS)
STEPS = 900  # updates of the ViT
STD = 0.02  # of the learned table at the start: places say nothing of labels
TRIAL_SEEDS = 2  # for each learning rate that is tried
OF = {"partner": "labelled"}


def options_of(model: str) -> dict:
    """The arguments of a `Hybrid`; for the address layer, those of the ViT and a width."""
    options = places.options_of(WHOLE if model == ADDRESS else model)
    if options["positions"] == "learned":
        options |= {"position_std": STD}
    if model == ADDRESS:
        options |= {"embed_dim": width_of_address(), "layers": [ADDRESS, ADDRESS]}
    return options


@cache
def width_of_address() -> int:
    """The width with which its parameters come nearest to the ViT's."""
    with torch.device("meta"):
        counts = {width: count_parameters(with_address(width)) for width in range(16, 161, 2)}
    target = places.cost_of(WHOLE)[0]
    width = min(counts, key=lambda w: abs(counts[w] - target))
    if abs(counts[width] / target - 1) > TOLERANCE:
        raise ValueError(f"no width of the address layer gives about {target} parameters")
    return width


def with_address(width: int, std: float = STD) -> nn.Module:
    """The ViT with address layers in the place of attention."""
    options = places.options_of(WHOLE)
    model = VisionTransformer(
        **places.task(WHOLE).model,
        embed_dim=width,
        depth=len(options["layers"]),
        num_heads=HEADS,
        mlp_ratio=options["mlp_ratio"],
        pool="mean",
        positions=options["positions"],
        position_std=std,
        attn_layer=partial(made, Address, num_tokens=SIDE**2),
    )
    return recall.PatchAnswers(model)


def build(model: str, seed: int) -> nn.Module:
    """A model before training, which answers for every patch."""
    torch.manual_seed(seed)
    if model in (ADDRESS, PATIENT):
        return with_address(width_of_address())
    return recall.PatchAnswers(Hybrid(**places.task(model).model, **options_of(model)))


@cache
def cost_of(model: str) -> tuple[int, int]:
    """Parameters, and multiplications for one image."""
    with torch.device("meta"):
        built, pixels = build(model, 0).eval(), SIDE * recall.PATCH
        return count_parameters(built), count_multiplies(built, torch.empty(1, 3, pixels, pixels))


def steps_of(model: str) -> int:
    """The number of updates whose multiplications are those of the ViT's."""
    if model == PATIENT:
        return LONGER * steps_of(ADDRESS)
    return round(STEPS * cost_of(WHOLE)[1] / cost_of(model)[1])


def searched(condition: dict) -> dict:
    """The condition whose trials choose the rate: the patient model takes the other's."""
    return {"model": ADDRESS} if condition["model"] == PATIENT else condition


def fit(condition: dict, seed: int, log, scale: float, length: float = 1.0, **chosen):
    """Train one model for that share of its updates: it and its losses."""
    known, name = images_of("train", scale, **OF), condition["model"]
    config = TrainConfig(
        steps=scaled(scaled(steps_of(name), length), scale),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        seed=seed,
        **chosen,
    )
    model = build(name, seed)
    return model, recall.fit_recall(model, known, config, log)


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model and test it."""
    return measured(*fit(condition, seed, log, scale, **chosen), scale, OF)


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """Train one model for that share of the steps, and judge it on validation images."""
    return judged(fit(condition, seed, log, scale, length, **tried)[0], scale, OF)


EXPERIMENT = Experiment(
    what="Every patch carries a label that moves from image to image, asks for another one by its "
    "label, and has to say that patch's colour: layers with equal parameters and equal compute, "
    "among them one that reads from places which it names without looking at what is there, this "
    f"one with {LONGER} times the compute, too.",
    chosen_on="validation images: the learning rate of each model, by the mean of "
    f"{TRIAL_SEEDS} seeds, all steps long; ten times the compute at the same rate",
    metrics=METRICS,
    conditions=[{"model": model} for model in (*MODELS, PATIENT)],
    seeds=range(3),
    run=run,
    data=lambda: {f"recall, {part}": checksum(*images_of(part, **OF)) for part in IMAGES},
    settings={
        "images": places.task(WHOLE).model,
        "training": {"steps": STEPS, **RECIPE},
        "models": {
            model: {
                **options_of(model),
                "parameters": cost_of(model)[0],
                "multiplies": cost_of(model)[1],
                "steps": steps_of(model),
            }
            for model in MODELS
        },
        "counts": IMAGES,
        "longer": {PATIENT: steps_of(PATIENT)},
        "first_seed": FIRST,
        "trial_seeds": TRIAL_SEEDS,
    },
    replay=({"model": WHOLE}, 0),
    steps=lambda condition: steps_of(condition["model"]),
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)},
        trial=several(trial, TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
        arm=searched,
    ),
)
