"""What every data set comes as, and how a training set is divided without a random generator."""

from hashlib import blake2b
from typing import NamedTuple

import torch
from torch import Tensor

from vitbook import require

PARTS = ("train", "validation", "trainval", "test")


class ImageSet(NamedTuple):
    """Images with their labels; unpacks as ``images, labels = load_digits("test")``.

    Args:
        images: (n, C, H, W), float in [0, 1] or uint8 in 0 ... 255.
        labels: Class numbers, int64 (n,).
    """

    images: Tensor
    labels: Tensor


def stratified_split(labels: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Divide a set so that each class gives the same share to the second part.

    The order inside a class is that of a hash of (seed, index): the same on every machine and in
    every version of every library.

    Args:
        labels: Class numbers (n,).
        share: What goes to the second part, 0 < share < 1, rounded in each class.
        seed: Another seed gives another division.

    Returns:
        Two ascending lists of indices; together they hold 0 ... n - 1 once.
    """
    if not isinstance(labels, Tensor) or labels.ndim != 1:
        raise ValueError(f"labels must be a tensor of shape (n,), got {labels!r:.80}")
    if require.fraction("share", share) == 0:
        raise ValueError("share must be above 0 and below 1, got 0")
    second = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        members = sorted(
            (labels == label).nonzero().flatten().tolist(), key=lambda i: _rank(i, seed)
        )
        second[members[: round(share * len(members))]] = True
    return (~second).nonzero().flatten(), second.nonzero().flatten()


def part_of_training(training: ImageSet, part: str, share: float, seed: int) -> ImageSet:
    """The whole training set ("trainval"), or a side of its division ("train", "validation")."""
    if part == "trainval":
        return training
    index = stratified_split(training.labels, share, seed)[part == "validation"]
    return ImageSet(training.images[index], training.labels[index])


def some_of_each(labels: Tensor, per_class: int, seed: int = 0) -> Tensor:
    """The places of ``per_class`` images of each class, ascending; the same on every machine."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    places = []
    for label in labels.unique().tolist():
        members = order[labels[order] == label]  # of one class, in random order
        if len(members) < per_class:
            raise ValueError(f"class {label} has {len(members)} images, {per_class} are needed")
        places.append(members[:per_class])
    return torch.cat(places).sort().values


def _rank(index: int, seed: int) -> bytes:
    return blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
