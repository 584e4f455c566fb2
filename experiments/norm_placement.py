"""Norm before or after? ViTs of three depths on digits, with and without a warm-up."""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from vitbook.data import STATISTICS, ImageSet, load_digits, normalize
from vitbook.vit import VisionTransformer

MODEL = {
    "image_size": 8,
    "patch_size": 2,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 32,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "sincos_2d",
    "position_base": 10000.0,  # the published table
    "centred_positions": False,
}
RECIPE = {"steps": 250, "batch_size": 64}
WARMUP = 50  # steps, where there is one
NORMS, DEPTHS = ("pre", "post"), (2, 6, 12)
GRID = (1e-3, 2e-3, 4e-3)
RATES = {  # chosen with the warm-up; without it everything else stays
    ("pre", 2): 4e-3,
    ("pre", 6): 4e-3,
    ("pre", 12): 4e-3,
    ("post", 2): 4e-3,
    ("post", 6): 4e-3,
    ("post", 12): 1e-3,
}


def digits(part: str, scale: float = 1.0) -> ImageSet:
    images, labels = load_digits(part)
    kept = scaled(len(labels), scale)  # all, but for a trial
    return ImageSet(normalize(images[:kept], *STATISTICS["digits"]), labels[:kept])


def build(norm: str, depth: int, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(**MODEL, depth=depth, norm_first=norm == "pre")


def gradient_by_layer(model: VisionTransformer, images: Tensor, labels: Tensor) -> list[float]:
    """Norm of the loss's gradient with respect to all weights of each block, first block first."""
    F.cross_entropy(model(images[:500]), labels[:500]).backward()
    norms = [
        nn.utils.get_total_norm([p.grad for p in block.parameters()]).item()
        for block in model.encoder.blocks
    ]
    model.zero_grad()
    return norms


CLASSIFIER = Classifier(
    build=lambda norm, depth, warmup, seed: build(norm, depth, seed),
    images=digits,
    recipe=RECIPE,
    learn_from="trainval",
    settings=lambda condition: {
        "learning_rate": RATES[condition["norm"], condition["depth"]],
        "warmup_steps": WARMUP if condition["warmup"] else 0,
    },
)


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model and test it; look at its gradients before and after."""
    learned = digits("trainval", scale)
    before = gradient_by_layer(build(condition["norm"], condition["depth"], seed), *learned)
    model, losses = CLASSIFIER.fit(condition, seed, log, scale)
    metrics = {
        **CLASSIFIER.measure(model, losses, scale),
        "gradient_by_layer": before,
        "gradient_by_layer_late": gradient_by_layer(model, *learned),
    }
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="Small ViTs of 2, 6 and 12 blocks with the norm before each branch (pre) or after each "
    "addition (post), with and without a warm-up, on digits of 8 x 8 pixels.",
    chosen_on="287 validation images, a fixed part of the training side: for each kind of norm and "
    "each depth the learning rate with the lowest loss out of the same three, with the warm-up, "
    "with a seed of its own; in the final runs they are learned from too; "
    "the code and the trials of that search were not kept",
    metrics={
        **METRICS,
        "gradient_by_layer": "before training: norm of the gradient of the loss on 500 training "
        "images with respect to the weights of each block, first block first",
        "gradient_by_layer_late": "the same after training",
    },
    conditions=[
        {"norm": norm, "depth": depth, "warmup": warmup}
        for norm, depth, warmup in product(NORMS, DEPTHS, (True, False))
    ],
    seeds=range(5),
    run=run,
    data=lambda: {f"digits, {part}": checksum(*load_digits(part)) for part in ("trainval", "test")},
    settings={
        "model": MODEL,
        "training": {**RECIPE, "warmup_steps": WARMUP},
        "learning_rates": [
            {"norm": norm, "depth": depth, "learning_rate": rate}
            for (norm, depth), rate in RATES.items()
        ],
        "learning_rates_tried": GRID,
    },
    replay=({"norm": "post", "depth": 6, "warmup": True}, 0),
    steps=CLASSIFIER.steps,
)
