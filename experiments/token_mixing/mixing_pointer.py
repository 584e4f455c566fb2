"""A glyph says which cell holds the answer: seven architectures, equal parameters and compute."""

from dataclasses import replace
from functools import lru_cache, partial

from experiments.machinery.choose import Choice
from experiments.machinery.experiment import checksum, scaled
from experiments.token_mixing import mixing, mixing_pairs
from experiments.token_mixing.mixing import NEAREST, Task
from vitbook.data import ImageSet, pointer

TASK = Task(images=(32, 8, 1, 4), kernel_size=3, steps=400, batch_size=128)
CELLS = {"cells_per_side": 4, "num_classes": 4}
IMAGES = {"train": 30_000, "validation": 2_000, "test": 4_000}
FIRST = 190  # seed of the first part


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Images (n, 1, 32, 32) between -1 and 1, and labels (n,)."""
    found = pointer(scaled(IMAGES[part], scale), seed=FIRST + list(IMAGES).index(part), **CELLS)
    return ImageSet(2 * found.images - 1, found.labels)


CLASSIFIER = mixing.classifier(TASK, images_of)
EXPERIMENT = replace(
    mixing_pairs.EXPERIMENT,
    what="Pointer (the glyph in the first of 16 cells names the cell with the answer): seven "
    "architectures and a small CNN with equal parameters and equal compute; logistic regression "
    "and the nearest image.",
    run=partial(mixing.run, CLASSIFIER),
    data=lambda: {f"pointer, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "images": TASK.model,
        "training": TASK.recipe,
        "models": mixing.sizes(TASK),
        "counts": IMAGES,
        "first_seed": FIRST,
        "cells": CELLS,
    },
    steps=lambda condition: 0 if condition["model"] == NEAREST else CLASSIFIER.steps(condition),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.6, finalists=0
    ),
)
