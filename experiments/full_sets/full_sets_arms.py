"""Which recipe makes most of five minutes on whole data sets? A search, on validation images."""

from experiments.full_sets.full_sets import SETTINGS, images_of
from experiments.full_sets.recipe import (
    ARMS,
    COST,
    STANDS_FOR,
    epochs_of,
    fit,
    has_stem,
    stem_arguments,
    steps_of,
)
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import whole_checksums
from experiments.machinery.measures import parameters, thin
from vitbook.training import evaluate

MINUTES = 0.5  # in those of `full_sets`
LEARNING_RATE = 2e-3
SEED = 100  # none that a run of another record uses
PARTS = ("train", "validation")  # nobody looks at the test images


def steps(condition: dict) -> int:
    return steps_of(condition["data"], condition["arm"], MINUTES)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one arm on nine tenths of the training images, judge it on the tenth left out."""
    name = condition["data"]
    model, history = fit(
        name, condition["arm"], steps(condition), seed, log, scale, learning_rate=LEARNING_RATE
    )
    validation = images_of(name, "validation", scale)
    last, averaged = evaluate(model.model, *validation), evaluate(model, *validation)
    metrics = {
        "validation_accuracy": last.accuracy,
        "validation_loss": last.loss,
        "averaged_accuracy": averaged.accuracy,
        "averaged_loss": averaged.loss,
        "loss": thin([row["loss"] for row in history]),
        "parameters": parameters(model.model),
        "epochs": epochs_of(name, steps(condition)),
    }
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="Five recipes for small Vision Transformers of at most 210,000 parameters (CIFAR-10: "
    "300,000) on whole MNIST, Fashion-MNIST and CIFAR-10, each in about five minutes of one core: "
    "patches as in `full_sets`, large patches first, convolutional stems with few and with many "
    "tokens, half of the tokens, augmentation.",
    chosen_on='a tenth of each class of the training images ("validation"), which the models do '
    "not learn from, and which this record is about: it chooses the arm for `full_sets_best`; one "
    "seed; nothing was tested",
    metrics={
        "validation_accuracy": "share of the validation images answered rightly at the end",
        "validation_loss": "mean cross-entropy on them, in nats",
        "averaged_accuracy": "the same share with the running average of the weights",
        "averaged_loss": "mean cross-entropy with the running average of the weights, in nats",
        "loss": "training loss, means over about a hundredth of the steps each; in the augmented "
        "arm, of smoothed labels",
        "parameters": "numbers that are learned, at the end",
        "epochs": "passes over the nine tenths of the training images that are learned from",
    },
    conditions=[{"data": name, "arm": arm} for name in SETTINGS for arm in ARMS[name]],
    seeds=(SEED,),
    run=run,
    data=lambda: whole_checksums(*SETTINGS, parts=PARTS, added=""),
    settings={
        "plain": SETTINGS,
        **STANDS_FOR,
        "stems": {
            name: {arm: stem_arguments(name, arm) for arm in arms if has_stem(arm)}
            for name, arms in ARMS.items()
        },
        "learning_rate": LEARNING_RATE,
        "cost": COST,
        "steps": {n: {arm: steps_of(n, arm, MINUTES) for arm in arms} for n, arms in ARMS.items()},
    },
    replay=({"data": "fashion-mnist", "arm": ARMS["fashion-mnist"][-1]}, SEED),
    steps=steps,
)
