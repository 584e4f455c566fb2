"""What a model has to beat: a linear classifier, a small MLP, and the nearest training image."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from experiments.machinery.experiment import Outcome
from vitbook.data import ImageSet


def linear(features: int, num_classes: int) -> nn.Module:
    """Logistic regression on the pixels: images (B, ...) with that many numbers -> logits."""
    layer = nn.Linear(features, num_classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)


def mlp(features: int, hidden: int, num_classes: int) -> nn.Module:
    """One hidden layer: images (B, ...) with that many numbers -> logits."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, num_classes)
    )


def nearest_answers(known: ImageSet, images: Tensor) -> Tensor:
    """The label of the training image at the least distance, (n,)."""
    learned = known.images.flatten(1)
    half = learned.square().sum(dim=1) / 2
    found = [(half - x @ learned.T).argmin(dim=1) for x in images.flatten(1).split(500)]
    return known.labels[torch.cat(found)]


def nearest_accuracy(known: ImageSet, test: ImageSet) -> float:
    """Share of the test images that have the label of the nearest training image."""
    return (nearest_answers(known, test.images) == test.labels).double().mean().item()


def nearest(images: Callable[[str, float], ImageSet], scale: float) -> Outcome:
    """The run of the nearest neighbour."""
    found = nearest_accuracy(images("train", scale), images("test", scale))
    return Outcome({"test_accuracy": found, "parameters": 0})
