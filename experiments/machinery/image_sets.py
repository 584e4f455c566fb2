"""MNIST and Fashion-MNIST for the experiments: 10,000 images to learn from, the same everywhere.

`python -m experiments.machinery.image_sets` fetches both, and CIFAR-10. They lie in the folder
that the environment variable VITBOOK_DATA names, by default in `data/` (git ignores it).
"""

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from experiments.machinery.experiment import FOLDER, checksum, scaled
from vitbook.data import STATISTICS, DataError, ImageSet, load_digits, load_torchvision, normalize
from vitbook.data.splits import some_of_each

NAMES = ("mnist", "fashion-mnist")
PARTS = ("train", "validation", "test")
PER_CLASS = {"train": 1000, "validation": 500}
SEED = 0


def root() -> Path:
    """The folder of the data sets."""
    return Path(os.environ.get("VITBOOK_DATA") or FOLDER.parent / "data")


def image_set(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, 1, 28, 28) and labels (n,).

    "train" has 1,000 images of each class and "validation" 500 of each, both out of the official
    60,000, without an image in common; "test" are the official 10,000.

    Args:
        name: "mnist" or "fashion-mnist".
        part: "train", "validation" or "test".
        scale: Below 1 for a trial run: that share of the images.

    Raises:
        DataError: The files are missing or damaged; the message says what to do.
    """
    if name not in NAMES or part not in PARTS:
        raise ValueError(f"there are {NAMES} with {PARTS}, not {name!r} with {part!r}")
    try:
        images, labels = load_torchvision(name, root(), part)
    except DataError as error:
        raise DataError(
            f"this experiment needs the images of {name}: fetch them with `python -m "
            "experiments.machinery.image_sets`, or name their folder in VITBOOK_DATA "
            f"({' '.join(str(error).split(': ')[0].split())})"
        ) from None
    if part == "test":
        index = torch.arange(scaled(len(labels), scale))
    else:
        index = some_of_each(labels, scaled(PER_CLASS[part], scale), SEED)
    return ImageSet(normalize(images[index], *STATISTICS[name]), labels[index])


def checksums(name: str) -> dict[str, str]:
    """What an experiment gives as `data`: the checksum of each part."""
    return {f"{name}, {part}": checksum(*image_set(name, part)) for part in PARTS}


def digits_set(part: str, scale: float = 1.0) -> ImageSet:
    """Digits (n, 1, 8, 8), normalised; for a trial run only the first ones."""
    images, labels = load_digits(part)
    kept = scaled(len(labels), scale)
    return ImageSet(normalize(images[:kept], *STATISTICS["digits"]), labels[:kept])


def digits_checksums(*parts: str) -> dict[str, str]:
    """The same of digits, as the package loads them."""
    return {f"digits, {part}": checksum(*load_digits(part)) for part in parts}


def whole_set(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """All images of a part, CIFAR-10's too, normalised; for a trial run only the first ones."""
    images, labels = load_torchvision(name, root(), part)
    kept = scaled(len(labels), scale)
    return ImageSet(normalize(images[:kept], *STATISTICS[name]), labels[:kept])


def whole_checksums(
    *names: str, parts: Sequence[str] = PARTS, added: str = " whole"
) -> dict[str, str]:
    """The same of whole sets; `added` follows the name of a set."""
    return {
        f"{name}{added}, {part}": checksum(*load_torchvision(name, root(), part))
        for name in names
        for part in parts
    }


if __name__ == "__main__":
    for name in (*NAMES, "cifar10"):
        load_torchvision(name, root(), download=True)
        print(f"{name} is in {root()}")
