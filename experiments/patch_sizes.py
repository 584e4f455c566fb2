"""How large should a patch be? One small ViT, patches from 2 x 2 pixels to the whole image."""

from __future__ import annotations

import torch

from experiments.machinery.experiment import Experiment, Outcome, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import multiplies, parameters, thin
from vitbook.training import TrainConfig, evaluate, train
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
MODEL = {
    "image_size": 28,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 48,
    "depth": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "sincos_2d",  # not learned: only the embedding changes with the patch size
}
RECIPE = {"steps": 500, "batch_size": 100, "warmup_steps": 50}  # 5 epochs
GRID = (2e-3, 4e-3, 8e-3)
RATES = {2: 8e-3, 4: 8e-3, 7: 4e-3, 14: 8e-3, 28: 8e-3}


def build(patch_size: int, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(**MODEL, patch_size=patch_size)


def fit(patch_size: int, seed: int, rate: float, log=lambda loss: None, scale: float = 1.0):
    """Train one model: it, its filters before, and the loss of each step."""
    model = build(patch_size, seed)
    before = model.patch_embed.proj.weight.detach().clone()  # (D, 1, P, P)
    small = {name: scaled(RECIPE[name], scale) for name in ("steps", "batch_size")}
    config = TrainConfig(**{**RECIPE, **small}, learning_rate=rate, seed=seed)
    learn = image_set(SET, "train", scale)
    history = train(model, *learn, config, loss_function=logged(log), progress=False)
    return model, before, [row["loss"] for row in history]


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model, count what it costs, test it."""
    patch_size = condition["patch_size"]
    model, before, losses = fit(patch_size, seed, RATES[patch_size], log, scale)
    learned, test = image_set(SET, "train", scale), image_set(SET, "test", scale)
    result = evaluate(model, *test)
    metrics = {
        "test_accuracy": result.accuracy,
        "test_loss": result.loss,
        "train_accuracy": evaluate(model, *(part[:2000] for part in learned)).accuracy,
        "loss": thin(losses),
        "tokens": model.patch_embed.num_patches,
        "parameters": parameters(model),
        "multiplies": multiplies(model, test.images),
    }
    filters = model.patch_embed.proj.weight.detach()
    return Outcome(metrics, {"filters": filters, "filters_at_start": before})


EXPERIMENT = Experiment(
    what="Images of clothes, 28 x 28 pixels, cut into patches of 2 x 2 pixels up to the whole "
    "image: the same small ViT, trained for as many steps on 10,000 images of Fashion-MNIST and "
    "tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each patch size the learning rate "
    "with the lowest loss out of the same three, with a seed of its own, in runs of half the "
    "length (of a fifth at patch size 2)",
    metrics={
        "test_accuracy": "share of the 10,000 test images answered rightly",
        "test_loss": "mean cross-entropy on the test images, in nats",
        "train_accuracy": "share of the first 2,000 training images answered rightly",
        "loss": "training loss, 100 means over equally many steps, in nats",
        "tokens": "N, patches in an image",
        "parameters": "numbers that are learned",
        "multiplies": "multiplications in the matrix products for one image",
    },
    conditions=[{"patch_size": patch_size} for patch_size in RATES],
    seeds=range(3),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "learning_rates": [{"patch_size": p, "learning_rate": r} for p, r in RATES.items()],
        "learning_rates_tried": GRID,
    },
    replay=({"patch_size": 7}, 0),
    keep={"filters": ({"patch_size": 7}, 0)},
    steps=lambda condition: RECIPE["steps"],
)
