"""Matching pairs: what the answer loses when the arrows between the glyphs are cut one by one."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from experiments.machinery.experiment import Log, Outcome, scaled
from experiments.maps import matching_pairs
from experiments.maps.matching_pairs import IMAGES, MODEL, RECIPE, build, chosen_head, fit, images
from vitbook.data import MatchingPairs
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate


def between_glyphs(pairs: MatchingPairs) -> Tensor:
    """The arrows from each glyph to the other, boolean (n, N, N)."""
    first, second = pairs.glyph_patches(MODEL["patch_size"]).unbind(1)  # (n, N)
    return first[:, :, None] & second[:, None, :] | second[:, :, None] & first[:, None, :]


def accuracy_without(model: VisionTransformer, test: MatchingPairs, cut: Tensor) -> float:
    """Share of right answers when the glyphs do not see each other where `cut` (L, h) says so."""
    forbidden = between_glyphs(test)[:, None]  # (n, 1, N, N)
    layers = [block.attn for block in model.encoder.blocks]
    try:
        for layer, heads in zip(layers, cut, strict=True):
            mask = ~(forbidden & heads[:, None, None])  # (n, h, N, N)
            layer.forward = partial(_masked, layer, mask)
        with torch.no_grad():
            answers = model(test.images).argmax(dim=1)
    finally:
        for layer in layers:
            del layer.forward
    return float((answers == test.labels).float().mean())


def _masked(layer: Any, own: Tensor, x: Tensor, mask: Tensor | None = None) -> Tensor:
    return type(layer).forward(layer, x, own)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train a ViT as in `matching_pairs`, and cut."""
    parts = {part: images(part, scale) for part in IMAGES}
    model = build("attention", seed)
    fit(model, parts["train"], scaled(RECIPE["steps"], scale), seed, log, scale)
    layer, head = chosen_head(model, parts["validation"])
    test, every = parts["test"], torch.zeros(MODEL["depth"], MODEL["num_heads"], dtype=torch.bool)

    def without(at: Any) -> float:
        cut = every.clone()
        cut[at] = True
        return accuracy_without(model, test, cut)

    heads = [[without((at, h)) for h in range(MODEL["num_heads"])] for at in range(MODEL["depth"])]
    return Outcome(
        {
            "test_accuracy": evaluate(model, test.images, test.labels).accuracy,
            "layer": layer,
            "head": head,
            "accuracy_without_best": heads[layer][head],
            "accuracy_without_head": heads,
            "accuracy_without_layer": [without(at) for at in range(MODEL["depth"])],
            "accuracy_without_all": without(...),
        }
    )


EXPERIMENT = replace(
    matching_pairs.EXPERIMENT,
    what="ViTs trained as in matching_pairs: the glyphs may not look at each other in one head, in "
    "one layer, or anywhere.",
    chosen_on="validation images: the layer and head that find the partner most often",
    metrics={
        "test_accuracy": "share of 2,000 test images answered rightly",
        "layer": "the chosen layer, from 0",
        "head": "the chosen head, from 0",
        "accuracy_without_best": "the same, glyphs hidden from each other in the chosen head alone",
        "accuracy_without_head": "the same, in one head of one layer: layers x heads",
        "accuracy_without_layer": "the same, in all heads of one layer",
        "accuracy_without_all": "the same, in all heads of all layers",
    },
    conditions=[{"mixing": "attention"}],
    run=run,
    settings={"model": MODEL, "training": RECIPE, "images": IMAGES},
    keep={},
)
