"""A new layer made equal to those of a record: the same block, parameters and multiplications."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from vitbook.book.records import Record
from vitbook.comparison.layer import made, read_layer, require_mixer
from vitbook.comparison.recall_task import PatchAnswers
from vitbook.comparison.tasks import TASKS
from vitbook.comparison.verdict import WHOLE, Contest
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.vit import VisionTransformer

TOLERANCE = 0.05  # of the parameters
WIDTHS = range(16, 161, 2)


def prepare(
    place: str,
    record: Record,
    task: str = "places",
    *,
    layer: Callable[..., nn.Module] | None = None,
    count: Callable[[nn.Module, Tensor], int] = count_multiplies,
) -> Contest:
    """Choose width and updates for a layer.

    Args:
        place: "file.py:Class".
        record: Of the layers beside it.
        task: One of ``TASKS``.
        layer: What makes the layer; if not given, the class that the place names.
        count: Multiplications of a model for images.

    Raises:
        ValueError: It is no token mixer, or no width comes near the parameters.
    """
    layer, whole = layer or read_layer(place), record.settings["models"][WHOLE]
    read_out = TASKS[task].read_out
    tokens = (
        record.settings["images"]["image_size"] // record.settings["images"]["patch_size"]
    ) ** 2
    found, said = {}, ""
    for width in WIDTHS:
        try:
            found[width] = count_parameters(mixer_model(layer, width, 0, record, read_out))
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:
            said = f"; D = {width}: {' '.join(str(error).split())[:120]}"
    off = {width: abs(number / whole["parameters"] - 1) for width, number in found.items()}
    if not off:
        raise ValueError(f"LAYER cannot be made with any even width from 16 to 160{said}")
    width = min(off, key=off.__getitem__)
    if off[width] > TOLERANCE:
        raise ValueError(
            f"no width gives about {whole['parameters']:,} parameters: the nearest, D = {width}, "
            f"gives {found[width]:,}"
        )
    grid = math.isqrt(tokens)
    require_mixer(
        made(layer, embed_dim=width, num_tokens=tokens, grid=(grid, grid), num_heads=2),
        tokens,
        width,
    )
    model, sizes = mixer_model(layer, width, 0, record, read_out).eval(), record.settings["images"]
    multiplies = count(model, torch.zeros(1, sizes["in_channels"], *2 * [sizes["image_size"]]))
    updates = record.settings["training"]["steps"]
    steps = round(updates * whole["multiplies"] / multiplies)
    return Contest(place, task, width, found[width], multiplies, steps, updates)


def mixer_model(
    layer: Callable[..., nn.Module],
    width: int,
    seed: int,
    record: Record,
    read_out: Callable[[nn.Module], nn.Module] = PatchAnswers,
) -> nn.Module:
    """The ViT of the record with another layer in the place of its attention.

    Args:
        layer: What makes the layer.
        width: D.
        seed: Of the start.
        record: Whose ViT it is.
        read_out: What is put round the ViT, so that it answers as its task asks: for every patch,
            by default.
    """
    torch.manual_seed(seed)
    sizes, whole = record.settings["images"], record.settings["models"][WHOLE]
    side = grid_of(record)
    offered = {"num_tokens": side**2, "grid": (side, side)}
    model = VisionTransformer(
        **sizes,
        embed_dim=width,
        depth=len(whole["layers"]),
        num_heads=whole["num_heads"],
        mlp_ratio=whole["mlp_ratio"],
        pool="mean",
        positions=whole["positions"],
        position_std=whole["position_std"],
        attn_layer=partial(made, layer, **offered),
    )
    return read_out(model)


def grid_of(record: Record) -> int:
    """Patches in a row."""
    return record.settings["images"]["image_size"] // record.settings["images"]["patch_size"]
