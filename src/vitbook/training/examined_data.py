"""Trials of :func:`~vitbook.training.examine` that look at images and labels alone."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitbook.training.findings import Finding

LARGEST_MEAN, SMALLEST_STD, LARGEST_STD = 1.5, 0.1, 2.5  # of a channel that a network likes
COPIES = 0.1  # share of images that are copies of others, from which on it is told


def as_tensors(images: Any, labels: Any) -> tuple[Any, Tensor | None]:
    """Arrays and lists of images or labels as tensors; an iterable of batches as it is."""
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(images)
    elif isinstance(images, list) and all(isinstance(x, (Tensor, np.ndarray)) for x in images):
        images = torch.stack([torch.as_tensor(x) for x in images]) if images else images
    if labels is None or isinstance(labels, Tensor):
        return images, labels
    try:
        return images, torch.as_tensor(labels)
    except (TypeError, ValueError) as error:
        raise TypeError(f"labels must be class numbers ({error})") from None


def gathered(batches: Iterable[tuple[Tensor, Tensor]], longest: int) -> tuple[Tensor, Tensor]:
    """The first images and labels of an iterable of batches."""
    images: list[Tensor] = []
    labels: list[Tensor] = []
    for batch in batches:
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise TypeError(
                "images must be a tensor or give pairs (images, labels), "
                f"got {type(batch).__name__}"
            )
        images.append(torch.as_tensor(batch[0]))
        labels.append(torch.as_tensor(batch[1]))
        if sum(map(len, images)) >= longest:
            break
    if not images:
        raise ValueError("images must give at least one batch, the iterable is empty")
    return torch.cat(images), torch.cat(labels)


def order(batches: Iterable[tuple[Tensor, Tensor]], labels: Tensor | None, longest: int) -> Finding:
    """Do batches come in an order that has nothing to do with the classes, a new one each time?"""
    if labels is not None:
        raise TypeError("labels must be left out where images is an iterable of batches")
    trial = "batches are shuffled"
    if iter(batches) is batches:
        raise TypeError(
            "images must be an iterable that can be run through again, such as a DataLoader or a "
            "list of batches; a generator is at its end after the first time"
        )
    first = gathered(batches, longest)[1].flatten()
    again = gathered(batches, len(first) // 4)[1].flatten()
    shares = torch.unique(first, return_counts=True)[1] / len(first)
    by_chance = shares.square().sum().item()  # that two neighbours have one class
    same = (first[1:] == first[:-1]).float().mean().item()
    spread = (by_chance * (1 - by_chance) / max(1, len(first) - 1)) ** 0.5
    if len(first) >= 16 and (len(shares) == 1 or same > by_chance + 4 * spread + 0.05):
        seen = f"{same:.0%} of neighbours in the first batches have the same class"
        seen += f", by chance {by_chance:.0%}." if len(shares) > 1 else ": there is only one."
        return Finding(trial, "wrong", seen, "Shuffle the data set (DataLoader(shuffle=True)).")
    if len(first) >= 16 and torch.equal(first[: len(again)], again):
        seen = "The second time, the labels come in the same order."
        return Finding(trial, "look", seen, "For training, shuffle anew in each epoch.")
    return Finding(
        trial, "fine", f"{same:.0%} of neighbours have one class, chance {by_chance:.0%}."
    )


def pixels(images: Tensor) -> Finding:
    """Are the pixels numbers of a size that a network likes?"""
    trial = "pixels are scaled"
    if not images.is_floating_point():
        seen = f"The images are {images.dtype}."
        return Finding(trial, "wrong", seen, "Convert: images.float() / 255, then normalise.")
    if not len(images):
        return Finding(trial, "wrong", "There are no images.", "Look at what should read them.")
    if images.ndim != 4:
        seen = f"The images have the shape {tuple(images.shape)}."
        return Finding(trial, "wrong", seen, "A batch has the axes (B, C, H, W).")
    if bad := int((~images.isfinite()).flatten(1).any(dim=1).sum()):
        seen = f"{bad} of {len(images)} images hold nan or inf."
        return Finding(trial, "wrong", seen, "Look at what divides by a standard deviation of 0.")
    means, stds = images.mean(dim=(0, 2, 3)), images.std(dim=(0, 2, 3))  # (C,)
    low, high = images.min().item(), images.max().item()
    seen = f"Means {_span(means)}, standard deviations {_span(stds)}, from {low:.3g} to {high:.3g}."
    last = images.shape[-1]
    if last in (1, 3) and images.shape[1] not in (1, 3):
        advice = "The channels seem to stand last: images.permute(0, 3, 1, 2)."
        return Finding(trial, "wrong", f"The shape is {tuple(images.shape)}.", advice)
    if (stds == 0).any():
        return Finding(trial, "wrong", seen, "A channel is the same everywhere: look at one image.")
    if high > 20 and low >= 0:
        return Finding(trial, "wrong", seen, "Divide by 255, then subtract mean, divide by std.")
    if means.abs().max() > LARGEST_MEAN or stds.max() > LARGEST_STD or stds.min() < SMALLEST_STD:
        advice = "Normalise once, with mean and std of the training images in the scale 0 ... 1."
        return Finding(trial, "wrong", seen, advice)
    return Finding(trial, "fine", seen)


def copies(images: Tensor, labels: Tensor) -> Finding:
    """Is each image there once, and has it one label?"""
    trial = "each image once, with one label"
    flat = images.flatten(1)
    unique, which = torch.unique(flat, dim=0, return_inverse=True)
    if labels.ndim == 1 and len(labels) == len(images):
        pairs = torch.stack([which.to(labels.device), labels.to(which.dtype)], dim=1)
        contradictory = len(torch.unique(pairs, dim=0)) - len(unique)
        if contradictory:
            seen = f"{contradictory} images come with more than one label."
            return Finding(trial, "wrong", seen, "Look at how they are paired.")
    share = 1 - len(unique) / len(images)
    seen = f"{len(unique)} different images of {len(images)}."
    if len(unique) == 1 and len(images) > 1:
        return Finding(trial, "wrong", seen, "Does the loader read one file again and again?")
    if share > COPIES:
        return Finding(trial, "look", seen, "Copies that are in both parts spoil a validation.")
    return Finding(trial, "fine", seen)


def classes(labels: Tensor, num_classes: int, count: int) -> Finding:
    """Are the labels the class numbers of the logits?"""
    trial = "labels are class numbers"
    if labels.ndim != 1:
        seen = f"The labels have the shape {tuple(labels.shape)}."
        return Finding(trial, "wrong", seen, "One number for each image: one-hot.argmax(dim=1).")
    if len(labels) != count:
        seen = f"There are {len(labels)} labels for {count} images."
        return Finding(trial, "wrong", seen, "One number for each image, in the same order.")
    if labels.is_floating_point() or labels.dtype == torch.bool:
        seen = f"The labels are {labels.dtype}."
        return Finding(trial, "wrong", seen, "Convert them: labels.long().")
    low, high, known = int(labels.min()), int(labels.max()), len(labels.unique())
    seen = f"Labels {low} to {high}, {known} classes, for {num_classes} logits."
    if low < 0 or high >= num_classes:
        advice = f"Labels have to run from 0 to {num_classes - 1}, or the head needs more classes."
        return Finding(trial, "wrong", seen, advice)
    if known == 1:
        return Finding(trial, "wrong", seen, "Look at the labels: all images have the same.")
    if num_classes > 2 * (high + 1):
        return Finding(trial, "look", seen, "Is the head still that of another data set?")
    return Finding(trial, "fine", seen)


def _span(values: Tensor) -> str:
    low, high = f"{values.min().item():.2g}", f"{values.max().item():.2g}"
    return low if low == high else f"{low} to {high}"
