"""What of somebody's weights fits a model, with what change, and why the rest does not."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from vitbook.layers.positions import resample_positions
from vitbook.models.channels import KERNEL, STEM, odd_kernel

# Tensors that no forward pass of a classifier reads.
IDLE = re.compile(r"mask_token|pooler\.|text_model\.|text_projection|logit_scale|.*position_ids")
WRITTEN = "were they all written?"
BLANK = 1024  # numbers that are zeros at the end of a matrix are worth a word
# Part of a name -> why weights with it need another model, or which argument makes it fit.
REASONS = {
    r"attn_pool\.|head\.probe|head\.(attention|mlp|layernorm)": "their tokens are read by a layer "
    "of attention (SigLIP's map head), ours by the class token or as a mean",
    r"dist_token|head_dist|distillation": "they have a second class token, for distillation",
    r"q_norm|k_norm": "their attention normalizes queries and keys",
    r"\.blocks\.\d+\.\d+\.": "their blocks are in chunks, as DINOv2 trains them: save them with "
    "blocks.1. for blocks.0.1.",
    r"\.to_[qkv]\.|\.(q|k|v|query|key|value)(_proj)?\.": "they keep queries, keys and values "
    "apart: save them joined, torch.cat([q, k, v]) as qkv",
    r"\.attn\.norm|\.mlp\.norm": "their branches have a norm inside",
    r"lambda_[qkab]": "their attention is a difference of two maps",
    r"lambda_\d|gamma_\d": "their branches are scaled (LayerScale, under a name of their own)",
    r"rel_pos|relative_position": "their attention adds relative positions",
    r"fc1_[gx]|\.mlp\.w\d|\.mlp\.weights_": "their MLP has a gate",
    r"patch_embed\.norm": "their patches pass a norm of their own",
    r"\.ls\d\.": "layer_scale decides (a number, or None)",
    r"norm_pre": "pre_norm decides (a norm before the first block)",
    r"fc_norm|encoder\.norm": 'final_norm decides ("tokens", "pooled" or "none")',
    r"reg_token": "num_registers decides",
    r"cls_token": 'class_token decides, or pool ("cls" or "mean")',
    r"positions": 'positions decides ("learned" has a table)',
    r"qkv\.bias$": "qkv_bias decides",
}
# What others call tensors that a reason above says there are none of.
CALLED = {
    "cls_token": re.compile(r"cls_?token|class_?(token|embed)", re.IGNORECASE),
    "positions.table": re.compile(r"positions\.table|pos(ition)?s?_?emb", re.IGNORECASE),
}


def fit_positions(weights: dict, model: Any, old_grid: tuple[int, int] | None) -> list[str]:
    """Give the table a row for each token before the patches, and the model's grid."""
    table = weights.get("positions.table")
    if table is None or "positions.table" not in model.state_dict():
        return []
    if table.ndim != 2:
        shape, ours = tuple(table.shape), model.state_dict()["positions.table"].shape
        refuse([f"positions.table has the shape {shape}, the model needs (tokens, {ours[1]})"])
    new_grid, num_prefix, notes = model.patch_embed.grid, model.num_prefix, []
    with_class, said = int(getattr(model, "cls_token", None) is not None), old_grid is not None
    known, old_grid = _table_rows(len(table), (num_prefix, with_class, 0), new_grid, old_grid)
    if known < num_prefix:
        rows, zeros = len(table), table.new_zeros(num_prefix - known, table.shape[1])
        table = torch.cat([table[:known], zeros, table[known:]])
        notes = [f"positions have no row for {num_prefix - known} tokens before the patches: zeros"]
        alike = tuple(old_grid) == new_grid and with_class and not known
        if alike and not said and (other := _rectangle(rows - 1)):
            notes += [
                f"positions are read as {old_grid[0]} x {old_grid[1]} patches: if they are of a "
                f"class token and {other[0]} x {other[1]}, say old_grid"
            ]
    if tuple(old_grid) != new_grid:
        table = resample_positions(table, old_grid, new_grid, num_prefix)
        old, new = (f"{rows} x {cols}" for rows, cols in (old_grid, new_grid))
        notes += [f"positions resampled from {old} to {new} patches"]
    weights["positions.table"] = table
    return notes


def _table_rows(
    length: int,
    prefixes: tuple[int, ...],
    grid: tuple[int, int],
    old_grid: tuple[int, int] | None,
) -> tuple[int, tuple[int, int]]:
    """How many rows of a table belong to no patch, and the grid of the others."""
    num_prefix = prefixes[0]
    known = length - math.prod(grid)
    squares = [n for n in dict.fromkeys(prefixes) if length > n and _is_square(length - n)]
    asked = old_grid is None or (1 in old_grid and 1 not in grid)  # a strip is no way round it
    if asked and known not in prefixes and known - 1 in prefixes and not squares:
        raise ValueError(
            f"weights must fit the model: positions.table has {length} rows, one more than "
            f"{grid[0]} x {grid[1]} patches and {known - 1} tokens before them: of a token that "
            "they do not have"
        )
    if old_grid is not None:
        rest = length - math.prod(old_grid)
        return (rest if rest in prefixes else num_prefix), old_grid
    if known in prefixes:
        return known, grid
    if len(squares) != 1:
        what = "which is no square" if not squares else "or fewer: both are squares"
        raise ValueError(
            "old_grid must be given as (rows, columns): positions.table holds "
            f"{length - num_prefix} patches, {what}"
        )
    side = math.isqrt(length - squares[0])
    return squares[0], (side, side)


def _rectangle(n: int) -> tuple[int, int] | None:
    """The sides of a grid of n patches, one at most twice the other, if there is one."""
    sides = ((side, n // side) for side in range(math.isqrt(n), 0, -1) if n % side == 0)
    return next((pair for pair in sides if pair[1] <= 2 * pair[0]), None)


def _is_square(n: int) -> bool:
    return math.isqrt(n) ** 2 == n


def fit_head(weights: dict, own: Mapping[str, Tensor]) -> list[str]:
    """The model's own head where the weights have none that fits."""
    if "head.weight" not in own:
        return []
    new, theirs = own["head.weight"], weights.get("head.weight")
    if theirs is None and any(name.startswith("head.") for name in weights):
        return []  # another kind of head: refused with its names
    if theirs is not None and theirs.shape == new.shape:
        return []
    if theirs is None:
        note = "head left fresh: what is taken has none"
    elif len(theirs) != len(new):
        note = f"head left out: it knows {len(theirs)} classes, the model has {len(new)}"
    else:
        note = f"head left out: it reads {theirs.shape[1:].numel()} numbers, not {new.shape[1]}"
    weights |= {name: own[name] for name in ("head.weight", "head.bias")}
    return [note]


def fit_biases(weights: dict, own: Mapping[str, Tensor]) -> list[str]:
    """Zeros for the biases that a whole kind of layers lacks: a layer without one has zeros."""
    known, lacking = {_kind(name) for name in weights}, []
    for name in own:
        matrix = weights.get(name.removesuffix("bias") + "weight")
        if name in weights or not name.endswith(".bias") or matrix is None or matrix.ndim < 2:
            continue
        if _kind(name) not in known:  # where only some blocks lack it, the file is broken
            lacking.append(name)
    weights |= {
        name: torch.zeros_like(own[name], device=weights[_of(name)].device) for name in lacking
    }
    kinds = dict.fromkeys(map(_kind, lacking))
    return [f"biases the weights do not have are zeros: {', '.join(kinds)}"] if kinds else []


def _of(bias: str) -> str:
    return bias.removesuffix("bias") + "weight"


def drop_idle(weights: dict, own: Mapping[str, Tensor]) -> list[str]:
    """Leave out what only a training reads, or the model for the words beside it."""
    idle = [name for name in weights if name not in own and IDLE.match(name)]
    for name in idle:
        del weights[name]
    parts = dict.fromkeys(name.split(".")[0] for name in idle)
    return [f"left out, a classifier does not read it: {', '.join(parts)}"] if parts else []


def require_names(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Every tensor of the model, and no other.

    Raises:
        ValueError: A sentence for each kind of tensor that is missing or unknown, with the reason.
    """
    theirs, ours = _depth(weights), _depth(own)
    if theirs and ours and theirs != ours:
        refuse([f"they have {theirs} blocks, the model has {ours} (depth decides)"])
    lacked = [name for name in own if name not in weights]
    more = [name for name in weights if name not in own]
    missing = _grouped(lacked, "is missing", more)
    unknown = _grouped(more, "is unknown to the model", lacked)
    both = zip_longest(missing, unknown)  # by turns: only the first are told
    refuse([sentence for pair in both for sentence in pair if sentence])


def _depth(names: Iterable[str]) -> int:
    return len({m[1] for name in names if (m := re.match(r"encoder\.blocks\.(\d+)\.(?!\d)", name))})


def _grouped(names: list[str], what: str, others: list[str]) -> list[str]:
    """One sentence for all tensors with the same reason, or of the same kind.

    ``others`` are those of the other side: one that is there under another name has no reason.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        reason = next((why for part, why in REASONS.items() if re.search(part, name)), "")
        theirs = "decides" not in reason  # is of what they have, not of what they lack
        if (theirs and what == "is missing") or (name.endswith("qkv.bias") and _of(name) in names):
            reason = ""
        known = [words for words in CALLED.values() if words.search(name)]
        if not theirs and (alike := [x for x in others if known and known[0].search(x)]):
            reason = f"the {'weights have' if what == 'is missing' else 'model has'} {alike[0]}"
        groups.setdefault((reason, reason or _kind(name)), []).append(name)
    sentences = []
    for (reason, _), members in groups.items():
        more = f" ({len(members)} such tensors)" if len(members) > 1 else ""
        because = f": {reason}" if reason else ""
        sentences.append(f"{members[0]} {what}{more}{because}")
    return sentences


def _kind(name: str) -> str:
    """A name without the number of its block."""
    return re.sub(r"\.\d+\.", ".*.", name, count=1)


def require_same_grid(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
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


def require_tensors(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """The same shapes, finite numbers; a sentence for the first tensor of each kind."""
    wrong: dict[str, str] = {}
    for name, tensor in weights.items():
        ours = own[name]
        if why := unfit(tensor, ours):
            other = tensor.shape != ours.shape
            why += _why(weights, name, tuple(ours.shape)) if other else ""
            number = other or tensor.is_floating_point()  # else one sentence for all that are none
            wrong.setdefault(_kind(name) if number else str(tensor.dtype), f"{name} {why}")
    refuse(list(wrong.values()))


def unfit(tensor: Tensor, ours: Tensor) -> str:
    """Why a tensor cannot take the place of one of the model; "" if it can."""
    if tensor.shape != ours.shape:
        return f"has the shape {tuple(tensor.shape)}, the model needs {tuple(ours.shape)}"
    if ours.is_floating_point() and not tensor.is_floating_point():
        return f"is in {tensor.dtype}, no weights but what stands for them (quantized)"
    kept = tensor.to(ours.dtype) if ours.is_floating_point() else tensor
    if tensor.is_meta or kept.isfinite().all():
        return ""
    fine = tensor.isfinite().all()
    return f"holds numbers too large for {ours.dtype}" if fine else "holds nan or inf"


def unwritten(weights: Mapping[str, Tensor]) -> list[str]:
    """Sentences on matrices without a number, or whose last ones are zeros, as where a file was
    not all written."""
    found = defaultdict[str, list[str]](list)
    for name, x in weights.items():
        if x.ndim < 2 or x.is_meta:
            continue
        if not x.any():
            may_begin_so = x.ndim == 3 and "pos" not in name  # tokens
            found["nothing but zeros"] += [] if may_begin_so else [name]
        elif _breaks_off((x.squeeze(0) if x.ndim > 2 else x).flatten(1), table="pos" in name):
            found["nothing but zeros at the end"].append(name)
    return [
        f"{what} in {names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {WRITTEN}"
        for what, names in found.items()
        if names
    ]


def _breaks_off(matrix: Tensor, table: bool) -> bool:
    """Whether the numbers end in zeros that no pruning leaves: it takes whole rows, but for those
    of a table of positions, or the same columns of all rows."""
    flat, width = matrix.flatten(), matrix.shape[1]
    if flat[-BLANK:].any() or len(flat) < BLANK:
        return False
    row, column = divmod(int(flat.nonzero()[-1]) + 1, width)  # where the zeros begin
    if column == 0:
        return table
    return row == 0 or bool(matrix[row - 1, column:].any())


def _why(weights: Mapping[str, Tensor], name: str, ours: tuple[int, ...]) -> str:
    """The reason for another shape, where it is known."""
    theirs = tuple(weights[name].shape)
    if name in (KERNEL, STEM) and (odd := odd_kernel(theirs)):
        return odd
    if name in (KERNEL, STEM) and len(theirs) == len(ours) == 4 and theirs[1] != ours[1]:
        return f": give channels=, which of the {ours[1]} new channels each of the {theirs[1]} sees"
    return ": their MLP has a gate" if _is_gated(weights, name) else ""


def _is_gated(weights: Mapping[str, Tensor], name: str) -> bool:
    """Whether the second layer of an MLP reads half of what the first one makes."""
    if not re.search(r"\.mlp\.fc[12]\.weight$", name):
        return False
    first, second = (weights[re.sub("fc[12]", layer, name)] for layer in ("fc1", "fc2"))
    return len(first) == 2 * second.shape[-1]


def refuse(wrong: list[str]) -> None:
    """Raise the sentences, if there are any."""
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError(f"weights must fit the model: {'; '.join(wrong[:5])}{more}")
