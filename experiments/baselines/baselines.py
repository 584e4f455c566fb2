"""What a ViT has to beat: logistic regression and the nearest neighbour, on the same images."""

from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.baselines import linear, nearest_answers
from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import (
    checksums,
    digits_checksums,
    digits_set,
    image_set,
    whole_checksums,
    whole_set,
)
from experiments.machinery.measures import parameters
from vitbook.data import ImageSet
from vitbook.training import TrainConfig, evaluate, train

# The images of `digits`; of `pooling` and `recipe`; and of `full_sets`.
WHOLE = ("mnist", "fashion-mnist", "cifar10")
SMALL = "10,000 of fashion-mnist"
SETS = ("digits", SMALL, *WHOLE)
PARTS = {  # to learn from and to choose on in the trials; then to learn from, and to test on
    "digits": ("train", "validation", "trainval", "test"),
    SMALL: ("train", "validation", "train", "test"),
    **dict.fromkeys(WHOLE, ("train", "validation", "train", "test")),
}
EPOCHS = {"digits": 50, SMALL: 20, **dict.fromkeys(WHOLE, 5)}
RATES, FURTHER = (1e-3, 3e-3, 1e-2), 3.0  # where the least or the largest is best: further that way
BATCH = 100
CHOOSING = 100  # the seed of the trials
MOVED = ("digits", SMALL)  # their test images are also mirrored, and shifted by one pixel


def images_of(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, C, H, W) and labels (n,), as the other experiments take them."""
    if name == SMALL:
        return image_set("fashion-mnist", part, scale)
    return digits_set(part, scale) if name == "digits" else whole_set(name, part, scale)


def logistic_regression(
    name: str,
    learn: ImageSet,
    rate: float,
    seed: int,
    log: Log = lambda loss: None,
    scale: float = 1.0,
) -> nn.Module:
    """W x + b of the pixels x of an image, from zero, by the loop that trains the ViTs."""
    model = linear(learn.images[0].numel(), 10)
    batch = min(BATCH, len(learn.labels))
    steps = scaled(EPOCHS[name] * (len(learn.labels) // batch), scale)
    config = TrainConfig(
        steps=steps, batch_size=batch, warmup_steps=0, learning_rate=rate, seed=seed
    )
    train(model, *learn, config, loss_function=logged(log), progress=False)
    return model


def chosen_rate(
    name: str, learn: ImageSet, validation: ImageSet, scale: float
) -> tuple[float, list]:
    """The learning rate with the least loss on the validation images, and all that was tried."""
    tried: dict[float, float] = {}

    def loss(rate: float) -> float:
        if rate not in tried:
            model = logistic_regression(name, learn, rate, CHOOSING, scale=scale)
            tried[rate] = evaluate(model, *validation).loss
        return tried[rate]

    best = min(RATES, key=loss)
    while best in (min(tried), max(tried)) and len(tried) < 8:
        loss(float(f"{best / FURTHER if best == min(tried) else best * FURTHER:.1g}"))
        best = min(tried, key=loss)
    return best, [[rate, round(tried[rate], 5)] for rate in sorted(tried)]


def by_class(answers: Tensor, labels: Tensor) -> list[float]:
    """For each class the share of its images that is answered correctly."""
    correct = (answers == labels).double()
    return [round(correct[labels == label].mean().item(), 5) for label in labels.unique()]


def shifted(images: Tensor) -> Tensor:
    """One pixel to the right; what comes in at the left is the border's own column."""
    return torch.cat([images[..., :1], images[..., :-1]], dim=-1)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Choose on validation images, learn, test once."""
    name = condition["data"]
    for_trials, for_choice, to_learn, to_test = PARTS[name]
    learn, (images, labels) = images_of(name, to_learn, scale), images_of(name, to_test, scale)
    if condition["model"] == "nearest neighbour":
        answers = nearest_answers(learn, images)
        metrics: dict[str, Any] = {"parameters": 0}
        if name in MOVED:
            for how, moved in (("mirrored", images.flip(-1)), ("shifted", shifted(images))):
                there = nearest_answers(learn, moved)
                metrics[f"{how}_accuracy"] = (there == labels).double().mean().item()
                metrics[f"{how}_by_class"] = by_class(there, labels)
    else:
        trial, validation = images_of(name, for_trials, scale), images_of(name, for_choice, scale)
        rate, tried = chosen_rate(name, trial, validation, scale)
        model = logistic_regression(name, learn, rate, seed, log, scale)
        with torch.no_grad():
            answers = model(images).argmax(dim=1)
        metrics = {
            "parameters": parameters(model),
            "learning_rate": rate,
            "learning_rates_tried": tried,
            "train_accuracy": evaluate(model, *learn).accuracy,
        }
    metrics["test_accuracy"] = (answers == labels).double().mean().item()
    metrics["by_class"] = by_class(answers, labels)
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="Logistic regression on the pixels, and the label of the nearest training image, on the "
    "very images on which the ViTs of Part II are trained and tested.",
    chosen_on="the validation images of each set: the learning rate of the logistic regression, "
    "with a seed of its own; where the least or the largest was the best, more were tried; the "
    "nearest neighbour has nothing to choose",
    metrics={
        "test_accuracy": "share of the test images answered correctly",
        "train_accuracy": "share of the training images answered correctly",
        "by_class": "the accuracy on the test images of each class",
        "mirrored_accuracy": "accuracy when the test images are mirrored left to right, and the "
        "training images are not",
        "mirrored_by_class": "the same, class by class",
        "shifted_accuracy": "accuracy when the test images are shifted by one pixel to the right",
        "shifted_by_class": "the same, class by class",
        "parameters": "numbers that are learned",
        "learning_rate": "chosen on validation images",
        "learning_rates_tried": "pairs of a learning rate and its validation loss, in nats",
    },
    conditions=[{"data": name, "model": "logistic regression"} for name in SETS],
    once=[{"data": name, "model": "nearest neighbour"} for name in SETS],
    seeds=range(3),
    run=run,
    data=lambda: {
        **digits_checksums("trainval", "test"),
        **checksums("fashion-mnist"),
        **whole_checksums(*WHOLE),
    },
    settings={
        "parts": PARTS,
        "epochs": EPOCHS,
        "batch_size": BATCH,
        "model": "one linear layer that starts from zero; the loop and the AdamW of the ViTs",
        "distance": "Euclidean, on normalised pixels",
    },
    replay=({"data": "digits", "model": "logistic regression"}, 0),
)
