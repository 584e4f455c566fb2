"""Folders of small pictures, each mostly of one colour, no two alike."""

import numpy as np
from PIL import Image

GREEN, RED, VIOLET = (20, 200, 40), (220, 30, 30), (130, 40, 200)


def painted(colour, size=(40, 48), seed=0):
    """A picture that is mostly of one colour, each seed another; size is (width, height)."""
    noise = np.random.default_rng(seed).integers(-20, 20, (size[1], size[0], 3))
    return Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8))


def fill(place, colour, seeds, ending="png"):
    """Put a picture for each seed into a folder, called by its seed."""
    place.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        painted(colour, seed=seed).save(place / f"{seed}.{ending}")
