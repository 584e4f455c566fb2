"""Refuse a bad argument with a sentence: its name, what came, and what would be right.

Each function returns the accepted value, so that a constructor reads as a list of its arguments.
"""

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch
import torch.fx
from torch import Tensor, nn


def whole(name: str, value: Any, at_least: int = 1, at_most: int | None = None) -> int:
    """A whole number not below ``at_least`` and not above ``at_most``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, (bool, Tensor)):
        raise TypeError(f"{name} must be a whole number, got {value!r} ({type(value).__name__})")
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {number}")
    return number


def real(name: str, value: Any, *, above: float = -math.inf) -> float:
    """A finite number greater than ``above``."""
    if isinstance(value, (bool, str, Tensor)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    if not math.isfinite(value) or value <= above:
        limit = "finite" if above == -math.inf else f"finite and greater than {above:g}"
        raise ValueError(f"{name} must be {limit}, got {value}")
    return float(value)


def fraction(name: str, value: Any) -> float:
    """A probability that leaves something over: 0 <= value < 1."""
    if isinstance(value, (bool, str, Tensor)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value}")
    return float(value)


def truth(name: str, value: Any) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return value


def one_of(name: str, value: Any, choices: Iterable[object]) -> str:
    """One word of a list."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}; got {value!r}")
    return value


def module(name: str, value: Any) -> nn.Module:
    """A module that was built, not its class."""
    if not isinstance(value, nn.Module):
        raise TypeError(f"{name} must be a torch.nn.Module, got {value!r} ({type(value).__name__})")
    return value


def pair(name: str, value: Any) -> tuple[int, int]:
    """A size as (rows, columns); one whole number means a square."""
    if not isinstance(value, (tuple, list)):
        side = whole(name, value)
        return side, side
    if len(value) != 2:
        raise ValueError(f"{name} must be one number or (rows, columns), got {value!r}")
    return whole(f"{name}[0]", value[0]), whole(f"{name}[1]", value[1])


def tensor(name: str, value: Any, axes: str) -> Tensor:
    """A dense tensor with the named axes, for example "(B, N, D)" or "(..., N, d)"."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor {axes}, got {type(value).__name__}")
    if value.layout != torch.strided or value.is_nested:
        raise TypeError(f"{name} must be a dense tensor {axes}, got one that is sparse or nested")
    rank, some = axes.count(",") + 1, "..." in axes
    if value.ndim < rank - 1 if some else value.ndim != rank:
        raise ValueError(f"{name} must have the axes {axes}, got the shape {tuple(value.shape)}")
    return value


def floats(name: str, value: Any, axes: str) -> Tensor:
    """A dense tensor of floating-point numbers with the named axes."""
    if not tensor(name, value, axes).is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}")
    return value


@torch.fx.wrap  # a traced model keeps the check as one call
def images(value: Any, channels: int, image_size: tuple[int, int], why: str = "") -> Tensor:
    """Images (B, C, H, W) of the one size that a model was built for."""
    expected = (channels, *image_size)
    if floats("images", value, "(B, C, H, W)").shape[1:] != expected:
        raise ValueError(
            f"images must have the shape (B, C, H, W) = (B, {', '.join(map(str, expected))}), "
            f"got {tuple(value.shape)}{why and ': '}{why}"
        )
    return value


@torch.fx.wrap
def num_tokens(x: Tensor, number: int, why: str) -> Tensor:
    """Tokens (B, N, D), as many as a layer was built for."""
    if x.shape[1] != number:
        raise ValueError(f"x must hold N = {number} tokens, got {x.shape[1]}: {why}")
    return x


def mask(value: Any, axes: str, shape: tuple[int, ...]) -> Tensor | None:
    """No mask, or a boolean one that broadcasts to ``shape`` without making it larger."""
    if value is None:
        return None
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"mask must be a boolean tensor, True = may attend, got {kind}")
    lengths = zip(reversed(value.shape), reversed(shape), strict=False)
    if value.ndim > len(shape) or any(ours not in (1, theirs) for ours, theirs in lengths):
        raise ValueError(
            f"mask must be broadcastable to {axes} = {shape}, got the shape {tuple(value.shape)}"
        )
    return value
