"""Weights in and out: safetensors files, and the names of torchvision and timm.

Only safetensors is read and written: a pickle (.pt, .pth, .bin) can run code when it is opened.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vitbook.files import CHECKPOINT, write_atomically
from vitbook.layers.positions import resample_positions

# Their name -> ours. A name that begins with a dot is replaced anywhere, others at the start only.
TORCHVISION_NAMES = {
    "class_token": "cls_token",
    "conv_proj.": "patch_embed.proj.",
    "encoder.pos_embedding": "positions.table",
    "encoder.layers.encoder_layer_": "encoder.blocks.",
    "encoder.ln.": "encoder.norm.",
    "heads.head.": "head.",
    ".ln_": ".norm",
    ".self_attention.in_proj_": ".attn.qkv.",
    ".self_attention.out_proj.": ".attn.proj.",
    ".mlp.0.": ".mlp.fc1.",
    ".mlp.3.": ".mlp.fc2.",
    ".mlp.linear_1.": ".mlp.fc1.",  # the two names used before torchvision 0.12
    ".mlp.linear_2.": ".mlp.fc2.",
}
# The same for timm.
TIMM_NAMES = {
    "pos_embed": "positions.table",
    "blocks.": "encoder.blocks.",
    "norm.": "encoder.norm.",
}
TIMM_MIXER_NAMES = {
    "stem.": "patch_embed.",
    "blocks.": "encoder.blocks.",
    "norm.": "encoder.norm.",
    ".mlp_tokens.": ".attn.mlp.",
    ".mlp_channels.": ".mlp.",
}
TIMM_CONV_MIXER_NAMES = {
    "stem.0.": "patch_embed.proj.",
    "stem.2.": "patch_embed.norm.",
    "blocks.": "encoder.blocks.",
    ".0.fn.0.": ".depthwise.",
    ".0.fn.2.": ".norm1.",
    ".1.weight": ".pointwise.weight",
    ".1.bias": ".pointwise.bias",
    ".3.weight": ".norm2.weight",
    ".3.bias": ".norm2.bias",
    ".3.running": ".norm2.running",
    ".3.num": ".norm2.num",
}
# A name that only this architecture has -> its names.
TORCHVISION = {"encoder.pos_embedding": TORCHVISION_NAMES}
TIMM = {
    "pos_embed": TIMM_NAMES,
    "blocks.0.mlp_tokens.fc1.weight": TIMM_MIXER_NAMES,
    "blocks.0.0.fn.0.weight": TIMM_CONV_MIXER_NAMES,
}


def from_torchvision(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of torchvision's ``vit_b_16`` and its kin to ours.

    Args:
        state_dict: As ``torchvision.models.vit_b_16().state_dict()`` gives it.

    Returns:
        The same tensors under our names; ``positions.table`` loses its batch axis.

    Raises:
        TypeError: Not a mapping.
        ValueError: Not the weights of a Vision Transformer of torchvision.
    """
    return _rename(state_dict, TORCHVISION, "torchvision's VisionTransformer")


def from_timm(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of timm's ViTs, MLP-Mixers and ConvMixers to ours.

    Args:
        state_dict: As ``timm.create_model("vit_small_patch16_224").state_dict()`` gives it.

    Returns:
        The same tensors under our names; ``positions.table`` loses its batch axis.

    Raises:
        TypeError: Not a mapping.
        ValueError: Not the weights of one of these models of timm.
    """
    return _rename(state_dict, TIMM, "timm's VisionTransformer, MlpMixer or ConvMixer")


def load_weights(
    model: nn.Module,
    weights: Mapping[str, Tensor] | str | os.PathLike,
    *,
    old_grid: tuple[int, int] | None = None,
) -> list[str]:
    """Put weights into a model, adapted to its image size and its number of classes.

    Learned positions are resampled when the grids differ. A head for another number of classes is
    left out: the model keeps its own. Everything else has to fit exactly.

    Args:
        model: A model built by this package.
        weights: Tensors under our names, or the path of a safetensors file that holds them: one
            of :func:`save_weights`, or the checkpoint of a run of ``python -m vitbook train``.
        old_grid: (rows, columns) of patches the weights were trained on. Default: what the file
            says, else a square.

    Returns:
        One sentence for each part that was adapted, none when all fitted.

    Raises:
        FileNotFoundError: No such file.
        TypeError: The weights are neither a mapping nor a path.
        ValueError: Not a safetensors file; tensors are missing, unknown, of another shape or not
            finite. The message names them.
    """
    if isinstance(weights, (str, os.PathLike)):
        weights, metadata = read_weights(weights)
        if old_grid is None and "grid" in metadata:
            rows, columns = map(int, metadata["grid"].split("x"))
            old_grid = rows, columns
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must be a mapping or a path, got {type(weights).__name__}")
    weights, own = dict(weights), model.state_dict()
    _require_names(weights, own)
    _require_same_grid(weights, own)
    notes = _fit_positions(weights, model, old_grid) + _fit_head(weights, own)
    _require_tensors(weights, own)
    model.load_state_dict(weights)
    return notes


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
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            start = "model." if metadata.get("format") == CHECKPOINT else ""
            names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118
            return {name.removeprefix(start): file.get_tensor(name) for name in names}, metadata
    except SafetensorError as error:
        raise ValueError(f"path must be a safetensors file, {path} is none: {error}") from error


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
            own, if not said.
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
    write_atomically(path, save(tensors, {"format": "pt"} | metadata))


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


def _rename(
    state_dict: Mapping[str, Tensor], architectures: dict[str, dict[str, str]], models: str
) -> dict[str, Tensor]:
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"state_dict must be a mapping, got {type(state_dict).__name__}")
    names = next((names for sign, names in architectures.items() if sign in state_dict), None)
    if names is None:
        first, signs = ", ".join(list(state_dict)[:3]), " or ".join(map(repr, architectures))
        raise ValueError(
            f"state_dict must be that of {models} and hold {signs}, got the names {first} ..."
        )
    renamed = {}
    for name, tensor in state_dict.items():
        for theirs, ours in names.items():
            if name.startswith(theirs):
                name = ours + name.removeprefix(theirs)
            elif theirs.startswith("."):
                name = name.replace(theirs, ours)
        renamed[name] = tensor.squeeze(0) if name == "positions.table" else tensor
    return renamed


def _fit_positions(weights: dict, model: Any, old_grid: tuple[int, int] | None) -> list[str]:
    table = weights.get("positions.table")
    if table is None:
        return []
    new_grid, num_prefix = model.patch_embed.grid, model.num_prefix
    if old_grid is None:
        if len(table) == len(model.positions.table):
            return []
        side = math.isqrt(max(len(table) - num_prefix, 0))
        if side**2 + num_prefix != len(table):
            raise ValueError(
                "old_grid must be given as (rows, columns): positions.table holds "
                f"{len(table) - num_prefix} patches, which is no square"
            )
        old_grid = side, side
    if tuple(old_grid) == new_grid:
        return []
    weights["positions.table"] = resample_positions(table, old_grid, new_grid, num_prefix)
    old, new = (f"{rows} x {cols}" for rows, cols in (old_grid, new_grid))
    return [f"positions resampled from {old} to {new} patches"]


def _fit_head(weights: dict, own: Mapping[str, Tensor]) -> list[str]:
    if "head.weight" not in own:
        return []
    old, new = (len(tensors["head.weight"]) for tensors in (weights, own))
    if old == new:
        return []
    weights |= {name: own[name] for name in ("head.weight", "head.bias")}
    return [f"head left out: it knows {old} classes, the model has {new}"]


def _require_names(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    missing = [f"{name} is missing" for name in own if name not in weights]
    unknown = [f"{name} is unknown to the model" for name in weights if name not in own]
    _refuse(missing + unknown)


def _require_same_grid(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Positions can be resampled; the token mixing of a Mixer, (S, N), cannot."""
    for name, tensor in weights.items():
        if not name.endswith(".attn.mlp.fc1.weight") or tensor.ndim != 2:
            continue
        theirs, ours = tensor.shape[1], own[name].shape[1]
        if theirs != ours:
            raise ValueError(
                f"weights must fit the model: {name} mixes N = {theirs} tokens, the model has "
                f"{ours}: token mixing is tied to its number of patches; build the model for the "
                "images of these weights, or train one for this size"
            )


def _require_tensors(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    wrong = []
    for name, tensor in weights.items():
        ours, theirs = tuple(own[name].shape), tuple(tensor.shape)
        if ours != theirs:
            wrong.append(f"{name} has the shape {theirs}, the model needs {ours}")
        elif not torch.isfinite(tensor).all():
            wrong.append(f"{name} holds nan or inf")
    _refuse(wrong)


def _refuse(wrong: list[str]) -> None:
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError(f"weights must fit the model: {'; '.join(wrong[:5])}{more}")


def _safetensors_path(path: str | os.PathLike) -> Path:
    path = Path(path)
    if path.suffix in {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"}:
        raise ValueError(
            f"path must be a .safetensors file, got {path}: a pickle can run code when it is "
            "opened. If you trust it, convert it once: "
            "safetensors.torch.save_file(torch.load(path, weights_only=True), 'new.safetensors')"
        )
    if path.suffix != ".safetensors":
        raise ValueError(f"path must end in .safetensors, got {path}")
    return path
