"""Garments of Fashion-MNIST somewhere on a canvas: real pictures, and one answer for each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from torch import nn

from vitbook.data import STATISTICS, ImageSet, load_torchvision, normalize
from vitbook.data.canvas import place_on_canvas
from vitbook.data.splits import some_of_each
from vitbook.training import TrainConfig, evaluate, train

GARMENTS = "fashion-mnist"
SIDE = 56  # pixels of the canvas
MEAN, STD = (0.123,), (0.216,)  # of the canvases
PER_CLASS = {"train": 1000, "validation": 500}  # the test images are all of the official ones


def on_canvases(garments: ImageSet, side: int, seed: int) -> ImageSet:
    """Each garment somewhere on a canvas: images (n, 1, side, side), normalized, and labels (n,).

    Args:
        garments: As recorded experiments take them, normalized.
        side: Of the canvas, in pixels.
        seed: Of the places.
    """
    (mean,), (std,) = STATISTICS[GARMENTS]
    objects = (garments.images * std + mean).clamp(0, 1)
    canvas = place_on_canvas(objects, side, seed=seed).images
    return ImageSet(normalize(canvas, MEAN, STD), garments.labels)


@lru_cache(maxsize=3)
def garment_images(part: str, first: int, root: Path) -> ImageSet:
    """Canvases (n, 1, 56, 56), normalized, and labels (n,).

    Args:
        part: "train", "validation" or "test".
        first: Seed of the places in "train"; the other parts have the numbers after it.
        root: Folder of Fashion-MNIST.

    Raises:
        DataError: It is not there, or damaged.
    """
    images, labels = load_torchvision(GARMENTS, root, part)
    index = slice(None) if part == "test" else some_of_each(labels, PER_CLASS[part])
    garments = ImageSet(normalize(images[index], *STATISTICS[GARMENTS]), labels[index])
    return on_canvases(garments, SIDE, first + ("train", "validation", "test").index(part))


def learn_garments(
    model: nn.Module, known: ImageSet, asked: ImageSet, config: TrainConfig
) -> dict[str, float]:
    """Train a classifier: its mean cross-entropy in nats, and its accuracy."""
    train(model, *known, config, progress=False)
    found = evaluate(model, *asked)
    return {"loss": found.loss, "accuracy": found.accuracy}
