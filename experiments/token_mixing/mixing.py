"""Seven architectures with equally many parameters, and equal compute to train them.

What is equal follows from counts: `width_of` chooses each width by the parameters, `steps_of` the
number of updates by the multiplications of one image. Besides them a small CNN with the same
parameters and compute, logistic regression, and the nearest training image.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.baselines import linear, nearest
from experiments.machinery.classifier import Classifier
from experiments.machinery.experiment import Log, Outcome, scaled
from experiments.machinery.small_vit import LEARNED
from vitbook.data import ImageSet
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.small_cnn import SmallCNN

LAYERS: dict = {
    "ViT": ("attention", "attention"),
    "Mixer": ("mixer", "mixer"),
    "ConvMixer": ("conv", "conv", "conv"),
    "Mixer+ViT": ("mixer", "attention"),
    "ConvMixer+Mixer": ("conv", "mixer"),
    "uniform": ("uniform", "uniform"),
    "no mixing": ("none", "none"),
}
WHOLE, WIDTH = "ViT", 48  # the model that the others are made equal to
CNN, LINEAR, NEAREST = "small CNN", "logistic regression", "nearest neighbour"
EQUAL = (*LAYERS, CNN)  # parameters and compute as the ViT has
HEADS = 2
POSITIONS = ("attention", "uniform", "none")  # layers that do not know where a token stands
CONTROLS = ("uniform", "none")  # without queries and keys: their parameters are in the MLP
TOLERANCE = 0.05  # of the parameters
POINTS = 6  # of a curve
LOOKS = 500  # validation images for each of them
CURVES = {
    "curve_steps": "updates after which a model was asked",
    "curve": f"share of {LOOKS:,} validation images answered correctly by then; chooses nothing",
}


@dataclass(frozen=True)
class Task:
    """What is to be learned, and the budget, as the ViT spends it.

    Args:
        images: image_size, patch_size, in_channels and num_classes.
        kernel_size: of ConvMixer's neighbourhoods, in tokens.
        steps: updates of the ViT.
        batch_size: images for each update, of every model.
    """

    images: tuple[int, int, int, int]
    kernel_size: int
    steps: int
    batch_size: int

    @property
    def model(self) -> dict[str, Any]:
        """The arguments of a model that come from the images."""
        names = ("image_size", "patch_size", "in_channels", "num_classes")
        return dict(zip(names, self.images, strict=True))

    @property
    def recipe(self) -> dict:
        """Of a `Classifier`."""
        return {"steps": self.steps, "batch_size": self.batch_size, "warmup_steps": 40}


def options_of(task: Task, model: str, width: float) -> dict:
    """The arguments of a `Hybrid`, or the widths of the CNN."""
    if model == CNN:
        return {"widths": [round(width * 2**i) for i in range(4)]}
    layers = LAYERS[model]
    return {
        "embed_dim": int(width),
        "layers": list(layers),
        "num_heads": HEADS,
        "mlp_ratio": 3.0 if layers[0] in CONTROLS else 2.0,
        "kernel_size": task.kernel_size,
        "stem": "normed" if layers[0] == "conv" else "patches",
        **(LEARNED if set(layers) & set(POSITIONS) else {"positions": "none"}),
    }


def made(task: Task, model: str, width: float) -> nn.Module:
    """A model of some width."""
    sizes, options = task.model, options_of(task, model, width)
    if model == CNN:
        sizes = {name: sizes[name] for name in ("in_channels", "num_classes")}
        return SmallCNN(**sizes, **options)
    return Hybrid(**sizes, **options)


@cache
def parameters_of(task: Task, model: str, width: float) -> int:
    """How many numbers a model of some width learns."""
    with torch.device("meta"):
        return count_parameters(made(task, model, width))


@cache
def width_of(task: Task, model: str) -> float:
    """The width with which a model has about as many parameters as the ViT.

    Raises:
        ValueError: no width comes near enough.
    """
    if model == WHOLE:
        return WIDTH
    target = parameters_of(task, WHOLE, WIDTH)
    widths = [w / 4 for w in range(16, 81)] if model == CNN else list(range(16, 161, 2))
    above = bisect_left(widths, target, key=lambda w: parameters_of(task, model, w))
    near = widths[max(0, above - 1) : above + 1]
    off = {w: abs(parameters_of(task, model, w) / target - 1) for w in near}
    width = min(off, key=off.__getitem__)
    if off[width] > TOLERANCE:
        raise ValueError(f"{model} has no width with about {target} parameters: {off[width]:.1%}")
    return width


@cache
def multiplies_of(task: Task, model: str) -> int:
    """Multiplications for one image."""
    size, _, channels, _ = task.images
    with torch.device("meta"):
        built = made(task, model, width_of(task, model)).eval()
        return count_multiplies(built, torch.empty(1, channels, size, size))


def steps_of(task: Task, model: str, compute: float = 1.0) -> int:
    """The number of updates whose multiplications are those of the ViT's, times `compute`."""
    if model == LINEAR:
        return round(compute * task.steps)  # nearly free; as many looks at images
    whole, own = multiplies_of(task, WHOLE), multiplies_of(task, model)
    return round(compute * task.steps * whole / own)


def build(task: Task, model: str) -> nn.Module:
    """A model before training."""
    if model == LINEAR:
        size, _, channels, classes = task.images
        return linear(channels * size**2, classes)
    return made(task, model, width_of(task, model))


def classifier(task: Task, images: Callable[[str, float], ImageSet]) -> Classifier:
    """Builds, trains and measures the models of a task, by the condition {"model", "compute"}."""
    return Classifier(
        build=lambda model, compute=1: build(task, model),
        images=images,
        recipe=task.recipe,
        settings=lambda condition: {"steps": steps_of(task, **condition)},
    )


def trained(
    of: Classifier, condition: dict, seed: int, log: Log, scale: float, **chosen: Any
) -> tuple[nn.Module, dict]:
    """One model, and what was measured, the curve of `CURVES` with it."""
    images, labels = of.images("validation", scale)
    spread = torch.arange(0, len(labels), max(1, len(labels) // LOOKS))[:LOOKS]
    every = max(1, scaled(of.steps(condition), scale) // POINTS)
    watching, rows = of.watched(ImageSet(images[spread], labels[spread]), every)
    model, losses = watching.fit(condition, seed, log, scale, **chosen)
    metrics = of.measure(model, losses, scale)
    metrics["curve_steps"] = [row["step"] for row in rows]
    metrics["curve"] = [round(row["val_accuracy"], 5) for row in rows]
    return model, metrics


def run(
    of: Classifier, condition: dict, seed: int, log: Log, scale: float, **chosen: Any
) -> Outcome:
    """Train one model and test it; or ask the nearest image."""
    if condition["model"] == NEAREST:
        return nearest(of.images, scale)
    _, metrics = trained(of, condition, seed, log, scale, **chosen)
    return Outcome(metrics)


def sizes(task: Task) -> dict[str, dict]:
    """For each model how it is built, and what was counted: for a record's settings."""
    return {
        model: {
            **options_of(task, model, width_of(task, model)),
            "parameters": parameters_of(task, model, width_of(task, model)),
            "multiplies": multiplies_of(task, model),
            "steps": steps_of(task, model),
        }
        for model in EQUAL
    }


def shifted(images: Tensor, by: int) -> Tensor:
    """Everything that many pixels to the right and down; the border's own pixels come in."""
    side = images.shape[-1]
    padded = nn.functional.pad(images, (by, 0, by, 0), mode="replicate")
    return padded[..., :side, :side]
