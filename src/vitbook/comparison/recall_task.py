"""Recall: every patch is asked for another one's colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook.data import ImageSet
from vitbook.data.recall import recall
from vitbook.models.small_cnn import SmallCNN
from vitbook.training import TrainConfig, epoch_order, parameter_groups, train, update

# Share of right answers of a guess at a colour that is not the patch's own: there are four patches
# of each colour, and nobody asks himself.
RECALL_GUESS = 4 / 15
HALF, MOST = 0.5, 0.95  # shares of right answers: noted, and the end


@lru_cache(maxsize=3)
def recall_images(partner: str, count: int, seed: int) -> ImageSet:
    """The images of the record, drawn again."""
    found = recall(count, seed=seed, partner=partner)
    return ImageSet(2 * found.images - 1, found.labels)


class PatchAnswers(nn.Module):
    """A classifier that is read out at every patch, and not at the mean of all.

    Args:
        model: with `forward_features` and `head`; or a `SmallCNN` that halves 8 pixels to one.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model: Any = model

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, N, K)."""
        model = self.model
        if isinstance(model, SmallCNN):
            features = model.layers(images).flatten(2).transpose(1, 2)  # (B, N, D)
        else:
            features = model.forward_features(images)  # (B, N, D)
        return model.head(features)


def fit_recall(
    model: nn.Module, known: ImageSet, config: TrainConfig, log: Callable[[float], None]
) -> list[float]:
    """Train a model on images and the labels (n, N) of all their patches: the losses."""

    def loss_function(logits: Tensor, numbers: Tensor) -> Tensor:
        loss = F.cross_entropy(logits.flatten(0, 1), known.labels[numbers].flatten())
        log(loss.item())
        return loss

    numbers = torch.arange(len(known.images))  # by which the loss finds the labels of a batch
    history = train(
        model, known.images, numbers, config, loss_function=loss_function, progress=False
    )
    return [row["loss"] for row in history]


@torch.no_grad()
def answered(model: nn.Module, asked: ImageSet) -> tuple[float, float]:
    """Mean cross-entropy in nats and accuracy, over all patches of all images."""
    loss, right = 0.0, 0
    for images, labels in zip(asked.images.split(500), asked.labels.split(500), strict=True):
        logits, y = model(images).flatten(0, 1), labels.flatten()
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        right += int((logits.argmax(dim=-1) == y).sum())
    return loss / asked.labels.numel(), right / asked.labels.numel()


def looks_until(longest: int, first: int, ratio: float) -> list[int]:
    """After how many updates a model is asked: each time after so many times as many."""
    looks = [1.0 * first]
    while looks[-1] < longest:
        looks.append(looks[-1] * ratio)
    return sorted({min(longest, round(look)) for look in looks})


def time_to_learn(
    model: nn.Module, known: ImageSet, asked: ImageSet, config: TrainConfig, looks: Sequence[int]
) -> dict[str, float]:
    """Train at a rate that stays the same after the warm-up, until 95 % or the last look.

    Args:
        model: With outputs (B, N, K).
        known: Images and the labels (n, N) of all their patches, to learn from.
        asked: The same, for the looks.
        config: The recipe.
        looks: After how many updates the model is asked.

    Returns:
        half, most: the updates until half, and until 95 %, of the answers were right; 0: not until
        the last look. accuracy: the largest at a look. loss: the mean
        cross-entropy over all looks, in nats, with 0 for those that were no longer needed.

    Raises:
        ArithmeticError: The loss is no longer finite.
    """
    optimizer = torch.optim.AdamW(parameter_groups(model, config.weight_decay), betas=config.betas)
    n, size, losses, right = len(known.images), config.batch_size, [0.0], [0.0]
    found, begun = {HALF: 0, MOST: 0}, 0

    def loss_function(logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    for look in looks:
        model.train()
        for step in range(begun, look):
            epoch, i = divmod(step, n // size)
            if i == 0:
                order = epoch_order(n, config.seed, epoch)
            index = order[i * size : (i + 1) * size]
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate * min(1, (step + 1) / config.warmup_steps)
            update(
                model, optimizer, known.images[index], known.labels[index], config, loss_function
            )
        model.eval()
        begun, (loss, share) = look, answered(model, asked)
        if not math.isfinite(loss):
            raise ArithmeticError(f"training diverged: after {look} updates the loss is {loss}")
        losses.append(loss)
        right.append(share)
        found = {level: found[level] or look * (share >= level) for level in found}
        if found[MOST]:
            break
    loss = sum(losses) / len(looks)
    return {"half": found[HALF], "most": found[MOST], "accuracy": max(right), "loss": loss}
