"""Thirty last steps at the same rate, or along a cosine: at which rate does the cosine help?"""

from itertools import product

import torch
import torch.nn.functional as F

from experiments.machinery.experiment import Experiment, Log, Outcome, scaled
from experiments.machinery.image_sets import digits_checksums, digits_set
from experiments.machinery.small_vit import DIGITS, SMALL
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate, parameter_groups, warmup_cosine

# The tiny ViT of the page `training`.
SIZES: dict = {"embed_dim": 32, "depth": 1, "num_heads": 4, "position_std": 0.5}
MODEL: dict = {**SMALL, **DIGITS, **SIZES}
RATES = (0.00375, 0.0075, 0.015, 0.03)
ENDS = ("constant", "cosine")
BEFORE, AFTER, WARMUP = 60, 30, 10  # steps
BATCH, DECAY = 32, 0.05
PARTS = ("train", "validation")


def rates_of(condition: dict, scale: float = 1.0) -> list[float]:
    """The rate of each step: a warm-up, then constant; the end constant or along a cosine."""
    before, after, warmup = (scaled(steps, scale) for steps in (BEFORE, AFTER, WARMUP))
    begin = [min(1, (step + 1) / warmup) for step in range(before)]
    cosine = [warmup_cosine(step, after, 0) for step in range(after)]
    end = cosine if condition["end"] == "cosine" else [1] * after
    return [condition["learning_rate"] * share for share in begin + end]


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one model; both ends of a seed begin with the same steps."""
    images, labels = digits_set("train")
    torch.manual_seed(seed)
    model = VisionTransformer(**MODEL)
    optimizer = torch.optim.AdamW(parameter_groups(model, DECAY))
    order = torch.Generator().manual_seed(seed)
    model.train()
    for rate in rates_of(condition, scale):
        for group in optimizer.param_groups:
            group["lr"] = rate
        places = torch.randint(len(images), (BATCH,), generator=order)
        loss = F.cross_entropy(model(images[places]), labels[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.item())
    found = evaluate(model, *digits_set("validation"))
    return Outcome({"validation_loss": found.loss, "validation_accuracy": found.accuracy})


EXPERIMENT = Experiment(
    what="A tiny ViT on digits: after 60 steps 30 more at the same learning rate, or with the rate "
    "falling to zero along a cosine, at four rates.",
    chosen_on="nothing: every rate is shown",
    metrics={
        "validation_loss": "mean cross-entropy on the validation images, in nats",
        "validation_accuracy": "share of the validation images answered correctly",
    },
    conditions=[{"learning_rate": rate, "end": end} for rate, end in product(RATES, ENDS)],
    seeds=range(20),
    run=run,
    data=lambda: digits_checksums(*PARTS),
    settings={
        "model": MODEL,
        "training": {"before": BEFORE, "after": AFTER, "warmup": WARMUP},
        "rates": list(RATES),
    },
    replay=({"learning_rate": 0.015, "end": "cosine"}, 0),
    steps=lambda condition: BEFORE + AFTER,
)
