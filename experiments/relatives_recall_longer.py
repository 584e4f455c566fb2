"""`relatives_recall` with four times the compute, for the models that attend."""

from __future__ import annotations

from experiments import relatives_recall as whole
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.relatives import WHOLE
from experiments.relatives_recall import IMAGES, METRICS, NORMED, fit, images_of, judged, measured
from experiments.relatives_recall_changed import LONGER

MODELS = (WHOLE, NORMED, "Mixer+ViT")


def steps(condition: dict) -> int:
    return whole.steps_of(condition["model"], LONGER * whole.STEPS)


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model and test it."""
    model, losses = fit(
        condition["model"], seed, log, scale, steps=steps(condition), of={}, **chosen
    )
    return measured(model, losses, scale, {})


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """Train one model for a shorter time, and judge it on validation images."""
    made = scaled(steps(condition), length)
    return judged(
        fit(condition["model"], seed, log, scale, steps=made, of={}, **tried)[0], scale, {}
    )


EXPERIMENT = Experiment(
    what=f"Does every seed of a model that attends learn recall, with {LONGER} times the compute "
    "of `relatives_recall`? (`relatives_recall_changed` has models without attention for as long.)",
    chosen_on="validation images: the learning rate of each model, anew for the longer run",
    metrics=METRICS,
    conditions=[{"model": model} for model in MODELS],
    seeds=range(5),
    run=run,
    data=lambda: {f"recall, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={"compute": LONGER, "steps": {m: steps({"model": m}) for m in MODELS}},
    replay=({"model": WHOLE}, 0),
    steps=steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=trial, length=0.25, finalists=0, limit=4
    ),
)
