"""Four times the compute: the ViT on the garments, and two models without attention on pointer."""

from typing import Any

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.token_mixing import mixing, mixing_pictures, mixing_pointer
from experiments.token_mixing.mixing import CURVES, steps_of

LONGER = 4
TASKS = {"pictures": mixing_pictures, "pointer": mixing_pointer}
MODELS = {"pictures": ("ViT",), "pointer": ("Mixer", "uniform")}


def longer(condition: dict) -> dict:
    """The condition as the classifier of the task knows it."""
    return {"model": condition["model"], "compute": LONGER}


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    of = TASKS[condition["task"]].CLASSIFIER
    _, metrics = mixing.trained(of, longer(condition), seed, log, scale, **chosen)
    return Outcome(metrics)


def trial(condition: dict, seed: int, log: Log, scale: float, **tried: Any) -> dict[str, float]:
    of = TASKS[condition["task"]].CLASSIFIER
    return of.trial(longer(condition), seed, log, scale, **tried)


EXPERIMENT = Experiment(
    what=f"Models that were behind in `mixing_pictures` and `mixing_pointer`, with {LONGER} "
    "times the compute.",
    chosen_on="validation images: the learning rate of each model, for the longer run anew",
    metrics={**METRICS, **CURVES},
    conditions=[{"task": task, "model": model} for task in TASKS for model in MODELS[task]],
    seeds=range(3),
    run=run,
    data=lambda: mixing_pictures.EXPERIMENT.data() | mixing_pointer.EXPERIMENT.data(),
    settings={
        "compute": LONGER,
        "steps": {
            task: {model: steps_of(of.TASK, model, LONGER) for model in MODELS[task]}
            for task, of in TASKS.items()
        },
    },
    replay=({"task": "pointer", "model": "uniform"}, 0),
    steps=lambda condition: TASKS[condition["task"]].CLASSIFIER.steps(longer(condition)),
    choose=Choice(grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=trial, length=0.2, finalists=0),
)
