"""Whole MNIST, Fashion-MNIST and CIFAR-10: the best of `full_sets_arms`, in the same minutes."""

from experiments.full_sets.full_sets import images_of
from experiments.full_sets.recipe import fit, steps_of
from experiments.full_sets.tested import BEST, METRICS, checksums, settings_of_arms, tested
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome
from vitbook.training import evaluate


def steps(condition: dict) -> int:
    """How many updates a run makes."""
    name = condition["data"]
    return steps_of(name, BEST[name])


def run(condition: dict, seed: int, log: Log, scale: float, *, learning_rate: float) -> Outcome:
    """Train on nine tenths of the training images, test once on the official test images."""
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
    data=checksums,
    settings=settings_of_arms(BEST),
    replay=({"data": "mnist"}, 0),
    steps=steps,
    choose=Choice(grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial, finalists=0, limit=5),
)
