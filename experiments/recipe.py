"""What does each ingredient of the recipe bring? One is left out at a time."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import Experiment, Outcome, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import (
    BINS,
    calibration_error,
    probabilities,
    reliability,
    thin,
)
from vitbook.data import STATISTICS, ImageSet, augmentation
from vitbook.training import (
    TrainConfig,
    epoch_order,
    evaluate,
    parameter_groups,
    update,
    warmup_cosine,
)
from vitbook.training.randomness import generator
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
MODEL = {
    "image_size": 28,
    "patch_size": 7,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 64,
    "depth": 3,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "sincos_2d",
}
RECIPE = {  # 10 epochs; the learning rate then falls on half a cosine
    "steps": 1000,
    "batch_size": 100,
    "warmup_steps": 100,
    "weight_decay": 0.05,
    "clip_norm": 1.0,
    "label_smoothing": 0.1,
}
AUGMENTATION = {"shift": 1, "flip": True}
LEFT_OUT = {
    "nothing": {},
    "warmup": {"warmup_steps": 0},
    "cosine": {},  # the rate stays where the warm-up has brought it
    "weight decay": {"weight_decay": 0.0},
    "clipping": {"clip_norm": None},
    "augmentation": {},
    "label smoothing": {"label_smoothing": 0.0},
}
GRID = (2e-3, 4e-3, 8e-3)
RATES = dict.fromkeys(LEFT_OUT, 0.004) | {"clipping": 0.008}


def learn(model: nn.Module, data: ImageSet, config: TrainConfig, without: str, log) -> list[float]:
    """As `vitbook.training.train` does it, but that cosine and augmentation can be left out."""
    mean, std = STATISTICS[SET]
    augment = augmentation(**AUGMENTATION, fill=-mean[0] / std[0])  # the value of black
    loss_function = logged(log, config.label_smoothing)
    optimizer = torch.optim.AdamW(parameter_groups(model, config.weight_decay))
    b, losses = config.batch_size, []
    for step in range(config.steps):
        epoch, i = divmod(step, len(data.labels) // b)
        index = epoch_order(len(data.labels), config.seed, epoch)[i * b : (i + 1) * b]
        images, labels = data.images[index], data.labels[index]  # (b, 1, 28, 28), (b,)
        if without != "augmentation":
            images = augment(images, generator("augment", config.seed, step))
        share = warmup_cosine(step, config.steps, config.warmup_steps)
        if without == "cosine" and step >= config.warmup_steps:
            share = 1.0
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * share
        losses.append(update(model, optimizer, images, labels, config, loss_function)[0].item())
    return losses


def fit(without: str, seed: int, rate: float, log=lambda loss: None, scale: float = 1.0):
    """Train one model: it and the loss of each step."""
    torch.manual_seed(seed)
    model = VisionTransformer(**MODEL)
    config = TrainConfig(**{**RECIPE, **LEFT_OUT[without]}, learning_rate=rate, seed=seed)
    small = {name: scaled(RECIPE[name], scale) for name in ("steps", "batch_size")}
    data = image_set(SET, "train", scale)
    return model, learn(model, data, replace(config, **small), without, log)


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model; test its answers and how sure it is of them."""
    without = condition["without"]
    model, losses = fit(without, seed, RATES[without], log, scale)
    learned, (images, labels) = image_set(SET, "train", scale), image_set(SET, "test", scale)
    given = probabilities(model, images)  # (n, K)
    table = reliability(given, labels)
    known = evaluate(model, *(part[:2000] for part in learned))
    metrics = {
        "test_accuracy": (given.argmax(dim=-1) == labels).double().mean().item(),
        "test_loss": F.nll_loss(given.log(), labels).item(),
        "train_accuracy": known.accuracy,
        "train_loss": known.loss,
        "loss": thin(losses),
        "calibration_error": calibration_error(table),
        "reliability": table,
    }
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="A small ViT learns 10,000 images of Fashion-MNIST with the whole recipe, and with one "
    "ingredient left out at a time; tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each recipe the learning rate with "
    "the lowest loss out of the same three, with a seed of its own, in 250 steps",
    metrics={
        "test_accuracy": "share of the 10,000 test images answered rightly",
        "test_loss": "mean cross-entropy on the test images, in nats",
        "train_accuracy": "share of the first 2,000 training images, as they are, answered rightly",
        "train_loss": "mean cross-entropy on them, in nats",
        "loss": "training loss as it is minimised (augmented images, smoothed labels where there "
        "are any), 100 means over equally many steps, in nats",
        "calibration_error": "expected calibration error on the test images: mean distance between "
        f"confidence and accuracy, {BINS} even bins",
        "reliability": "for each bin of confidence: answers, sum of their confidences, right ones",
    },
    conditions=[{"without": without} for without in LEFT_OUT],
    seeds=range(5),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "augmentation": AUGMENTATION,
        "learning_rates": RATES,
        "learning_rates_tried": GRID,
    },
    replay=({"without": "nothing"}, 0),
    steps=lambda condition: RECIPE["steps"],
)
