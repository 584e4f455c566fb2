"""Width, patch size and depth: a grid of 12 small ViTs, each with its accuracy, size and cost."""

from __future__ import annotations

from itertools import product

import torch

from experiments.machinery.classifier import COSTS, METRICS, Classifier, costs
from experiments.machinery.experiment import Experiment, Outcome
from experiments.machinery.image_sets import checksums, image_set
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
WIDTHS, PATCHES, DEPTHS = (32, 64, 96), (7, 14), (2, 4)
MODEL = {
    "image_size": 28,
    "in_channels": 1,
    "num_classes": 10,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "sincos_2d",
    "position_base": 10000.0,  # the published table
    "centred_positions": False,
}
RECIPE = {"steps": 400, "batch_size": 100, "warmup_steps": 50}  # 4 epochs
GRID = (2e-3, 4e-3, 8e-3)
RATES = {  # (embed_dim, depth)
    (32, 2): 8e-3,
    (32, 4): 8e-3,
    (64, 2): 4e-3,
    (64, 4): 8e-3,
    (96, 2): 4e-3,
    (96, 4): 2e-3,
}


def build(seed: int, **condition) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(**MODEL, **condition)


CLASSIFIER = Classifier(
    build=build,
    images=lambda part, scale: image_set(SET, part, scale),
    recipe=RECIPE,
    settings=lambda condition: {"learning_rate": RATES[condition["embed_dim"], condition["depth"]]},
)


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model, count what it costs, test it."""
    model, losses = CLASSIFIER.fit(condition, seed, log, scale)
    images, _ = image_set(SET, "test", scale)
    return Outcome({**CLASSIFIER.measure(model, losses, scale), **costs(model, images)})


EXPERIMENT = Experiment(
    what="Small ViTs of three widths, two patch sizes and two depths, each trained for as many "
    "steps on 10,000 images of Fashion-MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each width and depth, at patch size "
    "7, the learning rate with the lowest loss out of the same three, with a seed of its own, in "
    "runs of half the length; the code and the trials of that search were not kept",
    metrics={**METRICS, **COSTS},
    conditions=[
        {"embed_dim": embed_dim, "patch_size": patch_size, "depth": depth}
        for embed_dim, patch_size, depth in product(WIDTHS, PATCHES, DEPTHS)
    ],
    seeds=range(3),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "learning_rates": [
            {"embed_dim": width, "depth": depth, "learning_rate": rate}
            for (width, depth), rate in RATES.items()
        ],
        "learning_rates_tried": GRID,
    },
    replay=({"embed_dim": 32, "patch_size": 7, "depth": 2}, 0),
    steps=CLASSIFIER.steps,
)
