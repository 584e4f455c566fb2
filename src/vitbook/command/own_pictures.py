"""A run on one's own pictures (``--data folder``), and where it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from vitbook.command.any_model import classifiers, load_whole, read_weights, timm_model
from vitbook.data import ImageSet, normalize
from vitbook.data.folder import load_folder
from vitbook.models.transfer import adapt

PARTS = 4  # updates in an epoch at least, if the batch size is not given
WARMUP = 5  # one update in so many at most: a small folder has fewer than the recipe's warm-up
NEEDS_ROOT = "root must say which folder holds a folder of pictures for each class (--root DIR)"


def describe(settings: dict, root: str | None, given: dict) -> tuple[dict, tuple[str, ...]]:
    """What the pictures themselves settle, and sentences on odd ones.

    Args:
        settings: Of the run.
        root: The folder of pictures.
        given: What the user said, which stays.

    Returns:
        The names of the classes, mean and standard deviation of the channels, the size of the
        images (a model of timm brings its own size and statistics), a batch size that gives a
        small folder some updates in each epoch, and a warm-up that leaves most of the updates
        after it.
    """
    if root is None:
        raise ValueError(NEEDS_ROOT)
    found = {"image_size": settings["image_size"]}
    if settings["timm"]:
        known = timm_model(settings["timm"], pretrained=False).pretrained_cfg
        found = {"image_size": known["input_size"][-1]}
        found |= {name: [float(x) for x in known[name]] for name in ("mean", "std")}
    pictures = load_folder(root, "trainval", size=found["image_size"])
    learned = pictures
    if settings["learn_from"] == "train":  # the others only judge: they lend it no numbers
        learned = load_folder(root, "train", size=found["image_size"])
    if "batch_size" not in given:
        found["batch_size"] = min(settings["batch_size"], max(1, len(learned.images) // PARTS))
    epoch = len(learned.images) // found.get("batch_size", settings["batch_size"])
    updates = settings.get("steps") or settings["epochs"] * epoch
    if "warmup_steps" not in given:
        found["warmup_steps"] = min(settings["warmup_steps"], updates // WARMUP)
    if not settings["timm"]:
        pixels = learned.images.double() / 255
        found["mean"] = [round(x, 4) for x in pixels.mean(dim=(0, 2, 3)).tolist()]
        found["std"] = [round(max(x, 0.01), 4) for x in pixels.std(dim=(0, 2, 3)).tolist()]
    tested = load_folder(root, "test", size=found["image_size"])
    notes = (*pictures.notes, *(note for note in tested.notes if note not in pictures.notes))
    return found | {"classes": list(pictures.classes)}, notes


def read_part(settings: dict, part: str, root: str | None) -> ImageSet:
    """One part of the pictures, as the model of the run takes them."""
    if root is None:
        raise ValueError(NEEDS_ROOT)
    pictures = load_folder(root, part, size=settings["image_size"])
    if list(pictures.classes) != settings["classes"]:
        raise ValueError(
            f"{root} holds the classes {', '.join(pictures.classes)}, the run learned "
            f"{', '.join(settings['classes'])}"
        )
    images = normalize(pictures.images, settings["mean"], settings["std"])
    return ImageSet(images, pictures.labels)


def model_of_timm(settings: dict, *, pretrained: bool = False) -> Any:
    """The model of timm that a run names, with a head for its classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        classes = len(settings["classes"])
        return timm_model(settings["timm"], pretrained=pretrained, num_classes=classes)


def start_from(model: Any, settings: dict) -> list[str]:
    """Put the weights that a run starts from into its model; a sentence for each adapted part."""
    if settings["weights"] is None:
        model.load_state_dict(model_of_timm(settings, pretrained=True).state_dict())
        return [f"starts from timm's weights of {settings['timm']}; head drawn anew"]
    weights = read_weights(Path(settings["weights"]))
    if settings["timm"] is None:
        return adapt(model, weights)
    own = model.state_dict()
    heads = classifiers(model.pretrained_cfg["classifier"])
    head = {name for name in own if name.startswith(tuple(f"{name}." for name in heads))}
    weights = {name: x for name, x in weights.items() if name not in head}
    load_whole(model, weights | {name: own[name] for name in head}, settings["weights"])
    return [f"starts from {settings['weights']}; head drawn anew"]


def head_of(model: Any) -> nn.Module:
    """The last layer, or the last layers (distilled ones), which alone are trained at first."""
    head = model.get_classifier() if hasattr(model, "get_classifier") else model.head
    head = nn.ModuleList(head) if isinstance(head, (tuple, list)) else head
    if not list(head.parameters()):
        raise ValueError(f"{type(model).__name__} has no head that could be trained first")
    return head
