"""Are tokens the patches of an image? Pixels are disturbed, and the tokens that move are seen."""

import math
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.inspection.again import ASKED, Held, Run
from vitbook.inspection.mixing import crossed, halves
from vitbook.inspection.recording import (
    evaluated,
    listed,
    same_draws,
    stacked,
    uncompiled,
    watch_images,
)

GROUPS = 64  # of patches that are disturbed together
AT_ONCE = (16, 1)  # images; one by one where the model packs them
# How far a token moves with its patch, of the farthest that it moves with any. Behind a stem that
# overlaps, its neighbour may move it farther; where its own hardly does, it is another's.
FOLLOWS, CLEAR = 0.2, 0.3
ALONE = 1.2  # times as far as with other patches on average
NEAR = 0.5  # how far with its patch or the eight round it, of the farthest with any
SIDES = ("top", "bottom", "left", "right")
ELSEWHERE = 0.25  # of what moves in a layer may be tokens that stay in the first one
NOTHING = 1e-4  # of what others move on average


def require_patches(
    model: nn.Module,
    images: Tensor,
    num_prefix: int,
    layers: str | Sequence[str] | None = None,
) -> tuple[int, int]:
    """Test that the tokens behind the first ones are the patches, row by row.

    Pixels of the first image are disturbed, patch by patch (of many patches some together, drawn
    twice); the token that moves, at the first layer of attention, is this patch. Each token has to
    follow a patch, its own or one that touches it more than any other, and each patch and the
    border of the image have to be followed. In all other layers the tokens have to move that moved
    in the first one, all attention held.

    Args:
        model: Any Vision Transformer.
        images: What it takes (B, C, H, W); its patches must be squares.
        num_prefix: How many tokens stand before the patches.
        layers: Which layers, as for :func:`~vitbook.inspection.attention_maps`.

    Returns:
        (rows, columns) of patches.

    Raises:
        TypeError, ValueError: ``num_prefix`` is no whole number of 0 or more.
        ValueError: They are not: another number, another order, tokens behind the patches,
            patches that no token follows, an image that is cut, or other ones in later layers.
    """
    require.whole("num_prefix", num_prefix, at_least=0)
    images = images[:1]
    watch = watch_images(model, images)
    names = list(stacked(model, watch, images, layers))
    N = watch.maps[names[0]].shape[-1]
    rows, columns = grid_of(N - num_prefix, (images.shape[-2], images.shape[-1]))
    first = next(name for name, weights in watch.maps.items() if weights.shape[-1] == N)
    layer = watch.modules[watch.shown[first][0]]
    moved = _moving(model, layer, images, (rows, columns), N)  # (patches + strips, N)
    patches = torch.arange(rows * columns)
    wrong = _wrong(moved[: len(patches)], num_prefix, columns)
    least = NOTHING * moved[: len(patches)].amax(dim=1).mean()
    cropped = [
        side for side, x in zip(SIDES, moved[len(patches) :], strict=True) if x.max() <= least
    ]
    if cropped and not wrong:
        wrong = f"no token follows the pixels at the {cropped[0]}, half a patch wide: they are cut"
    if wrong:
        raise ValueError(
            f"model ({type(model).__name__}) has {N} tokens, which are not {num_prefix} and then "
            f"the {rows} x {columns} patches, row by row: {wrong}. Their "
            "maps cannot be laid over the image; with another num_prefix, perhaps"
        )
    others, crossing = _elsewhere(model, images, {name: watch.shown[name] for name in names}, N)
    if others:
        raise ValueError(
            f"model ({type(model).__name__}) has layers whose tokens are other patches than those "
            f"of {names[0]!r}: {listed(others)}. With layers=..., those alone that see one image"
        )
    if crossing:
        raise ValueError(f"model ({type(model).__name__}): {listed(crossing)} {ASKED}")
    return rows, columns


def _elsewhere(
    model: nn.Module, image: Tensor, names: dict[str, tuple[str, int]], N: int
) -> tuple[list[str], list[str]]:
    """The layers whose tokens follow other pixels than those of the first one; that ask others.

    All attention is held, so that tokens follow their own pixels in all layers; where they follow
    none (there is no residual), nothing is known.
    """
    model = getattr(model, "_orig_mod", model)
    found: list[str] = []
    others: list[Held] = []
    with same_draws(image), torch.no_grad(), evaluated(model), uncompiled():
        with (first := Run(model, N, 1)):
            model(image)
        noise, *halved = halves(image)
        with (before := Held(model, first)):
            model(noise)
        for other in halved:
            with (run := Held(model, first)):
                model(other)
            others.append(run)
            moved: dict[str, Tensor] = {}
            for name, (layer, number) in names.items():
                place = (layer, "product", number)
                if place in before.passed and place in run.passed:
                    apart = before.passed[place].numbers - run.passed[place].numbers
                    moved[name] = apart.abs().amax(dim=1)
            own = moved.get(next(iter(names)), torch.zeros(N).to(image))
            still = own <= NOTHING * own.max()
            found += [n for n, far in moved.items() if far[still].sum() > ELSEWHERE * far.sum()]
    crossing = crossed(before, others)
    return list(dict.fromkeys(found)), [x for x, (layer, _) in names.items() if layer in crossing]


def _wrong(moved: Tensor, num_prefix: int, columns: int) -> str:
    """What speaks against tokens that follow the patches; from how far each moves (patches, N)."""
    patches = torch.arange(len(moved))
    tokens = moved[:, num_prefix + patches]  # (patches, patches)
    follows = (moved / moved.amax(dim=1, keepdim=True)).nan_to_num(0.0)  # of the farthest token
    said = follows[patches, num_prefix + patches]
    best, where = follows.max(dim=1)
    examples = [
        f"patch {p} (row by row) is token {int(where[p])}"
        for p in ((said < FOLLOWS) & (best - said > CLEAR)).nonzero().flatten().tolist()
    ]
    others = (follows[:, num_prefix + patches].sum(dim=0) - said) / max(len(patches) - 1, 1)
    if examples or (said > ALONE * others).double().mean() < 0.5:
        return ", ".join(examples[:3]) or "no token follows the pixels of one patch alone"
    most = moved.amax(dim=1)
    for p in (most <= NOTHING * most.mean()).nonzero().flatten().tolist():
        return f"no token follows patch {p} (row by row)"
    most = tokens.amax(dim=0)
    for p in (most <= NOTHING * most.mean()).nonzero().flatten().tolist():
        return f"token {num_prefix + p} follows no patch"
    row, column = patches // columns, patches % columns
    touch = ((row[:, None] - row).abs() <= 1) & ((column[:, None] - column).abs() <= 1)
    for p in ((tokens * touch).amax(dim=0) < NEAR * most).nonzero().flatten().tolist():
        return f"token {num_prefix + p} follows patch {int(tokens[:, p].argmax())} (row by row)"
    return ""


def _moving(
    model: nn.Module, layer: nn.Module, image: Tensor, grid: tuple[int, int], N: int
) -> Tensor:
    """How far each token moves at this layer, with each patch and each of four strips."""
    generator = torch.Generator().manual_seed(0)
    patches, (H, W) = math.prod(grid), image.shape[-2:]
    draws = 1 if patches <= GROUPS else 2
    groups = [torch.randperm(patches, generator=generator) % GROUPS for _ in range(draws)]
    chosen = torch.cat([nn.functional.one_hot(group).T for group in groups]).view(-1, 1, *grid)
    masks = nn.functional.interpolate(chosen.double(), (H, W))
    strips = torch.zeros(4, 1, H, W, dtype=masks.dtype)
    high, wide = max(H // grid[0] // 2, 1), max(W // grid[1] // 2, 1)
    strips[0, :, :high] = strips[1, :, -high:] = strips[2, ..., :wide] = strips[3, ..., -wide:] = 1
    masks = torch.cat([masks, strips]).to(image)
    noise = torch.randn(image.shape, generator=generator).to(image)
    for at_once in AT_ONCE:
        found = [
            _given(model, layer, image + 2 * some * noise, N)
            for some in [0 * masks[:1], *masks.split(at_once)]
        ]
        if all(len(x) == len(found[0]) > 0 for x in found):
            break
    else:
        raise ValueError(f"the first layer that attends is not given {N} tokens")
    moves = [(torch.cat(x[1:]) - x[0]).norm(dim=-1) for x in zip(*found, strict=True)]
    moved = max(moves, key=lambda x: float(x.max()))  # positions stay
    parts, strips = moved.split([len(masks) - 4, 4])
    each = torch.stack([x[group] for x, group in zip(parts.chunk(draws), groups, strict=True)])
    return torch.cat([each.amin(dim=0), strips])


class Seen(Exception):  # noqa: N818
    """What comes first is known, and the rest of a model need not run."""


def _given(model: nn.Module, layer: nn.Module, images: Tensor, N: int) -> list[Tensor]:
    """The tokens (B, N, D) among what this layer is given, in each tensor that may hold them."""
    found: list[Tensor] = []

    def before(_: nn.Module, args: tuple, kwargs: dict) -> None:
        for x in (*args, *kwargs.values()):
            if isinstance(x, Tensor) and x.ndim > 2:
                forms = [x.flatten(1, -2), x.transpose(0, 1), x.flatten(2).mT]
                fit = [form for form in forms if form.shape[:2] == (len(images), N)]
                found.extend(form.double().cpu() for form in fit[:1])
        raise Seen

    handle = layer.register_forward_pre_hook(before, with_kwargs=True)
    try:
        with same_draws(images), torch.no_grad(), evaluated(model), uncompiled(), suppress(Seen):
            model(images)
    finally:
        handle.remove()
    return found


def grid_of(patches: int, size: tuple[int, int]) -> tuple[int, int]:
    """(rows, columns) of square patches over an image of this size.

    Raises:
        ValueError: No grid of square patches has so many.
    """
    rows = round(math.sqrt(max(patches, 0) * size[0] / size[1]))
    columns = patches // rows if rows else 0
    if rows * columns != patches or not rows or size[0] * columns != size[1] * rows:
        raise ValueError(
            f"{patches} patches make no grid over {size[0]} x {size[1]} pixels; say num_prefix, "
            "how many tokens stand before the patches, if none stand behind them"
        )
    return rows, columns
