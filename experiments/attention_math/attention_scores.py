"""From scores to weights: softmax with and without 1 / sqrt(d), over d; linear, ReLU, uniform."""

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.baseline_rows import PLAIN, plain, updates
from experiments.machinery.choose import Choice, several
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import ImageSet, pointer
from vitbook.inspection import attention_maps
from vitbook.models.vit import VisionTransformer

SIZES: dict = {"image_size": 24, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 1}
MODEL: dict = {**SMALL, **LEARNED, **SIZES, "num_classes": 4}
RECIPE: dict = {"steps": 500, "batch_size": 128, "warmup_steps": 40}
CELLS = {"cells_per_side": 3, "num_classes": 4}
IMAGES = {"train": 20_000, "validation": 1_000, "test": 1_000}
TRIAL_SEEDS = 3  # for each learning rate that is tried
LEVEL = 0.95  # accuracy that `steps_to_95` waits for
EVERY = 25  # steps between looks at the accuracy
WIDTHS = (4, 16, 64, 256)
USUAL = {"scaled": True, "head_dim": 64}


def softmax(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1)


def linear(scores: Tensor) -> Tensor:
    """As they are, over the number of keys.

    Not over their sum: that of signed scores comes as near to zero as you like.
    """
    return scores / scores.shape[-1]


def relu(scores: Tensor) -> Tensor:
    """Negative ones cut off, the others over their sum; a row without any stays empty."""
    kept = scores.relu()
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(kept.dtype).tiny)


def uniform(scores: Tensor) -> Tensor:
    """All keys alike, whatever the scores: what is left when nobody chooses."""
    return (0 * scores).softmax(dim=-1)


NORMALISERS = {"softmax": softmax, "linear": linear, "relu": relu, "uniform": uniform}


class ScoreAttention(nn.Module):
    """One head whose queries and keys may be of any width; its values are as wide as the tokens.

    Args:
        embed_dim: D, the width of a token.
        head_dim: d, the width of queries and keys.
        normaliser: How scores (..., N) become weights, a key of `NORMALISERS`.
        scaled: Whether the scores are divided by the root of d.
    """

    def __init__(self, *, embed_dim: int, head_dim: int, normaliser: str, scaled: bool) -> None:
        super().__init__()
        self.factor = 1 / math.sqrt(head_dim) if scaled else 1.0
        self.normalise = NORMALISERS[normaliser]
        self.q = nn.Linear(embed_dim, head_dim, bias=False)
        self.k = nn.Linear(embed_dim, head_dim, bias=False)
        self.v = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return self.proj(self.weights(x) @ self.v(x))

    def weights(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B, N, N)."""
        return self.normalise(self.factor * self.q(x) @ self.k(x).transpose(1, 2))

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """For `attention_maps`: (B, 1, N, N)."""
        return self.weights(x)[:, None]


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """The part's images; each part has a seed of its own."""
    found = pointer(scaled(IMAGES[part], scale), seed=10 + list(IMAGES).index(part), **CELLS)
    return ImageSet(2 * found.images - 1, found.labels)


def build(**condition: Any) -> VisionTransformer:
    def one_head(embed_dim: int, num_heads: int) -> ScoreAttention:
        return ScoreAttention(embed_dim=embed_dim, **condition)

    return VisionTransformer(**MODEL, attn_layer=one_head)


CLASSIFIER = Classifier(build=build, images=images_of, recipe=RECIPE)


def entropies(model: VisionTransformer, pictures: Tensor) -> list[float]:
    """Mean entropy of the rows of each layer, in nats."""
    sizes = attention_maps(model, pictures).abs()[:, :, 0]  # (L, B, N, N)
    shares = sizes / sizes.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return (-torch.xlogy(shares, shares).sum(dim=-1)).mean(dim=(1, 2)).tolist()


def first_reached(curve: list[float], level: float) -> int:
    """The step at which the accuracy first stood at the level or above; else all steps."""
    steps = [(i + 1) * EVERY for i, accuracy in enumerate(curve) if accuracy >= level]
    return min([*steps, RECIPE["steps"]])


def run(condition: dict, seed: int, log: Log, scale: float, **rate: Any) -> Outcome:
    """Train one model; look at its weights before and after."""
    name, test = condition["normaliser"], images_of("test", scale)
    if name in PLAIN:
        opponent = {"steps": RECIPE["steps"], "log": log, "scale": scale}
        return plain(name, lambda part: images_of(part, scale), **opponent)
    before = entropies(CLASSIFIER.fresh(condition, seed), test.images)
    watching, rows = CLASSIFIER.watched(test, scaled(EVERY, scale))
    model, losses = watching.fit(condition, seed, log, scale, **rate)
    curve = [row["val_accuracy"] for row in rows]
    metrics = {
        **watching.measure(model, losses, scale),
        "curve": curve,
        "steps_to_95": first_reached(curve, LEVEL),
        "entropy_at_start": before,
        "entropy_at_end": entropies(model, test.images),
    }
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="One glyph of nine names the place of another, which is the answer: a small ViT whose "
    "scores become weights by softmax, with and without 1 / sqrt(d), for four widths of queries "
    "and keys; linearly, by ReLU, or not at all.",
    chosen_on="validation images drawn with a seed of their own: the learning rate of each rule, "
    "factor and width, by the mean of three seeds, all steps long; the task, and about as many "
    "steps as it took the ViT of `mixing_pointer`",
    metrics={
        **METRICS,
        "curve": f"test accuracy after every {EVERY} steps",
        "steps_to_95": "steps until the test accuracy first stood at 95 % or more; if it never "
        f"did, {RECIPE['steps']}, all there were",
        "entropy_at_start": "mean entropy of the rows of each layer before training, in nats; of "
        "linear weights, which have signs, that of their sizes over the sum of the sizes",
        "entropy_at_end": "the same, after training",
        "learning_rate": "of an opponent: the one of three that validation images prefer",
    },
    conditions=[
        *(
            {"normaliser": "softmax", "scaled": factor, "head_dim": d}
            for d in WIDTHS
            for factor in (True, False)
        ),
        *({"normaliser": name, **USUAL} for name in ("linear", "relu", "uniform")),
    ],
    once=[{"normaliser": name, "scaled": False, "head_dim": 0} for name in PLAIN],
    seeds=range(5),
    run=run,
    data=lambda: {f"pointer, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "model": MODEL,
        "training": RECIPE,
        "images": IMAGES,
        "cells": CELLS,
        "every": EVERY,
        "trial_seeds": TRIAL_SEEDS,
    },
    replay=({"normaliser": "softmax", "scaled": True, "head_dim": 16}, 0),
    steps=lambda condition: updates(condition["normaliser"], RECIPE["steps"]),
    choose=Choice(
        grid={"learning_rate": (1.5e-3, 3e-3, 6e-3)},
        trial=several(CLASSIFIER.trial, TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
    ),
)
