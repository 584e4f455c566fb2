"""Weights for images with other channels than they were trained on."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vitbook import require

KERNEL = "patch_embed.proj.weight"
STEM = "patch_embed.layers.0.weight"  # the first kernel of a convolutional stem


def adapt_channels(
    weights: Mapping[str, Tensor],
    in_channels: int,
    channels: Sequence[int | Sequence[int] | None] | None = None,
) -> dict[str, Tensor]:
    """Make the patch kernel fit images with another number of channels, and change nothing else.

    The map says what each channel of the weights sees of the new images: one of their channels,
    the mean of several, or nothing (zeros). The tokens are then those that the old kernel makes
    of the image put together in this way. New channels that stand nowhere in the map begin with
    zeros: unseen, until they are trained. Thirteen bands for weights of red, green and blue:
    ``channels=(3, 2, 1)``; four bands, the last of which nobody saw: ``channels=(0, 1, 2)``.

    Without a map, where one of both has one channel:

    - From C channels to one, ``(0,) * C``: the kernel is summed over its channels.
    - From one channel to C, ``(range(C),)``: the kernel is repeated and divided by C.

    Args:
        weights: Tensors under our names; the kernel, of patches or of a convolutional stem's first
            layer, is (D, C, P, P).
        in_channels: How many channels the new images have.
        channels: For each channel of the weights the number of a new one, counted from 0, several
            numbers, or None.

    Returns:
        The tensors by name; the kernel is (D, in_channels, P, P).

    Raises:
        TypeError: Not a mapping.
        ValueError: There is no such kernel, the map does not fit, or there is none where neither
            number of channels is 1.
    """
    name = kernel_name(weights)
    kernel = weights[name]
    old, new = kernel.shape[1], require.whole("in_channels", in_channels)
    if channels is not None:
        share = _shares(channels, old, new).to(kernel)  # (C, in_channels)
        return {**weights, name: torch.einsum("dcpq,cn->dnpq", kernel, share)}
    if old == new:
        return dict(weights)
    if 1 not in (old, new):
        raise ValueError(
            f"in_channels must be {old} as in the weights, or 1, got {new}: what the other "
            "channels mean, no rule can say; give channels= (which of the new ones each of "
            f"the {old} sees)"
        )
    fitted = kernel.sum(dim=1, keepdim=True) if new == 1 else kernel.repeat(1, new, 1, 1) / new
    return {**weights, name: fitted}


def _shares(channels: Sequence[Any], old: int, new: int) -> Tensor:
    """(old, new): how much of each new channel an old one sees; each row sums to 1 or to 0."""
    if isinstance(channels, str) or not isinstance(channels, Sequence) or len(channels) != old:
        raise ValueError(
            f"channels must say for each of the {old} channels of the weights which new one it "
            f"sees, got {channels!r}"
        )
    share = torch.zeros(old, new)
    for row, seen in zip(share, channels, strict=True):
        wanted = [] if seen is None else [seen] if isinstance(seen, int) else list(seen)
        if not all(isinstance(i, int) and 0 <= i < new for i in wanted) or (
            seen is not None and not wanted
        ):
            raise ValueError(
                f"channels must hold numbers from 0 to {new - 1}, several in a tuple, or None, "
                f"got {seen!r}"
            )
        for i in wanted:
            row[i] += 1 / len(wanted)
    return share


def kernel_name(weights: Any) -> str:
    """The name of the kernel that meets the pixels."""
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must be a mapping, got {type(weights).__name__}")
    name = STEM if STEM in weights else KERNEL
    shape = tuple(weights[name].shape) if name in weights else ()
    if name in weights and (len(shape) != 4 or odd_kernel(shape)):
        raise ValueError(
            f"weights must hold a kernel (D, C, P, P) as {name}, got the shape "
            f"{shape}{odd_kernel(shape)}"
        )
    if name not in weights:
        raise ValueError(
            f"weights must hold a kernel (D, C, P, P) as {KERNEL}, "
            f"got the names {', '.join(list(weights)[:3])} ..."
        )
    return name


def odd_kernel(shape: tuple[int, ...]) -> str:
    """What a kernel is, perhaps, whose axes are not (D, C, P, P); "" where that is not known."""
    if len(shape) == 4 and shape[0] == shape[1] and shape[2] != shape[3]:
        return ": of a framework that puts channels last? permute(3, 2, 0, 1) makes it one"
    if len(shape) == 2:
        return ": of a linear layer over patches? view it as one"
    return ": flat, as FSDP keeps its parts? save it whole" if len(shape) == 1 else ""
