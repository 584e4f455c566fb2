"""Recall: every patch is asked for another one's colour."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook.data import ImageSet
from vitbook.data.recall import recall
from vitbook.models.small_cnn import SmallCNN
from vitbook.training import TrainConfig, train

# Share of right answers of a guess at a colour that is not the patch's own: there are four patches
# of each colour, and nobody asks himself.
RECALL_GUESS = 4 / 15


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
    """Mean cross-entropy in nats and share of right answers, over all patches of all images."""
    loss, right = 0.0, 0
    for images, labels in zip(asked.images.split(500), asked.labels.split(500), strict=True):
        logits, y = model(images).flatten(0, 1), labels.flatten()
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        right += int((logits.argmax(dim=-1) == y).sum())
    return loss / asked.labels.numel(), right / asked.labels.numel()
