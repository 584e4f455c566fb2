"""Class token or mean? And does it matter how the class token starts, or a table off by one?"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.experiment import Experiment, Outcome, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import parameters, thin
from vitbook.training import TrainConfig, evaluate, train
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


def fit(condition: dict, seed: int, rate: float, log=lambda loss: None, scale: float = 1.0):
    """Train one model: it and the loss of each step."""
    model = build(seed=seed, **condition)
    small = {name: scaled(RECIPE[name], scale) for name in ("steps", "batch_size")}
    config = TrainConfig(**{**RECIPE, **small}, learning_rate=rate, seed=seed)
    learn = image_set(SET, "train", scale)
    history = train(model, *learn, config, loss_function=logged(log), progress=False)
    return model, [row["loss"] for row in history]


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model and test it."""
    rate = RATES["mean" if condition["pool"] == "mean" else "class token"]
    model, losses = fit(condition, seed, rate, log, scale)
    learned, test = image_set(SET, "train", scale), image_set(SET, "test", scale)
    result = evaluate(model, *test)
    metrics = {
        "test_accuracy": result.accuracy,
        "test_loss": result.loss,
        "train_accuracy": evaluate(model, *(part[:2000] for part in learned)).accuracy,
        "loss": thin(losses),
        "parameters": parameters(model),
    }
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="The same small ViT read out as the mean of its tokens or by a class token that starts "
    "with zeros, at random, or under a table of positions shifted by one, trained on 10,000 images "
    "of Fashion-MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for the mean, and for the three models "
    "with a class token together, the learning rate with the lowest mean loss out of the same "
    "three, with a seed of its own, in runs of half the length",
    metrics={
        "test_accuracy": "share of the 10,000 test images answered rightly",
        "test_loss": "mean cross-entropy on the test images, in nats",
        "train_accuracy": "share of the first 2,000 training images answered rightly",
        "loss": "training loss, 100 means over equally many steps, in nats",
        "parameters": "numbers that are learned",
    },
    conditions=[MEAN, *CLS.values()],
    seeds=range(5),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "learning_rates": RATES,
        "learning_rates_tried": GRID,
    },
    replay=(CLS["zeros"], 0),
    steps=lambda condition: RECIPE["steps"],
)
