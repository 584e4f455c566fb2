"""What does a recipe bring? Two bundles of ingredients, after few passes over the images and many.

One bundle steers the steps: warm-up, cosine and clipping. The other makes the task harder: shifts,
mirrors and label smoothing; in the short training each of its three is also tried alone.
"""

from typing import Any

import torch.nn.functional as F
from torch import nn

from experiments.machinery.baselines import linear, mlp, nearest_accuracy
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import BINS, calibration_error, probabilities, reliability
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import STATISTICS, ImageSet, augmentation
from vitbook.models.vit import VisionTransformer

SET = "fashion-mnist"
IMAGES = 4000  # to learn from: the first ones of the 10,000
MODEL: dict = {**SMALL, **LEARNED, "image_size": 28, "patch_size": 7, "depth": 2, "num_heads": 4}
SHORT, LONG = 500, 3000  # steps: 6 passes over the images, and 37
RECIPE: dict = {"batch_size": 50, "weight_decay": 0.05}
SHIFT, FLIP, SMOOTHING = {"shift": 1}, {"flip": True}, {"label_smoothing": 0.1}
RECIPES: dict[str, dict] = {  # each with warm-up, cosine and clipping, but for "constant"
    "schedule": {},
    "constant": {},
    "shift": {"augmentation": SHIFT},
    "flip": {"augmentation": FLIP},
    "smoothing": SMOOTHING,
    "all": {"augmentation": {**SHIFT, **FLIP}, **SMOOTHING},
}
IN_BOTH = ("schedule", "constant", "all")  # the others in the short training alone
HIDDEN = 64  # of the MLP
OPPONENTS = [{"model": model, "steps": LONG} for model in ("logistic regression", "MLP")]
NEAREST = {"model": "nearest neighbour"}


def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """As `image_set`, with the first images only to learn from."""
    found = image_set(SET, part, scale)
    return ImageSet(*(x[:IMAGES] for x in found)) if part == "train" else found


def build(steps: int, recipe: str = "", model: str = "ViT") -> nn.Module:
    if model == "ViT":
        return VisionTransformer(**MODEL)
    return mlp(28 * 28, HIDDEN, 10) if model == "MLP" else linear(28 * 28, 10)


def constant(step: int, total_steps: int, warmup_steps: int) -> float:
    """The learning rate is the same in every step."""
    return 1.0


def settings(condition: dict) -> dict:
    """What `TrainConfig` takes, for a recipe or for an opponent."""
    recipe, steps = condition.get("recipe", ""), condition["steps"]
    plain = {"steps": steps, "warmup_steps": steps // 10}
    if recipe == "constant":
        return {**plain, "warmup_steps": 0, "clip_norm": None}
    return {**plain, **{k: v for k, v in RECIPES.get(recipe, {}).items() if k != "augmentation"}}


def options(condition: dict) -> dict:
    """What `train` takes besides."""
    recipe = condition.get("recipe", "")
    given: dict = {}
    if recipe == "constant":
        given["schedule"] = constant
    if changes := RECIPES.get(recipe, {}).get("augmentation"):
        mean, std = STATISTICS[SET]
        given["augment"] = augmentation(**changes, fill=-mean[0] / std[0])  # the value of black
    return given


CLASSIFIER = Classifier(
    build=build, images=images_of, recipe=RECIPE, settings=settings, options=options
)


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model; test its answers and how sure it is of them."""
    test = images_of("test", scale)
    if condition == NEAREST:
        return Outcome({"test_accuracy": nearest_accuracy(images_of("train", scale), test)})
    model, losses = CLASSIFIER.fit(condition, seed, log, scale, **chosen)
    given = probabilities(model, test.images)  # (n, K)
    table = reliability(given, test.labels)
    metrics = {
        **CLASSIFIER.measure(model, losses, scale),
        "test_loss": F.nll_loss(given.log(), test.labels).item(),
        "confidence": given.amax(dim=1).mean().item(),
        "calibration_error": calibration_error(table),
        "reliability": table,
    }
    return Outcome(metrics)


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
) -> dict:
    """Try a learning rate. Long trainings overfit: errors decide, for the loss would stop early."""
    found = CLASSIFIER.trial(condition, seed, log, scale, length=length, **tried)
    return {"validation_error": 1 - found["validation_accuracy"], **found}


def conditions() -> list[dict]:
    short = [{"recipe": recipe, "steps": SHORT} for recipe in RECIPES]
    long = [{"recipe": recipe, "steps": LONG} for recipe in IN_BOTH]
    return short + long + OPPONENTS


EXPERIMENT = Experiment(
    what="A small ViT learns 4,000 images of Fashion-MNIST, in 6 passes over them and in 37: with "
    "warm-up, cosine and clipping, without these, and with shifts, mirrors and label smoothing in "
    "addition; in 6 passes also with one of the three alone; beside it logistic regression, an MLP "
    "and the nearest image; tested on the official 10,000.",
    chosen_on="validation images that no run learns from: the learning rate of each recipe for "
    "each number of steps, and of each opponent, with the fewest errors at full length, with a "
    "seed of its own; the strength of each ingredient was not searched for",
    metrics={
        **METRICS,
        "confidence": "mean over the test images of the probability of the answer",
        "calibration_error": "expected calibration error on the test images: mean distance between "
        f"confidence and accuracy, {BINS} even bins",
        "reliability": "for each bin of confidence: answers, sum of their confidences, right ones",
    },
    conditions=conditions(),
    once=[NEAREST],
    seeds=range(5),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "images": IMAGES,
        "training": RECIPE,
        "recipes": RECIPES,
        "hidden": HIDDEN,
    },
    replay=({"recipe": "all", "steps": SHORT}, 0),
    steps=lambda condition: condition.get("steps", 1),
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)},
        trial=trial,
        by="validation_error",
        length=1.0,
        finalists=0,
    ),
)
