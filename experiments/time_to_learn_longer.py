"""`time_to_learn` with five times the budget, for models that did not learn within it."""

from __future__ import annotations

from experiments import time_to_learn as learn
from experiments.machinery.experiment import Experiment, Outcome
from experiments.relatives_recall import WIDE
from vitbook.book.records import load_record

TIMES = 5
MODELS = {
    "place": ("Mixer", "uniform"),
    "label": ("Mixer", WIDE, "gated MLP", "address", "uniform"),
}
CONDITIONS = [
    {"task": task, "model": model, "times": TIMES} for task in MODELS for model in MODELS[task]
]


def rate_of(condition: dict) -> float:
    """The rate that the search of `time_to_learn` found for the model."""
    asked = {"task": condition["task"], "model": condition["model"]}
    winners = load_record("time_to_learn").choice["winners"]
    (rate,) = (one["value"] for one in winners if one["condition"] == asked)
    return rate


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train twenty models of one kind."""
    return learn.run(condition, seed, log, scale, learning_rate=rate_of(condition))


EXPERIMENT = Experiment(
    what=f"`time_to_learn` with {TIMES} times the budget of multiplications, for models of which "
    "some, or all, had not 95 % of the answers right within it.",
    chosen_on="nothing: the rates of `time_to_learn`",
    metrics=learn.METRICS,
    conditions=CONDITIONS,
    seeds=(0,),
    run=run,
    data=learn.EXPERIMENT.data,
    settings={
        "times": TIMES,
        "rates": {
            task: {m: rate_of({"task": task, "model": m}) for m in MODELS[task]} for task in MODELS
        },
        "longest": {
            task: {c["model"]: learn.steps(c) for c in CONDITIONS if c["task"] == task}
            for task in MODELS
        },
    },
    replay=({"task": "place", "model": "Mixer", "times": TIMES}, 0),
    steps=learn.steps,
)
