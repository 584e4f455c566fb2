"""`relatives_recall` with a fixed neighbour for a partner, with fewer patches, and for longer."""

from __future__ import annotations

from experiments import relatives_recall as whole
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.relatives import CNN, LINEAR
from experiments.relatives_recall import IMAGES, METRICS, WIDE, fit, images_of, judged, measured

LONGER = 4  # times the compute
CHANGES = {
    "neighbour": "a patch is asked for the colour of its neighbour on the right, not of the one "
    "that its dot names",
    "four": "four patches in an image, not 16",
    "longer": f"{LONGER} times the compute",
}
OF = {"neighbour": {"partner": "right"}, "four": {"side": 2}, "longer": {}}
MODELS = {
    "neighbour": ("ViT", "Mixer", "ConvMixer", "uniform", "no mixing", CNN, LINEAR),
    "four": ("ViT", "Mixer", "ConvMixer", "uniform"),
    "longer": (WIDE, "Mixer"),
}


def steps(condition: dict) -> int:
    change = condition["change"]
    side = OF[change].get("side", whole.SIDE)
    compute = LONGER if change == "longer" else 1
    return whole.steps_of(condition["model"], compute * whole.STEPS, side)


def trained(condition: dict, seed: int, log, scale: float, length: float, **chosen):
    made, of = scaled(steps(condition), length), OF[condition["change"]]
    return fit(condition["model"], seed, log, scale, steps=made, of=of, **chosen)


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model and test it."""
    model, losses = trained(condition, seed, log, scale, 1.0, **chosen)
    return measured(model, losses, scale, OF[condition["change"]])


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """Train one model for a shorter time, and judge it on validation images."""
    model, _ = trained(condition, seed, log, scale, length, **tried)
    return judged(model, scale, OF[condition["change"]])


EXPERIMENT = Experiment(
    what="What turns when `relatives_recall` is changed: the partner a fixed neighbour, or four "
    "patches instead of 16, or four times the compute.",
    chosen_on="validation images: the learning rate of each model, anew for each change",
    metrics=METRICS,
    conditions=[
        {"change": change, "model": model} for change in CHANGES for model in MODELS[change]
    ],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"recall, {change}, {part}": checksum(*images_of(part, **OF[change]))
        for change in CHANGES
        for part in IMAGES
    },
    settings={
        "changes": CHANGES,
        "steps": {c: {m: steps({"change": c, "model": m}) for m in MODELS[c]} for c in CHANGES},
    },
    replay=({"change": "four", "model": "ViT"}, 0),
    steps=steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=trial, length=0.25, finalists=0, limit=4
    ),
)
