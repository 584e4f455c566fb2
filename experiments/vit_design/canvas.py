"""Garments somewhere on a larger dark canvas: a pixel, or a patch, says less by its place."""

from functools import lru_cache
from typing import Any

from experiments.machinery.classifier import costs
from experiments.machinery.experiment import checksum, scaled
from experiments.machinery.image_sets import root
from vitbook.data import STATISTICS, ImageSet, load_torchvision, normalize
from vitbook.data.canvas import place_on_canvas

SET = "fashion-mnist"
SIDE = 42  # pixels; a garment has 28
COUNTS = {"train": 30_000, "validation": 2_000, "test": 10_000}
FIRST = 90  # seed of the first part


@lru_cache(maxsize=3)
def garments(part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, 1, 42, 42) and labels (n,); each garment has one place for good."""
    seed = FIRST + list(COUNTS).index(part)
    images, labels = load_torchvision(SET, root(), part)
    kept = scaled(COUNTS[part], scale)
    placed = place_on_canvas(images[:kept].float() / 255, SIDE, seed=seed, noise=0).images
    return ImageSet(normalize(placed, *STATISTICS[SET]), labels[:kept])


def checksums() -> dict[str, str]:
    """What an experiment gives as `data`: the checksum of each part."""
    return {f"garments, {part}": checksum(*garments(part)) for part in COUNTS}


def costs_on_canvas(model: Any, scale: float) -> dict[str, int]:
    """What `COSTS` names, for one of these images."""
    return costs(model, garments("test", scale).images)
