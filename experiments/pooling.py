"""Class token or mean? And does it matter how the class token starts, or a table off by one?"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment
from experiments.machinery.image_sets import checksums, image_set
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
MODEL = {
    "image_size": 28,
    "patch_size": 7,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 48,
    "depth": 3,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "positions": "learned",
}
RECIPE = {"steps": 500, "batch_size": 100, "warmup_steps": 50}  # 5 epochs
GRID = (2e-3, 4e-3, 8e-3)
MEAN = {"pool": "mean"}
CLS = {start: {"pool": "cls", "start": start} for start in ("zeros", "random", "shifted table")}
RATES = {"mean": 4e-3, "class token": 4e-3}


class ShiftedPositions(nn.Module):
    """A table of N rows laid over N + 1 tokens.

    The class token takes the row of the first patch, each patch that of the next one, and the last
    patch goes without.
    """

    def __init__(self, table: Tensor):
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N + 1, D) -> tokens (B, N + 1, D)."""
        return x + F.pad(self.table, (0, 0, 0, 1))


def build(pool: str, seed: int, start: str = "zeros") -> VisionTransformer:
    """All class tokens come with the same other weights, given the seed."""
    torch.manual_seed(seed)
    model = VisionTransformer(**MODEL, pool=pool)  # a class token of zeros
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
        "learning_rate": RATES["mean" if condition["pool"] == "mean" else "class token"]
    },
)


EXPERIMENT = Experiment(
    what="The same small ViT read out as the mean of its tokens or by a class token that starts "
    "with zeros, at random, or under a table of positions shifted by one, trained on 10,000 images "
    "of Fashion-MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for the mean, and for the three models "
    "with a class token together, the learning rate with the lowest mean loss out of the same "
    "three, with a seed of its own, in runs of half the length; "
    "the code and the trials of that search were not kept",
    metrics=METRICS,
    conditions=[MEAN, *CLS.values()],
    seeds=range(5),
    run=CLASSIFIER.run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "learning_rates": RATES,
        "learning_rates_tried": GRID,
    },
    replay=(CLS["zeros"], 0),
    steps=CLASSIFIER.steps,
)
