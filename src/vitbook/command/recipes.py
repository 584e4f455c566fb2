"""What ``python -m vitbook train`` does by default: data, model and recipe by name.

A run is described by one flat dict of plain values, its settings: they are kept beside its
weights, so that the run can be resumed, evaluated and looked at without repeating them.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.command import own_pictures
from vitbook.command.architectures import DEFAULTS, build, only_its_own
from vitbook.data import (
    STATISTICS,
    ImageSet,
    augmentation,
    load_digits,
    load_torchvision,
    matching_pairs,
    normalize,
    pointer,
)
from vitbook.data.room import Images
from vitbook.data.splits import PARTS
from vitbook.models.vit import VIT_VARIANTS
from vitbook.training import TrainConfig

SHAPES = {
    "digits": {"image_size": 8, "in_channels": 1, "num_classes": 10},
    "matching-pairs": {"image_size": 32, "in_channels": 1, "num_classes": 2},
    "pointer": {"image_size": 24, "in_channels": 1, "num_classes": 4},
    "mnist": {"image_size": 28, "in_channels": 1, "num_classes": 10},
    "fashion-mnist": {"image_size": 28, "in_channels": 1, "num_classes": 10},
    "cifar10": {"image_size": 32, "in_channels": 3, "num_classes": 10},
}
DOWNLOADED = ("mnist", "fashion-mnist", "cifar10")
# How many images, and the seed that draws them; "trainval" learns from "train".
GENERATED = {"train": (20_000, 0), "validation": (2_000, 1), "test": (2_000, 2)}
GENERATED["trainval"] = GENERATED["train"]

MODELS = {  # the sizes; each architecture reads those it has
    "tiny": {"embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0},
    "small": {"embed_dim": 64, "depth": 4, "num_heads": 4, "mlp_ratio": 2.0},
    "medium": {"embed_dim": 128, "depth": 6, "num_heads": 4, "mlp_ratio": 4.0},
    **{name: {**sizes, "mlp_ratio": 4.0} for name, sizes in VIT_VARIANTS.items()},
}

COMMON: dict[str, Any] = {
    "architecture": "vit",
    "pool": "cls",
    "positions": "learned",
    "norm_first": True,
    "dropout": 0.0,
    **DEFAULTS,
}
COMMON |= {"shift": 0, "flip": False, "learn_from": "trainval"}
COMMON |= {
    field.name: field.default
    for field in dataclasses.fields(TrainConfig)
    if field.name not in ("epochs", "steps")
}
_SHORT = {"learning_rate": 2e-3, "warmup_steps": 50}
_LONG = {"learning_rate": 2e-3, "warmup_steps": 200}
# Chosen on validation images. On one core: digits 20 s, about 97 % of the validation images right;
# matching pairs 20 s, 99.8 %; pointer 20 s, 100 %; MNIST 9 min, 98.5 %. The other two need longer.
RECIPES = {
    "digits": {"model": "tiny", "patch_size": 2, "epochs": 30, **_SHORT},
    "matching-pairs": {
        "model": "tiny",
        "patch_size": 8,
        "depth": 2,
        "pool": "mean",
        "positions": "sincos_2d",
        "position_base": 8.0,  # twice the side of the grid
        "centred_positions": True,
        "epochs": 4,
        "batch_size": 128,
        **_SHORT,
    },
    "pointer": {"model": "tiny", "patch_size": 8, "epochs": 4, **_SHORT},
    "mnist": {"model": "small", "patch_size": 4, "epochs": 8, "shift": 2, **_LONG},
    "fashion-mnist": {"model": "small", "patch_size": 4, "epochs": 8, "flip": True, **_LONG},
    "cifar10": {"model": "medium", "patch_size": 4, "epochs": 6, "flip": True, **_LONG},
    "folder": {"model": "small", "patch_size": 8, "epochs": 30, "shift": 4, "flip": True, **_LONG},
}
# What only one's own pictures have: their size, and the weights to start from.
OWN: dict[str, Any] = {"image_size": 64, "weights": None, "timm": None, "head_epochs": 0}
OWN |= {"class_weights": False}
# The part that the run has learned from whose weights are lent; sentences on near copies, by part.
OWN |= {"learned_before": None, "near": {}}
STARTED = {"epochs": 10, "head_epochs": 3, "learning_rate": 3e-4}  # with weights to start from


def settings_of(given: dict) -> dict:
    """All settings of a run, from those that were given.

    Args:
        given: "data", and whatever differs from that data set's recipe: the "architecture", the
            name of its size as "model", or arguments of that architecture, of
            :class:`~vitbook.training.TrainConfig` and of :func:`~vitbook.data.augmentation`.
            "learn_from" is "trainval", or "train" to keep the validation images apart. With
            "folder" there are "image_size", and "weights" (a file) or "timm" (a name) to start
            from, with "head_epochs" before the others for the head alone.

    Returns:
        A dict of plain values, complete, without what only other architectures have.

    Raises:
        ValueError: A word that is not known, or an argument of another architecture.
    """
    data = require.one_of("data", given.get("data", "digits"), tuple(RECIPES))
    recipe = {"data": data, **COMMON, **RECIPES[data]}
    if data == "folder":
        recipe |= OWN | (STARTED if given.get("weights") or given.get("timm") else {})
    elif foreign := sorted(OWN.keys() & given.keys()):
        raise ValueError(f"{', '.join(foreign)} must be left out, only data 'folder' has such")
    model = require.one_of("model", given.get("model", recipe["model"]), tuple(MODELS))
    sizes = MODELS[model] if "model" in given else {**MODELS[model], **recipe}
    settings = {**recipe, **sizes, **given, "model": model}
    if settings["positions"] == "learned":  # the published 0.02 has to grow first
        settings.setdefault("position_std", 0.5)
    if settings["positions"] != recipe["positions"]:  # the arguments of the recipe's table
        for name in {"position_base", "centred_positions"} - given.keys():
            settings.pop(name, None)
    require.one_of("learn_from", settings["learn_from"], ("trainval", "train"))
    if "steps" in given and "epochs" not in given:
        del settings["epochs"]
    return only_its_own(settings, given)


def load_part(
    settings: dict,
    part: str,
    root: str | None = None,
    *,
    download: bool = False,
    mirror: str | None = None,
) -> tuple[Images, Tensor]:
    """The images a run learns from or is tested on, as its model takes them.

    Args:
        settings: Of the run.
        part: "train", "validation", "trainval" or "test".
        root, download, mirror: As for :func:`~vitbook.data.load_torchvision`; not used by data
            that is always there.

    Returns:
        Float images, normalised where they are photographs or scans (one's own pictures when a
        batch of them is asked for), and labels.
    """
    require.one_of("part", part, PARTS)
    data = settings["data"]
    if data in ("matching-pairs", "pointer"):
        n, seed = GENERATED[part]
        made = (matching_pairs if data == "matching-pairs" else pointer)(n, seed)
        return ImageSet(made.images, made.labels)
    if data == "digits":
        images, labels = load_digits(part)
    elif data == "folder":
        return own_pictures.prepared(own_pictures.read_pictures(settings, part, root), settings)
    elif root is None:
        raise ValueError(
            f"root must say in which folder {data} is (--root DIR), or is to be put "
            "(--root DIR --download)"
        )
    else:
        images, labels = load_torchvision(data, root, part, download=download, mirror=mirror)
    return ImageSet(normalize(images, *STATISTICS[data]), labels)


def build_model(settings: dict) -> nn.Module:
    """The model of a run with the weights its seed draws."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        if settings.get("timm"):
            return own_pictures.model_of_timm(settings)
        return build(settings, shape_of(settings))


def shape_of(settings: dict) -> dict:
    """The images and classes of a run, as the arguments of a model."""
    if settings["data"] != "folder":
        return SHAPES[settings["data"]]
    classes = len(settings["classes"])
    return {"image_size": settings["image_size"], "in_channels": 3, "num_classes": classes}


def class_names(settings: dict) -> list[str]:
    """What the classes of a run are called, in the order of its logits."""
    return settings.get("classes") or [str(i) for i in range(shape_of(settings)["num_classes"])]


def statistics_of(settings: dict) -> tuple[Sequence[float], Sequence[float]]:
    """Mean and standard deviation by which the images of a run were normalised, per channel."""
    if settings["data"] == "folder":
        return settings["mean"], settings["std"]
    channels = SHAPES[settings["data"]]["in_channels"]
    return STATISTICS.get(settings["data"], ((0.0,) * channels, (1.0,) * channels))


def pixels_of(images: Tensor, settings: dict) -> Tensor:
    """Images as the model of a run takes them (..., C, H, W) -> as pixels in [0, 1], on the CPU."""
    mean, std = (torch.tensor(x)[:, None, None] for x in statistics_of(settings))
    return (images.cpu() * std + mean).clamp(0, 1)


def train_config(settings: dict) -> TrainConfig:
    """The recipe of a run."""
    names = {field.name for field in dataclasses.fields(TrainConfig)}
    return TrainConfig(**{name: value for name, value in settings.items() if name in names})


def augment(settings: dict) -> Callable[[Tensor, torch.Generator], Tensor] | None:
    """The augmentation of a run, or None; black comes in where the images have a background."""
    mean, std = statistics_of(settings)
    fill = 0.0 if shape_of(settings)["in_channels"] == 3 else -mean[0] / std[0]
    return augmentation(shift=settings["shift"], flip=settings["flip"], fill=fill)


def loss_function(settings: dict, labels: Tensor) -> Callable[[Tensor, Tensor], Tensor] | None:
    """The loss of a run, (logits, labels) -> (); None for cross-entropy over all images alike.

    With "class_weights" an image weighs n / (K n_k), where n_k of the n images are of its class:
    each of the K classes counts alike, and the mean weight is 1.
    """
    if not settings.get("class_weights"):
        return None
    counts = torch.bincount(labels, minlength=shape_of(settings)["num_classes"])
    weights = len(labels) / (len(counts) * counts.clamp(min=1))  # (K,)

    def weighted(logits: Tensor, y: Tensor) -> Tensor:
        losses = F.cross_entropy(
            logits, y, reduction="none", label_smoothing=settings["label_smoothing"]
        )
        return (weights.to(y.device)[y] * losses).mean()

    return weighted
