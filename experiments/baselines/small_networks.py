"""What else a ViT has to beat: a small MLP and a small CNN, on the images of `baselines`.

The 10,000 images of MNIST, which `baselines` has not, are also given to its two classifiers.
"""

from functools import partial
from typing import Any

from torch import nn

from experiments.machinery.baselines import linear, mlp, nearest
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier, trial_by
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import checksums, digits_checksums, digits_set, image_set
from vitbook.data import ImageSet
from vitbook.models.small_cnn import SmallCNN

DIGITS, CLOTHES, NUMBERS = "digits", "10,000 of fashion-mnist", "10,000 of mnist"
SIZES = {DIGITS: 8, CLOTHES: 28, NUMBERS: 28}
BATCH = {DIGITS: 64, CLOTHES: 50, NUMBERS: 50}
STEPS = {DIGITS: (300, 1200), CLOTHES: (500, 2000), NUMBERS: (1000,)}
HIDDEN = 64
WIDTHS = {DIGITS: (16, 32, 64), CLOTHES: (8, 16, 32), NUMBERS: (8, 16, 32)}
LINEAR, MLP, CNN = "logistic regression", "MLP", "small CNN"
NEAREST = {"data": NUMBERS, "model": "nearest neighbour"}


def images_of(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """Normalized images (n, 1, H, W) and labels (n,), as `baselines` takes them."""
    if name != DIGITS:
        return image_set(name.removeprefix("10,000 of "), part, scale)
    return digits_set(part, scale)


def build(data: str, model: str, steps: int) -> nn.Module:
    if model == CNN:
        return SmallCNN(in_channels=1, num_classes=10, widths=WIDTHS[data])
    pixels = SIZES[data] ** 2
    return mlp(pixels, HIDDEN, 10) if model == MLP else linear(pixels, 10)


CLASSIFIERS = {
    name: Classifier(
        build=build,
        images=partial(images_of, name),
        recipe={"batch_size": BATCH[name]},
        settings=lambda condition: {
            "steps": condition["steps"],
            "warmup_steps": condition["steps"] // 10,
        },
        learn_from="trainval" if name == DIGITS else "train",
    )
    for name in SIZES
}


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    of = CLASSIFIERS[condition["data"]]
    if condition == NEAREST:
        return nearest(of.images, scale)
    return of.run(condition, seed, log, scale, **chosen)


EXPERIMENT = Experiment(
    what="An MLP with one hidden layer and a small CNN, on the very images on which small ViTs are "
    "trained and tested in this book, for about as many steps; on 10,000 images of "
    "MNIST also logistic regression and the nearest image.",
    chosen_on="validation images: the learning rate of each network for each set and number of "
    "steps, after half of the steps, with a seed of its own; the sizes were not searched for",
    metrics=METRICS,
    conditions=[
        {"data": name, "model": model, "steps": steps}
        for name in SIZES
        for model in (MLP, CNN, *([LINEAR] if name == NUMBERS else []))
        for steps in STEPS[name]
    ],
    once=[NEAREST],
    seeds=range(3),
    run=run,
    data=lambda: {
        **digits_checksums("trainval", "test"),
        **checksums("fashion-mnist"),
        **checksums("mnist"),
    },
    settings={
        "hidden": HIDDEN,
        "widths": WIDTHS,
        "batch_size": BATCH,
        "model": "MLP: pixels, one hidden layer, GELU, ten logits; small CNN: "
        "vitbook.models.small_cnn.SmallCNN; the loop and the AdamW of the ViTs",
    },
    replay=({"data": DIGITS, "model": MLP, "steps": STEPS[DIGITS][0]}, 0),
    steps=lambda condition: condition.get("steps", 1),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=trial_by("data", CLASSIFIERS), finalists=0
    ),
)
