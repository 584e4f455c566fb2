"""Which learning rate suits a larger batch? Four batch sizes against the linear and the root rule.

Two questions are meant: the batch grows while the images seen stay as many (equal epochs, what a
larger batch on the same data set is), or while the updates stay as many (more data or more time).
"""

from __future__ import annotations

import math

import torch

from experiments.machinery.classifier import Classifier
from experiments.machinery.experiment import Experiment, Outcome
from experiments.machinery.image_sets import checksums, image_set
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate

SET = "mnist"
MODEL = {
    "image_size": 28,
    "patch_size": 7,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 32,
    "depth": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "learned",
    "position_std": 0.5,
}
BATCHES = (16, 64, 256, 1024)
FROM = 64  # the batch whose best rate the rules start from: the command's own
IMAGES, UPDATES = 32_000, 125  # seen in all, a batch of 256 makes as many updates of both kinds
WARMUP = 10  # one update in so many
RULES = {"linear": 1.0, "root": 0.5}
FIRST = (1e-3, 2e-3, 4e-3)  # tried for each batch; then outwards, by factors of two
WALK = 8  # rates at most until the best has one on each side


def build(equal: str, batch: int, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(**MODEL)


def settings(condition: dict) -> dict:
    """What `TrainConfig` takes for one batch size."""
    batch = condition["batch"]
    steps = UPDATES if condition["equal"] == "updates" else IMAGES // batch
    return {"batch_size": batch, "steps": steps, "warmup_steps": steps // WARMUP}


CLASSIFIER = Classifier(
    build=build,
    images=lambda part, scale: image_set(SET, part, scale),
    recipe={},
    settings=settings,
)


class Trials:
    """The trainings of one batch size with one seed, each rate once."""

    def __init__(self, condition: dict, seed: int, log, scale: float):
        self.given = condition, seed, log, scale
        self.found: dict[float, tuple[float, float]] = {}  # validation loss, test accuracy

    def loss(self, rate: float) -> float:
        """On the validation images, after training at this rate."""
        if rate not in self.found:
            condition, seed, log, scale = self.given
            model, _ = CLASSIFIER.fit(condition, seed, log, scale, learning_rate=rate)
            judged, tested = (
                evaluate(model, *image_set(SET, part, scale)) for part in ("validation", "test")
            )
            self.found[rate] = judged.loss, tested.accuracy
        return self.found[rate][0]

    def walk(self) -> float:
        """The rate with the least loss, once worse ones lie on both sides of it."""
        tried = list(FIRST)
        while True:
            best = min(tried, key=self.loss)
            edges = {min(tried): best / 2, max(tried): best * 2}
            if best not in edges or len(tried) == WALK:
                return best
            tried = sorted([*tried, edges[best]])

    def vertex(self, best: float) -> float:
        """Between the rates of the grid: where a parabola through the best three is lowest."""
        low, middle, high = (self.loss(rate) for rate in (best / 2, best, best * 2))
        bend = low - 2 * middle + high
        return best * 2 ** ((low - high) / (2 * bend)) if bend > 0 else best


def exponent(rates: list[float]) -> float:
    """p of rate ~ batch^p, by least squares over the logarithms."""
    x = torch.tensor(BATCHES, dtype=torch.float64).log2()
    y = torch.tensor(rates, dtype=torch.float64).log2()
    x = x - x.mean()
    return ((x * (y - y.mean())).sum() / x.square().sum()).item()


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Walk to the best rate of each batch size, then train at the rates of both rules."""
    every = {batch: Trials({**condition, "batch": batch}, seed, log, scale) for batch in BATCHES}
    best = {batch: trials.walk() for batch, trials in every.items()}
    at_edge = [
        int(best[batch] in (min(trials.found), max(trials.found)))
        for batch, trials in every.items()
    ]
    places = [trials.vertex(best[batch]) for batch, trials in every.items()]
    metrics = {
        "best_rates": list(best.values()),
        "between": places,
        "exponent": exponent(places),
        "at_edge": at_edge,
        "best_accuracy": [every[batch].found[best[batch]][1] for batch in BATCHES],
    }
    for rule, power in RULES.items():
        asked = {batch: best[FROM] * 2 ** (power * math.log2(batch / FROM)) for batch in BATCHES}
        for batch, rate in asked.items():
            every[batch].loss(rate)
        metrics[f"{rule}_accuracy"] = [every[b].found[rate][1] for b, rate in asked.items()]
    curves = [sorted(every[batch].found.items()) for batch in BATCHES]
    metrics["rates"] = [[rate for rate, _ in curve] for curve in curves]
    metrics["validation_loss"] = [[loss for _, (loss, _) in curve] for curve in curves]
    metrics["test_accuracy"] = [[right for _, (_, right) in curve] for curve in curves]
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="A small ViT learns MNIST with AdamW at four batch sizes: the learning rate that suits "
    "each, found by factors of two, beside what the linear and the root rule say, with equally "
    "many images seen and with equally many updates; 10,000 images to learn from.",
    chosen_on="validation images that no run learns from: for each seed and each batch the rate "
    "with the least loss, walking outwards by factors of two until worse ones lie on both sides. "
    "Warm-up (a tenth of the updates), cosine, clipping, weight decay and AdamW's other rates were "
    "set before and are the same for all",
    metrics={
        "best_rates": "for each batch size the rate of the grid with the least validation loss",
        "between": "the same between the rates of the grid, by a parabola through the three around",
        "exponent": "p of rate ~ batch^p, fitted to these by least squares over the logarithms; "
        "the linear rule says 1, the root rule 0.5",
        "at_edge": "for each batch size 1 where the walk ended at the edge of what it tried",
        "best_accuracy": "for each batch size the share of the test images answered correctly, at "
        "the best rate of the grid",
        "linear_accuracy": f"the same at the best rate of batch {FROM}, times batch / {FROM}",
        "root_accuracy": f"the same at the best rate of batch {FROM}, times its root",
        "rates": "for each batch size all rates that were tried",
        "validation_loss": "for each of these the mean cross-entropy on the validation images",
        "test_accuracy": "for each of these the share of the test images answered correctly",
    },
    conditions=[{"equal": "images"}, {"equal": "updates"}],
    seeds=range(3),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "batches": BATCHES,
        "images": IMAGES,
        "updates": UPDATES,
        "from": FROM,
        "warmup": f"one update in {WARMUP}",
        "first_rates": FIRST,
    },
    replay=({"equal": "images"}, 0),
)
