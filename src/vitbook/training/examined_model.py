"""Trials of :func:`~vitbook.training.examine` that ask a model, and change nothing."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vitbook.inspection.recorder import SOFTMAX
from vitbook.training.findings import Finding

SAME = 1e-3  # relative difference of logits that batches of another size may make, in float32


@torch.no_grad()
def output(model: nn.Module, images: Tensor) -> tuple[Finding, Tensor | None]:
    """Does the model give one row of free numbers for each image?"""
    trial = "the model gives logits"
    try:
        logits = model(images)
    except Exception as error:
        seen = f"It refuses images of {tuple(images.shape)}: {' '.join(str(error).split())[:200]}"
        return Finding(trial, "wrong", seen, "Mend the forward pass first."), None
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(images):
        what = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        seen = f"For {len(images)} images it gives {what}."
        return Finding(trial, "wrong", seen, "Return logits (B, K): one row for each image."), None
    if not logits.isfinite().all():
        return Finding(trial, "wrong", "Logits hold nan or inf.", "Look by layer."), None
    low, high = logits.min().item(), logits.max().item()
    seen = f"{logits.shape[1]} logits from {low:.2g} to {high:.2g}."
    sums = logits.sum(dim=1)
    if low >= 0 and torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        seen = "Each row is above 0 and sums to 1: there is a softmax in the model."
        advice = "Take it out: cross-entropy applies its own."
        return Finding(trial, "wrong", seen, advice), logits
    if low >= 0 and high > 0:
        name = "a sigmoid" if high <= 1 and low > 0 else "a ReLU"
        seen = f"No logit is below 0 ({low:.2g} to {high:.2g}): it may end in {name}."
        return Finding(trial, "wrong", seen, "Let the last layer be linear."), logits
    if logits.std(dim=0).max() < 1e-6 * logits.std():
        seen = f"All {len(images)} images get the same logits."
        advice = (
            "The images do not reach what is read out: look for mixed axes, an unused input, or "
            "many sigmoids in a row."
        )
        return Finding(trial, "wrong", seen, advice), logits
    return Finding(trial, "fine", seen), logits


@torch.no_grad()
def first_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Finding:
    """Is the loss at the start that of a guess?"""
    parts = zip(images.split(64), labels.split(64), strict=True)
    losses = [F.cross_entropy(model(x), y, reduction="sum") for x, y in parts]
    classes = model(images[:2]).shape[1]
    loss, guess = torch.stack(losses).sum().item() / len(images), math.log(classes)
    seen = f"{loss:.2f}, a guess has ln {classes} = {guess:.2f}."
    if loss > guess + max(0.5, 0.3 * guess):
        advice = "It starts with certainty and is wrong: let the head start near 0 (std 0.02)."
        return Finding("first loss", "wrong", seen, advice)
    return Finding("first loss", "fine", seen)


@torch.no_grad()
def twice(model: nn.Module, images: Tensor) -> Finding:
    """Does the model answer the same twice in evaluation mode?"""
    trial = "the same answer twice"
    difference = (model(images) - model(images)).abs().max().item()
    if difference > 0:
        seen = f"In evaluation mode two answers differ by {difference:.2g}."
        advice = "Look for dropout as a function: F.dropout(x, p, training=self.training)."
        return Finding(trial, "wrong", seen, advice)
    return Finding(trial, "fine", "In evaluation mode two answers are equal.")


@torch.no_grad()
def alone(model: nn.Module, images: Tensor) -> Finding:
    """Does an image get the same answer alone, in a part of the batch, and in all of it?"""
    trial = "the rest of the batch does not count"
    logits, some = model(images), min(8, len(images))
    try:
        one_by_one = torch.cat([model(image[None]) for image in images[:some]])
    except Exception as error:
        seen = f"It refuses a single image: {' '.join(str(error).split())[:200]}"
        return Finding(trial, "wrong", seen, "Write no batch size into the model.")
    size = logits.std().item() + 1e-12
    difference = (one_by_one - logits[:some]).abs().max().item() / size
    seen = f"Alone and in a batch, logits differ by {difference:.1g} of their standard deviation."
    if difference > SAME:
        advice = (
            "Look for axes that are mixed up (batch_first=True of nn.MultiheadAttention; view for "
            "transpose) and for norms over the batch."
        )
        return Finding(trial, "wrong", seen, advice)
    return Finding(trial, "fine", seen)


@torch.no_grad()
def weights_of_a_query(model: nn.Module, images: Tensor) -> Finding:
    """Where a square of scores gets a softmax, is it over the keys, the last axis?"""
    trial = "weights of a query sum to 1"
    with SquareSoftmaxes() as seen:
        model(images[:2])
    if seen.over_queries:
        shape = seen.over_queries[0]
        told = f"Softmax of square scores {shape}: {len(seen.over_queries)} over the last axis but "
        told += "one, so the weights of a key sum to 1."
        advice = "If the rows are queries, say softmax(dim=-1)."
        return Finding(trial, "look", told, advice)
    told = (
        f"Softmax of square scores: {seen.over_keys} over the last axis, none over the one before."
    )
    return Finding(trial, "fine", told)


class SquareSoftmaxes(TorchFunctionMode):
    """While entered, notes along which axis square scores (..., N, N) are made weights."""

    def __init__(self) -> None:
        super().__init__()
        self.over_keys = 0
        self.over_queries: list[tuple[int, ...]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in SOFTMAX and out.ndim > 2 and out.shape[-1] == out.shape[-2] > 1:
            axis = (kwargs or {}).get("dim", args[1] if len(args) > 1 else None)
            self.over_keys += axis in (-1, out.ndim - 1)
            if axis in (-2, out.ndim - 2):
                self.over_queries.append(tuple(out.shape))
        return out
