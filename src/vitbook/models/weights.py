"""Weights in and out: safetensors files, and the names of torchvision and timm.

Only safetensors is read and written: a pickle (.pt, .pth, .bin) can run code when it is opened.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from vitbook.files import write_atomically
from vitbook.models import fitting
from vitbook.models.channels import adapt_channels, kernel_name
from vitbook.models.foreign import (
    SHARD,
    SUM,
    checksum,
    grid_of,
    open_safetensors,
    state_dicts,
    take,
    take_ours,
)
from vitbook.models.names import (
    TIMM_NAMES,
    TORCHVISION_NAMES,
    from_timm,
    from_torchvision,
    from_transformers,
    to_ours,
)

__all__ = [
    "TIMM_NAMES",
    "TORCHVISION_NAMES",
    "cast_weights",
    "from_timm",
    "from_torchvision",
    "from_transformers",
    "load_weights",
    "read_weights",
    "save_weights",
]


def load_weights(
    model: nn.Module,
    weights: Mapping[str, Tensor] | str | os.PathLike,
    *,
    old_grid: tuple[int, int] | None = None,
    channels: Sequence[int | Sequence[int] | None] | None = None,
) -> list[str]:
    """Put weights into a model, adapted to its images and its number of classes.

    Learned positions are resampled when the grids differ; tokens before the patches that the table
    has no rows for get zeros. A head that is missing or for other classes is left out: the model
    keeps its own. Biases that a kind of linear layer lacks in all blocks are zeros. Everything
    else has to fit exactly. What names and shapes do not tell has to be right in the model: the
    number of heads, ``norm_eps``, which GELU, where the norms stand in a block, positions without
    a table (sin-cos with its base; rotary, beside a table too), and whether the head reads the
    class token or the mean: :func:`~vitbook.models.published.rebuild` reads it off the other
    model, and refuses what ours cannot do.

    Args:
        model: A model built by this package, perhaps in torch.compile or DataParallel.
        weights: Tensors under our names, torchvision's, timm's or transformers', perhaps with a
            prefix such as ``module.``, or the path of a safetensors file that holds them: one of
            :func:`save_weights`, a published one, or the checkpoint of a run of ``python -m
            vitbook train``.
        old_grid: (rows, columns) of patches the weights were trained on. Default: what the file
            says, else a square.
        channels: What each channel of the weights sees of the model's images, as in
            :func:`~vitbook.models.channels.adapt_channels`, if they differ.

    Returns:
        One sentence for each part that was adapted, none when all fitted.

    Raises:
        FileNotFoundError: No such file.
        TypeError: The weights are neither a mapping nor a path.
        ValueError: Not a safetensors file; tensors are missing, unknown, of another shape or not
            finite. The message names them by kind, with the reason where it is known.
    """
    if isinstance(weights, (str, os.PathLike)):
        weights, metadata = read_weights(weights)
        old_grid = old_grid or grid_of(metadata)
    model = unwrapped(model)
    own, notes = model.state_dict(), list[str]()
    same = isinstance(weights, Mapping) and weights.keys() == own.keys()  # a run of timm's model
    if found := dict(state_dicts(weights)):
        weights, notes = (take if same else take_ours)(found, own, "weights")
    weights = dict(weights) if same and found else to_ours(weights)
    if channels is not None:
        name = kernel_name(weights)
        weights = adapt_channels(weights, own[name].shape[1], channels)
        notes += [f"patch kernel fitted to {own[name].shape[1]} channels by the map {channels}"]
    notes += fitting.drop_idle(weights, own) + fitting.fit_head(weights, own)
    notes += fitting.fit_biases(weights, own)
    fitting.require_names(weights, own)
    fitting.require_same_grid(weights, own)
    empty = fitting.unwritten(weights)
    fitting.require_tensors({n: x for n, x in weights.items() if n != "positions.table"}, own)
    notes += fitting.fit_positions(weights, model, old_grid)
    fitting.require_tensors(weights, own)
    notes += empty
    model.load_state_dict(weights)
    return notes


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, of which torch.compile and DataParallel hold the same weights."""
    while isinstance(
        inner := getattr(model, "_orig_mod", getattr(model, "module", None)), nn.Module
    ):
        model = inner
    return model


def read_weights(path: str | os.PathLike) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file; of a checkpoint only the model, without what its training needs.

    Args:
        path: A file whose name ends in .safetensors.

    Returns:
        The tensors by name, and the text that was saved with them.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A pickle, or a file that is not what its name says.
    """
    path = _safetensors_path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path must be an existing .safetensors file, got {path}")
    if SHARD.fullmatch(path.name):
        raise ValueError(
            f"path must be a whole model, {path} is one of several files: give load_weights the "
            "tensors of all of them, by safetensors.torch.load_file"
        )
    return open_safetensors(path)


def save_weights(
    model: nn.Module,
    path: str | os.PathLike,
    *,
    dtype: torch.dtype | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a model's parameters as a safetensors file; an old file is replaced at once or not.

    Args:
        model: Any module. If it has patches, their grid is saved with the weights.
        path: Where to; the name has to end in .safetensors.
        dtype: Floating type to save in, for example ``torch.float16`` for half the size; their
            own by default.
        metadata: More text to save with them, words to words.

    Raises:
        TypeError: Metadata that is not text, or no floating type.
        ValueError: Another kind of file, or weights too large for the type.
    """
    path, metadata = _safetensors_path(path), dict(metadata or {})
    if not all(isinstance(word, str) for item in metadata.items() for word in item):
        raise TypeError(f"metadata must map text to text, got {metadata!r}")
    if hasattr(model, "patch_embed"):
        patches: Any = model.patch_embed
        metadata = {"grid": "x".join(map(str, patches.grid))} | metadata
    tensors = model.state_dict() if dtype is None else cast_weights(model.state_dict(), dtype)
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(tensors, {"format": "pt", SUM: checksum(tensors)} | metadata))


def cast_weights(weights: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Weights in another floating type; whole numbers and booleans stay what they are.

    Raises:
        TypeError: Not a floating type.
        ValueError: A number is too large for it, or was not finite before.
    """
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating type such as torch.float16, got {dtype!r}")
    cast = {name: t.to(dtype) if t.is_floating_point() else t for name, t in weights.items()}
    if bad := [name for name, t in cast.items() if not t.isfinite().all()]:
        raise ValueError(f"weights {', '.join(bad)} do not fit into {dtype}")
    return cast


def _safetensors_path(path: str | os.PathLike) -> Path:
    path = Path(path)
    if path.suffix in {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"}:
        raise ValueError(
            f"path must be a .safetensors file, got {path}: a pickle can run code when it is "
            "opened. load_weights(model, torch.load(path, weights_only=True)) takes what can be "
            "read without; save_weights(model, 'new.safetensors') then writes such a file"
        )
    if path.suffix != ".safetensors":
        raise ValueError(f"path must end in .safetensors, got {path}")
    return path
