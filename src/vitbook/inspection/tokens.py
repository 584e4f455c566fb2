"""A model's tokens: how many stand before the patches, and how large they become."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.inspection.patches import grid_of, require_patches
from vitbook.inspection.recorder import blocks_of
from vitbook.inspection.recording import (
    attention_maps,
    evaluated,
    stacked,
    uncompiled,
    watch_images,
)

# What timm, torchvision, transformers, CLIP and this package call tokens that are no patches.
PREFIX_COUNTS = ("num_prefix_tokens", "num_prefix")
PREFIX_TOKENS = {"cls_token", "class_token", "class_embedding"}
PREFIX_TOKENS |= {"dist_token", "distillation_token"}
PREFIX_TOKENS |= {"reg_token", "register_tokens", "storage_tokens"}


def find_num_prefix(
    model: nn.Module, images: Tensor | None = None, layers: str | Sequence[str] | None = None
) -> int:
    """How many tokens stand before the patches.

    Without images, it is what the model says: timm's models and this package's have a number; those
    of torchvision, transformers and CLIP have parameters (class token, distillation token,
    registers), which are counted. A model can say it and keep its tokens in another order.

    With images it is tested: pixels of the first one are disturbed, patch by patch, and the tokens
    that move must be those of the patches, in their order. Where a token lies is known to half a
    patch: an image that is moved or warped by less, before the patches, passes.

    Args:
        model: A Vision Transformer, or what contains one.
        images: What the model takes (B, C, H, W); its patches must be squares.
        layers: Which layers, as for :func:`~vitbook.inspection.attention_maps`.

    Returns:
        The number, to be given as ``num_prefix`` to what reads maps.

    Raises:
        TypeError: ``model`` is no module.
        ValueError: It says no number, and no images are given; or the tokens behind that many are
            not the patches, row by row.
    """
    if images is None:
        return _said(model)
    if isinstance(images, Tensor) and images.ndim != 4:
        raise ValueError(
            f"images must be (B, C, H, W), got the shape {tuple(images.shape)}: where else the "
            "patches lie is not tested; without images, the number is what the model says"
        )
    maps = attention_maps(model, images[:1], layers, verify=False)
    try:
        number = _said(model)
    except ValueError:
        number = _fitting(maps.shape[-1], images)
    require_patches(model, images, number, layers)
    return number


def _fitting(N: int, images: Tensor) -> int:
    """The smallest number of tokens without which the others make a grid over the image."""
    for number in range(min(N, 17)):
        with suppress(ValueError):
            grid_of(N - number, (images.shape[-2], images.shape[-1]))
            return number
    raise ValueError(f"no grid of square patches fits {N} tokens; say num_prefix")


def _said(model: nn.Module) -> int:
    """How many tokens stand before the patches, where the model says it."""
    for module in require.module("model", model).modules():
        for attribute in PREFIX_COUNTS:
            number = getattr(module, attribute, None)
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    for module in model.modules():
        own = dict(module.named_parameters(recurse=False))
        tokens = [own[name] for name in own if name in PREFIX_TOKENS]
        if tokens:
            return sum(token.shape[-2] if token.ndim > 1 else 1 for token in tokens)
        patches, positions = (getattr(module, f"num_{n}", None) for n in ("patches", "positions"))
        if isinstance(patches, int) and isinstance(positions, int):  # SigLIP: as many
            return positions - patches
    raise ValueError(
        f"model ({type(model).__name__}) does not say how many tokens stand before its patches; "
        "give num_prefix= yourself: 0 without a class token, 1 with one, more with registers"
    )


def token_norms(
    model: nn.Module, images: Tensor, layers: str | Sequence[str] | None = None
) -> Tensor:
    """How long each token is, block by block.

    Large ViTs make some patches of the background ten times as long as the others and keep notes
    on the whole image there; registers are tokens that were added to take these notes.

    The model, of any library (see :func:`~vitbook.inspection.record_attention`), runs twice, in
    evaluation mode and without gradients: once to find the blocks, which are those that attend.

    Args:
        model: A model whose attention layers all see the same N tokens.
        images: What the model takes, for a ViT (B, C, H, W).
        layers: Which layers, as for :func:`~vitbook.inspection.attention_maps`.

    Returns:
        The Euclidean norms (L + 1, B, N): of the tokens that enter the first block, and of those
        that leave each of the L blocks. Prefix tokens come first, as in the model.

    Raises:
        TypeError, ValueError: As for :func:`~vitbook.inspection.attention_maps`; or a block does
            not take and give tokens (B, N, D).

    Source: Darcet et al. 2024, section 2.1.
    """
    return torch.stack(_tokens(model, images, layers, lambda x: x.float().norm(dim=-1)))


def image_features(
    model: nn.Module,
    images: Tensor,
    layer: int = -1,
    token: str | int = "cls",
    *,
    num_prefix: int | None = None,
    batch_size: int = 64,
) -> Tensor:
    """One vector for each image, for a search by similarity, a cluster or a linear probe.

    The model, of any library (see :func:`~vitbook.inspection.record_attention`), runs in
    evaluation mode and without gradients. The vectors are those that leave a block: they are not
    normalised, neither by the model's last norm nor to length 1.

    Args:
        model: A model whose attention layers all see the same N tokens.
        images: What the model takes, for a ViT (n, C, H, W).
        layer: The block after which to read, 0 ... L - 1; negative numbers count from the end.
        token: "cls", the first token; "mean", the mean of all patches; or a token's number.
        num_prefix: How many tokens stand before the patches, for "mean"; by default, what the
            model says, and it is tested on the first image.
        batch_size: Images at a time; changes nothing but memory and time.

    Returns:
        (n, D).

    Raises:
        TypeError, ValueError: As for :func:`token_norms`; or there is no such layer or token.
    """
    require.whole("batch_size", batch_size)
    if token in ("cls", "mean"):
        prefix = num_prefix
        if prefix is None:
            tested = token == "mean" and images.ndim == 4
            prefix = find_num_prefix(model, images if tested else None)
        if token == "cls" and prefix == 0:
            raise ValueError('token must be "mean" or a number: this model has no class token')
    else:
        require.whole("token", token, at_least=0)

    def read(x: Tensor) -> Tensor:  # (B, N, D) -> (B, D)
        if token == "mean":
            return x[:, prefix:].mean(dim=1)
        number = 0 if token == "cls" else int(token)
        if number >= x.shape[1]:
            raise ValueError(f"token must be below {x.shape[1]}, got {number}")
        return x[:, number].clone()

    found = []
    for part in images.split(batch_size):
        after = _tokens(model, part, None, read)[1:]
        if not -len(after) <= layer < len(after):
            raise ValueError(f"layer must be below {len(after)}, the number of blocks, got {layer}")
        found.append(after[layer])
    return torch.cat(found)


def _tokens(
    model: nn.Module,
    images: Tensor,
    layers: str | Sequence[str] | None,
    read: Callable[[Tensor], Tensor],
) -> list[Tensor]:
    """What is read from the tokens (B, N, D) before the first block and after each."""
    watch = watch_images(model, images)
    maps = stacked(model, watch, images, layers)
    names = [watch.shown[label][0] for label in maps]
    weights = next(iter(maps.values()))
    B, N = weights.shape[0], weights.shape[-1]
    if images.ndim == 4 and B == N > 1:  # which axis is which is seen with fewer images
        parts = [_tokens(model, part, layers, read) for part in (images[:1], images[1:])]
        return [torch.cat(both) for both in zip(*parts, strict=True)]
    swapped = images.ndim == 3 and images.shape[:2] != (B, N)  # (N, B, D)
    seen: list[Tensor] = []
    widths: list[int] = []

    def measure(name: str, values: Any) -> None:
        found = [value for value in values if isinstance(value, Tensor) and value.ndim == 3]
        turned = [
            x.transpose(0, 1) if swapped or x.shape[:2] == (N, B) != (B, N) else x for x in found
        ]
        fit = [x for x in turned if x.shape[:2] == (B, N)]
        if not fit:
            shape = tuple(found[0].shape) if found else None
            raise ValueError(
                f"block {name!r} must take and give tokens (B, N, D) with B, N = {B}, {N}, "
                f"got {shape}"
            )
        tokens = next((x for x in fit if x.shape[2] in widths), fit[0])  # as they came in
        widths.append(tokens.shape[2])
        seen.append(read(tokens))

    def hook(name: str) -> Any:
        def after(block: nn.Module, args: tuple, kwargs: dict, out: Any) -> None:
            if not seen:
                measure(name, [*args, *kwargs.values()])
            measure(name, out.values() if isinstance(out, dict) else _each(out))

        return after

    blocks = blocks_of(watch.modules, names)
    handles = [
        block.register_forward_hook(hook(name), with_kwargs=True) for name, block in blocks.items()
    ]
    try:
        with torch.no_grad(), evaluated(model), uncompiled():
            model(images)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _each(out: Any) -> Any:
    return out if isinstance(out, (tuple, list)) else [out]
