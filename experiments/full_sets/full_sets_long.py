"""Whole MNIST, Fashion-MNIST, CIFAR-10: `full_sets_best` augmented, several times as long."""

from dataclasses import replace

from experiments.full_sets import full_sets_best
from experiments.full_sets.full_sets_best import BEST, settings_of_arms, tested
from experiments.full_sets.recipe import augmented, steps_of
from experiments.machinery.experiment import Log, Outcome

# A search in short trainings cannot ask whether to augment: in the record `recipe` augmentation
# costs in a short training and brings in a long one.
ARMS: dict = {name: augmented(arm) for name, arm in BEST.items()}
MINUTES = {"mnist": 3, "fashion-mnist": 4, "cifar10": 6}  # in those of `full_sets`
# What `full_sets_best` chose; a test compares.
RATES = {"mnist": 4e-3, "fashion-mnist": 2e-3, "cifar10": 2e-3}


def steps(condition: dict) -> int:
    name = condition["data"]
    return steps_of(name, ARMS[name], MINUTES[name])


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    name, updates = condition["data"], steps(condition)
    return tested(name, ARMS[name], updates, seed, log, scale, learning_rate=RATES[name])


EXPERIMENT = replace(
    full_sets_best.EXPERIMENT,
    what="MNIST, Fashion-MNIST and CIFAR-10: the models of `full_sets_best`, with augmentation, "
    "trained three, four and six times as long, tested on the official test images.",
    chosen_on='a tenth of each class of the training images ("validation"), which the models do '
    "not learn from: the arm in `full_sets_arms` and the learning rate in `full_sets_best`, in "
    "shorter trainings, those of Fashion-MNIST and CIFAR-10 without augmentation; that all are "
    "augmented follows from the record `recipe`; the test images were looked at once, at the end "
    "of each run",
    run=run,
    settings={**settings_of_arms(ARMS), "minutes": MINUTES, "learning_rates": RATES},
    steps=steps,
    choose=None,
)
