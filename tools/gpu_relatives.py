"""The comparison of chapter 18 at full size, for `make gpu-runs NAME=relatives`: CIFAR-10, a GPU.

Seven architectures with equal parameters (within 5 %) and equal compute, a learning rate for each
from three short trials that the validation images judge, then the seeds. Nothing here was run.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

import torch
from torch import nn

from vitbook.command.recipes import SHAPES, build_model, settings_of
from vitbook.inspection.cost import count_multiplies, count_parameters

DATA, DEPTH, WIDTH, WHOLE = "cifar10", 6, 128, "vit"
LAYERS = {
    "vit": ["attention"] * DEPTH,
    "mixer": ["mixer"] * DEPTH,
    "conv-mixer": ["conv"] * DEPTH,
    "mixer-vit": ["mixer"] * (DEPTH // 2) + ["attention"] * (DEPTH // 2),
    "conv-mixer-mixer": ["conv"] * (DEPTH // 2) + ["mixer"] * (DEPTH // 2),
    "uniform": ["uniform"] * DEPTH,
    "no-mixing": ["none"] * DEPTH,
}
CONTROLS = ("uniform", "none")  # without queries and keys: their parameters are in the MLP
EPOCHS, BATCH, LEARNED = 100, 256, 45_000
STEPS = EPOCHS * (LEARNED // BATCH)  # of the ViT
TOLERANCE = 0.05
RATES = (1e-3, 2e-3, 4e-3)
SEED, LENGTH = 100, 0.1  # of the trials; the length is a share of the steps


def sized(name: str, width: int) -> dict:
    """The settings of a model of some width."""
    layers = LAYERS[name]
    return {
        "data": DATA,
        "architecture": "hybrid",
        "patch_size": 4,
        "layers": layers,
        "embed_dim": width,
        "num_heads": 4,
        "mlp_ratio": 3.0 if layers[0] in CONTROLS else 2.0,
        "kernel_size": 5,
        "stem": "normed" if layers[0] == "conv" else "patches",
        "positions": "none" if set(layers) <= {"conv", "mixer"} else "learned",
    }


def built(name: str, width: int) -> nn.Module:
    """A model without numbers."""
    with torch.device("meta"):
        return build_model(settings_of(sized(name, width))).eval()


@cache
def parameters_of(name: str, width: int) -> int:
    """How many numbers a model of some width learns."""
    return count_parameters(built(name, width))


@cache
def width_of(name: str) -> int:
    """The width with which a model has about as many parameters as the ViT.

    Raises:
        ValueError: none comes near enough.
    """
    if name == WHOLE:
        return WIDTH
    target, widths = parameters_of(WHOLE, WIDTH), range(WIDTH // 2, 3 * WIDTH, 4)
    above = bisect_left(widths, target, key=lambda width: parameters_of(name, width))
    off = {w: abs(parameters_of(name, w) / target - 1) for w in widths[above - 1 : above + 1]}
    width = min(off, key=off.__getitem__)
    if off[width] > TOLERANCE:
        raise ValueError(f"{name} has no width with about {target} parameters: {off[width]:.1%}")
    return width


@cache
def multiplies_of(name: str) -> int:
    """Multiplications for one image."""
    shape = SHAPES[DATA]
    size = (1, shape["in_channels"], shape["image_size"], shape["image_size"])
    return count_multiplies(built(name, width_of(name)), torch.empty(size, device="meta"))


def settings(name: str) -> dict:
    """All that differs from the recipe of the data set, but for the learning rate."""
    width = width_of(name)
    steps = round(STEPS * multiplies_of(WHOLE) / multiplies_of(name))
    recipe = {"batch_size": BATCH, "warmup_steps": 500, "steps": steps, "precision": "bf16"}
    return {**sized(name, width), **recipe, "shift": 4, "flip": True, "label_smoothing": 0.1}
