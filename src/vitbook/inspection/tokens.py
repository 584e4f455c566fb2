"""A model's tokens: how many stand before the patches, and how large they become."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from vitbook import require
from vitbook.inspection.patches import grid_of, require_patches
from vitbook.inspection.recorder import Watch, blocks_of, is_part
from vitbook.inspection.recording import (
    attention_maps,
    evaluated,
    listed,
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
    that move must be those of the patches, in their order. Neighbours are told apart: an image that
    is moved or warped by less than a patch, before the patches, may pass.

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
    if require.tensor("images", images, "(B, ...)").ndim != 4:
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
    evaluation mode and without gradients: once to find the blocks. These are the modules that
    attend, one map each; and, unless ``layers`` names some, those of the same class that take or
    give tokens, too, whether or not they show a map. Modules of other classes are left out.

    Args:
        model: A model whose attention layers all see the same N tokens.
        images: What the model takes, for a ViT (B, C, H, W).
        layers: Which layers, as for :func:`~vitbook.inspection.attention_maps`.

    Returns:
        The Euclidean norms (L + 1, B, N): of the tokens that enter the first block, and of those
        that leave each of the L blocks. Prefix tokens come first, as in the model.

    Raises:
        TypeError, ValueError: As for :func:`~vitbook.inspection.attention_maps`; or a block is
            never called, or does not take and give tokens (B, N, D). Where N = D, one of those that
            enter the first block is disturbed, and has to move its own row of the map.

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
        layer: The block (see :func:`token_norms`) after which to read, 0 ... L - 1; negative
            numbers count from the end.
        token: "cls", the first token; "mean", the mean of all patches; or a token's number.
        num_prefix: How many tokens stand before the patches, for "mean"; by default, what the
            model says, and it is tested on the first image.
        batch_size: Images at a time; changes nothing but memory and time.

    Returns:
        (n, D).

    Raises:
        TypeError, ValueError: As for :func:`token_norms`; or there is no such layer or token.
    """
    batch_size = require.whole("batch_size", batch_size)
    require.tensor("images", images, "(n, ...)")
    named = isinstance(token, str) and require.one_of("token", token, ("cls", "mean"))
    number = 0 if named else require.whole("token", token, at_least=0)
    prefix = 0
    if num_prefix is not None:
        prefix = require.whole("num_prefix", num_prefix, at_least=0)
    elif named:
        tested = token == "mean" and images.ndim == 4
        prefix = find_num_prefix(model, images if tested else None)
    if token == "cls" and prefix == 0:
        raise ValueError('token must be "mean" or a number: this model has no class token')

    def read(x: Tensor) -> Tensor:  # (B, N, D) -> (B, D)
        N = x.shape[1]
        for name, value in (("num_prefix", prefix), ("token", number)):
            if value >= N:
                raise ValueError(f"{name} must be below {N}, got {value}: there are {N} tokens")
        return x[:, prefix:].mean(dim=1) if token == "mean" else x[:, number].clone()

    found = []
    for part in images.split(batch_size):
        after = _tokens(model, part, None, read)[1:]
        if require.whole("layer", layer, at_least=-len(after)) >= len(after):
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
    sure = blocks_of(watch.modules, names)
    blocks = sure | (_alike(watch, sure) if layers is None else {})
    if idle := [name for name in blocks if name not in watch.ran]:
        raise ValueError(
            f"model ({type(model).__name__}) must call its blocks, so that tokens enter and leave "
            f"them; of {listed(idle)} it calls parts alone"
        )
    swapped = images.ndim == 3 and images.shape[:2] != (B, N)  # (N, B, D)
    seen: list[Tensor] = []
    widths: list[int] = []

    def views(values: Any) -> list[Tensor]:
        found = [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.ndim == 3]
        turned = [swapped or x.shape[:2] == (N, B) != (B, N) for x in found]
        return [x.transpose(0, 1) if t else x for x, t in zip(found, turned, strict=True)]

    def measure(name: str, values: Any) -> None:
        found = views(values)
        fit = [x for x in found if x.shape[:2] == (B, N)]
        if not found and name not in sure:
            return  # of a stem, say
        if not fit:
            leaves = tree_leaves(values)
            got = [str(tuple(x.shape)) for x in leaves if isinstance(x, Tensor)]
            got = got or [type(x).__name__ for x in leaves] or ["nothing"]
            raise ValueError(
                f"block {name!r} must take and give tokens (B, N, D) with B, N = {B}, {N}, "
                f"got {', '.join(got)}"
            )
        tokens = next((x for x in fit if x.shape[2] in widths), fit[0])  # as they came in
        widths.append(tokens.shape[2])
        seen.append(read(tokens))

    def hook(name: str) -> Any:
        def after(block: nn.Module, args: tuple, kwargs: dict, out: Any) -> None:
            if not seen:
                measure(name, (args, kwargs))
            measure(name, out)

        return after

    handles = [
        block.register_forward_hook(hook(name), with_kwargs=True) for name, block in blocks.items()
    ]
    try:
        with torch.no_grad(), evaluated(model), uncompiled():
            model(images)
    finally:
        for handle in handles:
            handle.remove()
    name, first = next(iter(sure.items()))
    if N in widths and not _moves_its_row(model, images, first, watch, names[0], views):
        raise ValueError(
            f"block {name!r} must take tokens (B, N, D), and seems to take (B, D, N) with N = D = "
            f"{N}: what would be one token moves other rows of its map than its own"
        )
    return seen


def _moves_its_row(
    model: nn.Module,
    images: Tensor,
    block: nn.Module,
    watch: Watch,
    layer: str,
    views: Callable[[Any], list[Tensor]],
) -> bool:
    """Does a token that enters a block move, above all, its own row of the map of its layer?"""

    def reverse(_: nn.Module, args: tuple, kwargs: dict) -> Any:
        given = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, (args, kwargs))
        for x in views(given):
            x[:, -1] = x[:, -1].flip(-1)
        return given

    handle = block.register_forward_pre_hook(reverse, with_kwargs=True)
    try:
        again = watch_images(model, images)
    finally:
        handle.remove()
    rows = [x.maps[layer][..., :-1].double() for x in (watch, again)]  # without its column
    before, after = (x / x.sum(dim=-1, keepdim=True) for x in rows)
    far = (before - after).abs().nan_to_num().sum(dim=(0, 1, 3))  # (N,)
    return bool(far[-1] >= 3 * far.mean())


def _alike(watch: Watch, blocks: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """The modules that are like some blocks, and ran: they may attend unseen."""
    found: dict[str, nn.Module] = {}
    kinds = [_kind(block) for block in blocks.values()]
    for name, module in watch.ran.items():  # from the outside
        apart = not any(is_part(name, of=x) or is_part(x, of=name) for x in (*blocks, *found))
        if apart and _kind(module) in kinds:
            found[name] = module
    return found


def _kind(block: nn.Module) -> list[type]:
    """The class of a block; of a plain sequence, the classes of its parts, too."""
    return [type(x) for x in (block, *(block if type(block) is nn.Sequential else ()))]
