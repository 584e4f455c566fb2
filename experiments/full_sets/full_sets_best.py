"""Whole MNIST, Fashion-MNIST and CIFAR-10: the best of `full_sets_arms`, in the same minutes."""

from experiments.full_sets.full_sets import SETTINGS, images_of
from experiments.full_sets.recipe import (
    AUGMENTED,
    COARSE,
    FINE,
    HALF,
    STANDS_FOR,
    epochs_of,
    fit,
    has_stem,
    stem_arguments,
    steps_of,
)
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import whole_checksums
from experiments.machinery.measures import ANSWERS, answers, parameters, probabilities, thin
from vitbook.training import evaluate

# The winners of `full_sets_arms`; a test compares. They stand here so that they count as code: with
# another winner, finished runs of this one are not taken for it.
BEST = {"mnist": f"{COARSE}, {AUGMENTED}", "fashion-mnist": COARSE, "cifar10": f"{FINE}, {HALF}"}
EVALUATIONS = 16
METRICS = {
    "test_accuracy": "share of the 10,000 official test images answered rightly, with the "
    "running average of the weights, as all that follows",
    **ANSWERS,
    "test_accuracy_raw": "share of the test images answered rightly with the last weights "
    "instead of their average",
    "validation_accuracy": "share of the validation images answered rightly, now and then",
    "validation_loss": "mean cross-entropy on them, in nats",
    "loss": "training loss, means over about a hundredth of the steps each; of smoothed labels "
    "where images are augmented",
    "parameters": "numbers that are learned, at the end",
    "epochs": "passes over the nine tenths of the training images that are learned from",
}


def tested(
    name: str, arm: str, steps: int, seed: int, log: Log, scale: float, *, learning_rate: float
) -> Outcome:
    """Train an arm on nine tenths of the training images, then test it once."""
    given: dict = {"learning_rate": learning_rate, "evaluations": EVALUATIONS}
    model, history = fit(name, arm, steps, seed, log, scale, **given)
    evaluated = [row for row in history if row["val_loss"] is not None]
    test = images_of(name, "test", scale)
    metrics = {
        **answers(probabilities(model.average, test.images), test.labels),
        "test_accuracy_raw": evaluate(model.model, *test).accuracy,
        "validation_accuracy": [round(row["val_accuracy"], 5) for row in evaluated],
        "validation_loss": [round(row["val_loss"], 5) for row in evaluated],
        "loss": thin([row["loss"] for row in history]),
        "parameters": parameters(model.model),
        "epochs": epochs_of(name, steps),
    }
    return Outcome(metrics, model.average.state_dict())


def settings_of_arms(arms: dict[str, str]) -> dict:
    """What a record keeps of the arms: models, and what the words in the names stand for."""
    return {
        "arms": arms,
        "models": {
            name: stem_arguments(name, arm) if has_stem(arm) else SETTINGS[name]
            for name, arm in arms.items()
        },
        **STANDS_FOR,
    }


def steps(condition: dict) -> int:
    name = condition["data"]
    return steps_of(name, BEST[name])


def run(condition: dict, seed: int, log: Log, scale: float, *, learning_rate: float) -> Outcome:
    name = condition["data"]
    given = {"learning_rate": learning_rate}
    return tested(name, BEST[name], steps(condition), seed, log, scale, **given)


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, learning_rate: float
) -> dict[str, float]:
    """Train with a rate on trial; the averaged weights are judged on the validation images."""
    name, updates = condition["data"], round(length * steps(condition))
    model, _ = fit(name, BEST[name], updates, seed, log, scale, learning_rate=learning_rate)
    result = evaluate(model, *images_of(name, "validation", scale))
    return {"validation_loss": result.loss, "validation_accuracy": result.accuracy}


EXPERIMENT = Experiment(
    what="MNIST, Fashion-MNIST and CIFAR-10: Vision Transformers of at most 210,000 parameters "
    "(CIFAR-10: 300,000) with the recipe that `full_sets_arms` found best for each, in the minutes "
    "of `full_sets`, tested on the official test images.",
    chosen_on='a tenth of each class of the training images ("validation"), which the models do '
    "not learn from: the arm in `full_sets_arms`, and the learning rate after half of the steps, "
    "with a seed of its own; the test images were looked at once, at the end of each run",
    metrics=METRICS,
    conditions=[{"data": name} for name in BEST],
    seeds=range(3),
    run=run,
    data=lambda: whole_checksums(*BEST, added=""),
    settings=settings_of_arms(BEST),
    replay=({"data": "mnist"}, 0),
    steps=steps,
    choose=Choice(grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial, finalists=0, limit=5),
)
