"""Digits: a tiny ViT learns 1,438 images of 8 x 8 pixels, beside k-NN and a small CNN."""

from typing import Any

from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import digits_checksums
from experiments.machinery.small_vit import DIGITS
from vitbook.data import ImageSet, load_digits
from vitbook.models.vit import VisionTransformer

SIZES: dict = {"embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0}
MODEL: dict = {**DIGITS, **SIZES, "position_std": 0.5}
RECIPE: dict = {"steps": 550, "batch_size": 64, "warmup_steps": 50}  # 25 epochs
NEIGHBOURS = (1, 3, 5, 7)


def small_cnn() -> nn.Module:
    """Three 3 x 3 convolutions with batch normalisation, then the mean over the places."""
    layers = []
    for narrow, wide in ((1, 32), (32, 64), (64, 96)):
        layers += [nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
        if wide < 96:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10))


def nearest_neighbours() -> Outcome:
    """k chosen on the validation part; then all training images vote."""

    def accuracy(k: int, learn: ImageSet, answer: ImageSet) -> float:
        model = KNeighborsClassifier(k).fit(learn.images.flatten(1), learn.labels)
        return float(model.score(answer.images.flatten(1), answer.labels))

    learned, validation = load_digits("train"), load_digits("validation")
    k = max(NEIGHBOURS, key=lambda k: accuracy(k, learned, validation))
    metrics = {"test_accuracy": accuracy(k, load_digits("trainval"), load_digits("test"))}
    return Outcome({**metrics, "neighbours": k})


CLASSIFIER = Classifier(
    build=lambda model: VisionTransformer(**MODEL) if model == "vit" else small_cnn(),
    images=lambda part, scale: load_digits(part),  # few enough for a trial run, too
    recipe=RECIPE,
    learn_from="trainval",
)


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train on all training images, evaluate once on the test images."""
    if condition["model"] == "knn":
        return nearest_neighbours()
    return CLASSIFIER.run(condition, seed, log, scale, **chosen)


EXPERIMENT = Experiment(
    what="Handwritten digits of 8 x 8 pixels: a tiny ViT, a small CNN and k nearest neighbours, "
    "trained on the same 1,438 images and tested on the same 359.",
    chosen_on="287 validation images, a fixed part of the training side, after learning from the "
    "rest of it: the learning rate of the ViT and of the CNN, and k; for the final runs they are "
    "learned from too",
    metrics={**METRICS, "neighbours": "k, how many training images vote"},
    once=[{"model": "knn"}],
    conditions=[{"model": "vit"}, {"model": "cnn"}],
    seeds=range(5),
    run=run,
    data=lambda: digits_checksums("trainval", "test"),
    settings={"model": MODEL, "training": RECIPE, "neighbours": NEIGHBOURS},
    replay=({"model": "vit"}, 0),
    keep={"vit": ({"model": "vit"}, 0)},
    steps=lambda condition: 1 if condition["model"] == "knn" else RECIPE["steps"],
    choose=Choice(grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=CLASSIFIER.trial),
)
