"""How large should a patch be? One small ViT, patches from 2 x 2 pixels to the whole image."""

from __future__ import annotations

import torch

from experiments.machinery.classifier import COSTS, METRICS, Classifier, costs
from experiments.machinery.experiment import Experiment, Outcome
from experiments.machinery.image_sets import checksums, image_set
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
    "position_base": 10000.0,  # the published table
    "centred_positions": False,
}
RECIPE = {"steps": 500, "batch_size": 100, "warmup_steps": 50}  # 5 epochs
GRID = (2e-3, 4e-3, 8e-3)
RATES = {2: 8e-3, 4: 8e-3, 7: 4e-3, 14: 8e-3, 28: 8e-3}


def build(patch_size: int, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    return VisionTransformer(**MODEL, patch_size=patch_size)


CLASSIFIER = Classifier(
    build=build,
    images=lambda part, scale: image_set(SET, part, scale),
    recipe=RECIPE,
    settings=lambda condition: {"learning_rate": RATES[condition["patch_size"]]},
)


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model, count what it costs, test it; keep its filters, (D, 1, P, P)."""
    before = build(condition["patch_size"], seed)
    model, losses = CLASSIFIER.fit(condition, seed, log, scale)
    images, _ = image_set(SET, "test", scale)
    filters, at_start = (m.patch_embed.proj.weight.detach() for m in (model, before))
    metrics = {**CLASSIFIER.measure(model, losses, scale), **costs(model, images)}
    return Outcome(metrics, {"filters": filters, "filters_at_start": at_start})


EXPERIMENT = Experiment(
    what="Images of clothes, 28 x 28 pixels, cut into patches of 2 x 2 pixels up to the whole "
    "image: the same small ViT, trained for as many steps on 10,000 images of Fashion-MNIST and "
    "tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each patch size the learning rate "
    "with the lowest loss out of the same three, with a seed of its own, in runs of half the "
    "length (of a fifth at patch size 2); the code and the trials of that search were not kept",
    metrics={**METRICS, **COSTS},
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
    steps=CLASSIFIER.steps,
)
