"""Class token or mean, after few steps and after four times as many?

Does it matter how the class token starts, or a table off by one? And would such an experiment see
anything: the mean without positions.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, MustBeat
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.small_vit import GREY
from vitbook.models.vit import VisionTransformer

SET = "fashion-mnist"
SIZES: dict = {"embed_dim": 48, "depth": 2, "num_heads": 4, "mlp_ratio": 2.0}
MODEL: dict = {**GREY, "image_size": 28, "patch_size": 7, **SIZES}
SHORT, LONG = 500, 2000  # steps: two and a half epochs, and ten
RECIPE: dict = {"batch_size": 50}
MEAN, ZEROS = {"pool": "mean", "positions": "learned"}, {"pool": "cls", "start": "zeros"}
BLIND = {**MEAN, "positions": "none"}  # the control
OTHERS = [{"pool": "cls", "start": start, "steps": SHORT} for start in ("random", "shifted table")]


class ShiftedPositions(nn.Module):
    """A table of N rows laid over N + 1 tokens.

    The class token takes the row of the first patch, each patch that of the next one, and the last
    patch goes without.
    """

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N + 1, D) -> tokens (B, N + 1, D)."""
        return x + F.pad(self.table, (0, 0, 0, 1))


def build(
    pool: str, steps: int, start: str = "zeros", positions: str = "learned"
) -> VisionTransformer:
    """All class tokens come with the same other weights, given the seed."""
    std = 0.5 if positions == "learned" else None
    model: Any = VisionTransformer(**MODEL, pool=pool, positions=positions, position_std=std)
    if start == "random":
        nn.init.normal_(model.cls_token)
    if start == "shifted table":
        model.positions = ShiftedPositions(model.positions.table.detach()[1:].clone())
    return model


CLASSIFIER = Classifier(
    build=build,
    images=lambda part, scale: image_set(SET, part, scale),
    recipe=RECIPE,
    settings=lambda condition: {
        "steps": condition["steps"],
        "warmup_steps": condition["steps"] // 10,
    },
)


def arm(condition: dict) -> dict:
    """The other class tokens take the rate of the one that starts with zeros."""
    return {**ZEROS, "steps": SHORT} if condition in OTHERS else condition


EXPERIMENT = Experiment(
    what="The same small ViT read out as the mean of its tokens or by a class token, trained on "
    "10,000 images of Fashion-MNIST in few steps and in four times as many, and tested on the "
    "official 10,000; beside them the mean without positions; in few steps also with a class token "
    "that starts at random, and with one under a table of positions shifted by one.",
    chosen_on="validation images that no run learns from: the learning rate of the mean, with and "
    "without positions, and of the class token, each for each number of steps, after half of the "
    "steps, with a seed of its own; the other two class tokens take the rate of the first",
    metrics=METRICS,
    conditions=[{**way, "steps": steps} for steps in (SHORT, LONG) for way in (MEAN, ZEROS, BLIND)]
    + OTHERS,
    seeds=range(5),
    run=CLASSIFIER.run,
    data=lambda: checksums(SET),
    settings={"model": MODEL, "training": RECIPE},
    replay=({**ZEROS, "steps": SHORT}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, finalists=0, arm=arm
    ),
    must_beat=MustBeat({**ZEROS, "steps": LONG}, data="10,000 of fashion-mnist"),
)
