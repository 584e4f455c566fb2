"""What is measured in a recorded training: each test is one number, and has a sign.

Most ask the model, in evaluation mode, about images that no model has seen. The ``sign`` of a
number is 0 where it is like the healthy model's; equal signs cannot be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vitbook.book.faults import LAYERS, SCHEDULE, SIZES, ClinicViT, model_with
from vitbook.data import pointer
from vitbook.inspection import attention_maps

IMAGES, CELL = 200, 8  # new images; the side of a patch
LIKE = {"accuracy": 0.99, "loss": 0.1}  # what a curve must reach to be like the healthy one's
LATE = 100  # updates


@dataclass(frozen=True)
class Training:
    """A recorded training of the clinic; ``loss`` and ``accuracy`` are its curves."""

    fault: str
    weights: dict[str, Tensor]
    loss: list[float]
    accuracy: list[float]
    test_accuracy: float
    train_accuracy: float
    steps: int

    @property
    def late_loss(self) -> float:
        """Training loss, mean of the last updates."""
        late = self.loss[-round(len(self.loss) * LATE / self.steps) :]
        return sum(late) / len(late)

    def model(self) -> ClinicViT:
        """Fault and all; what is random in it is the same each time."""
        torch.manual_seed(0)
        return model_with(self.weights, self.fault if self.fault in LAYERS else None)

    def silenced(self, part: str) -> Training:
        """With zeros for the weights in whose names this stands."""
        zero = {n: torch.zeros_like(w) for n, w in self.weights.items() if part in n}
        return replace(self, weights={**self.weights, **zero})


@cache
def seen() -> tuple[Tensor, Tensor]:
    """New images (n, 1, 24, 24) and their labels."""
    found = pointer(IMAGES, seed=0)
    return found.images, found.labels


def repainted(images: Tensor, row: int, column: int) -> Tensor:
    """Black is white in one patch."""
    changed = images.clone()
    rows, columns = (slice(CELL * at, CELL * at + CELL) for at in (row, column))
    changed[..., rows, columns] = 1 - changed[..., rows, columns]
    return changed


def most(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def first_loss(one: Training) -> float:
    torch.manual_seed(0)
    fresh, (images, labels) = replace(one, weights=ClinicViT(**SIZES).state_dict()), seen()
    return F.cross_entropy(fresh.model()(images), labels).item()


def lost(one: Training) -> float:
    images, labels = seen()
    return one.late_loss - F.cross_entropy(one.model()(images), labels).item()


def highest_rate(one: Training) -> float:
    from experiments.training.clinic import RECIPE, stepped_per_epoch
    from vitbook.training import warmup_cosine

    schedule = stepped_per_epoch if one.fault == SCHEDULE else warmup_cosine
    return max(schedule(at, one.steps, RECIPE["warmup_steps"]) for at in range(one.steps))


def healthy_code(one: Training) -> float:
    images, _ = seen()
    return most(one.model()(images), model_with(one.weights)(images))


def twice(one: Training) -> float:
    model, (images, _) = one.model(), seen()
    return most(model(images), model(images))


def rows_swapped(one: Training) -> float:
    model, (images, _) = one.model(), seen()
    moved = images.unflatten(2, (3, CELL)).flip(2).flatten(2, 3)
    return most(model(images), model(moved))


def pixels(one: Training) -> float:
    return one.model().normalized(seen()[0]).std().item()


def tokens_changed(one: Training) -> float:
    model, (images, _) = one.model(), seen()
    before, after = (model.patch_embed(x) for x in (images, repainted(images, 0, 1)))
    return (before != after).any(-1).sum(-1).float().mean().item()


def tables_added(one: Training) -> float:
    images, table = seen()[0], one.weights["positions.table"]
    added = one.model().embed(images) - one.silenced("positions").model().embed(images)
    return ((added * table).sum() / (table.square().sum() * len(images))).item()


def written_out(one: Training) -> float:
    """The first layer's map against one written out from the same weights."""
    model = one.model()
    block: Any = model.encoder.blocks[0]
    x, attn = block.norm1(model.embed(seen()[0])), block.attn
    (B, N, D), h = x.shape, attn.num_heads
    q, k, _ = attn.qkv(x).chunk(3, dim=-1)  # (B, N, D) each
    q, k = (part.view(B, N, h, D // h).transpose(1, 2) for part in (q, k))
    weights = (q @ k.mT / math.sqrt(D // h)).softmax(dim=-1)
    return most(attn.attention_weights(x), weights)


def row_sum(one: Training) -> float:
    sums = attention_maps(one.model(), seen()[0], verify=False).sum(-1)
    return sums.flatten()[(sums - 1).abs().argmax()].item()


def maps_changed(one: Training) -> float:
    images, _ = seen()
    both = images, repainted(images, 2, 2)
    before, after = (attention_maps(one.model(), x, verify=False)[0] for x in both)
    return ((before - after).abs().amax(dim=(0, 2, 3)) > 1e-6).sum().item()


def answers_differ(part: str) -> Callable[[Training], float]:
    """Do images still get answers of their own, with these weights at zero?"""

    def measure(one: Training) -> float:
        logits = one.silenced(part).model()(seen()[0])
        return most(logits, logits[:1])

    return measure


def small(value: float) -> int:
    """The sign of what is zero with the fault and not without."""
    return int(abs(value) < 1e-3)


def large(value: float) -> int:
    """The sign of what is zero without the fault."""
    return int(abs(value) > 1e-3)


def unlike(expected: float) -> Callable[[float], int]:
    """0 where it is about so, 1 where it is less, 2 where it is more."""
    return lambda value: 0 if abs(value - expected) < 0.3 else 1 + (value > expected)
