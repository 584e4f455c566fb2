"""One fault at a time in the loop of `training`: what the loss and the answers then show."""

import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import Experiment, Log, Outcome, scaled
from experiments.machinery.image_sets import digits_checksums, digits_set
from experiments.training.cosine_end import BATCH, DECAY, MODEL, PARTS, WARMUP
from vitbook.data import ImageSet, load_digits
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate, parameter_groups, warmup_cosine

RATE = 0.015
STEPS, ONE_BATCH = 60, 40
LATE, END = 20, 10  # the loss after so many steps; its mean over so many at the end
FAULTS: dict[str, dict] = {  # what is different
    "nothing wrong": {},
    "rate / 1000": {"rate": RATE / 1000},
    "rate × 10": {"rate": 10 * RATE},
    "no zero_grad": {"clear": False},
    "labels shuffled": {"shuffled": True},
    "softmax first": {"softmax": True},
    "pixels 0...255": {"raw": True},
    "no positions": {"positions": "none"},
}
ON_ONE_BATCH = (*list(FAULTS)[:5], "no positions")


def images_of(part: str, raw: bool = False) -> ImageSet:
    """Digits, normalized or as bytes: (n, 1, 8, 8) and their labels."""
    images, labels = load_digits(part)
    return ImageSet(255 * images, labels) if raw else digits_set(part)


def fitted(
    fault: str, seed: int, log: Log, steps: int, *, one_batch: bool = False
) -> tuple[nn.Module, list[float], float]:
    """The model, its losses, and its share of right answers on the last batch."""
    wrong = FAULTS[fault]
    images, labels = images_of("train", wrong.get("raw", False))
    positions = {"positions": "none", "position_std": None} if "positions" in wrong else {}
    torch.manual_seed(seed)
    model = VisionTransformer(**{**MODEL, **positions})
    optimizer = torch.optim.AdamW(parameter_groups(model, DECAY))
    order = torch.Generator().manual_seed(seed)
    if wrong.get("shuffled"):
        labels = labels[torch.randperm(len(labels), generator=order)]
    losses = []
    model.train()
    for step in range(steps):
        share = warmup_cosine(step, steps, min(WARMUP, steps - 1))
        for group in optimizer.param_groups:
            group["lr"] = wrong.get("rate", RATE) * share
        places = torch.randperm(len(images), generator=order)[:BATCH]
        places = torch.arange(BATCH) if one_batch else places
        logits = model(images[places])
        logits = logits.softmax(-1) if wrong.get("softmax") else logits
        loss = F.cross_entropy(logits, labels[places])
        if wrong.get("clear", True):
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        log(loss.item())
    return model, losses, evaluate(model, images[places], labels[places]).accuracy


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train on all images, and, where that is a test of the fault, on one batch."""
    fault, late, end = condition["fault"], *(scaled(steps, scale) for steps in (LATE, END))
    model, losses, _ = fitted(fault, seed, log, scaled(STEPS, scale))
    known, asked = images_of("validation", FAULTS[fault].get("raw", False))
    metrics = {
        "first_loss": losses[0],
        "late_loss": max(losses[late:]),
        "end_loss": sum(losses[-end:]) / end,
        "least_loss": min(losses),
        "validation_accuracy": evaluate(model, known, asked).accuracy,
    }
    if fault in ON_ONE_BATCH:
        steps = scaled(ONE_BATCH, scale)
        metrics["one_batch"] = fitted(fault, seed, lambda loss: None, steps, one_batch=True)[2]
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="A tiny ViT on digits, trained for 60 steps with one fault at a time, and with some of "
    "them on one batch of 32 images for 40 steps.",
    chosen_on="nothing: settings and faults are those of the page on training",
    metrics={
        "first_loss": "training loss of the first step, in nats",
        "late_loss": f"largest training loss after step {LATE}",
        "end_loss": f"mean training loss of the last {END} steps",
        "least_loss": "smallest training loss",
        "validation_accuracy": "share of the validation images answered correctly",
        "one_batch": f"after {ONE_BATCH} steps on one batch: share of it answered correctly",
    },
    conditions=[{"fault": fault} for fault in FAULTS],
    seeds=range(20),
    run=run,
    data=lambda: digits_checksums(*PARTS),
    settings={"model": MODEL, "training": {"steps": STEPS, "one_batch": ONE_BATCH, "rate": RATE}},
    replay=({"fault": "nothing wrong"}, 0),
    steps=lambda condition: STEPS,
)
