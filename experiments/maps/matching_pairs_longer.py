"""Does the uniform control of `matching_pairs` catch up when it trains for longer?"""

from functools import cache
from typing import Any

from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.measures import thin
from experiments.maps import matching_pairs as pairs
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate

MIXING = "uniform"
TIMES = 8  # as many updates as the ViT of `matching_pairs`; its control has twice as many
TRIAL = 4  # the rate is searched for a training of so many, in half of its updates
POINTS = 8  # of a curve
KNOWN = 2_000  # training images that a trained model is asked about

images = cache(pairs.images)


def steps(condition: dict) -> int:
    return condition["times"] * pairs.RECIPE["steps"]


def fitted(
    condition: dict, seed: int, log: Log, scale: float, *, length: float = 1.0, **chosen: Any
) -> tuple[VisionTransformer, list[float], list[dict]]:
    """The trained control, its losses, and what it said of validation images on the way."""
    validation, model = images("validation", scale), pairs.build(MIXING, seed)
    rows: list[dict] = []
    updates = scaled(steps(condition), length * scale)
    history = pairs.fit(
        model,
        images("train", scale),
        updates,
        seed,
        log,
        scale,
        evaluate_on=(validation.images, validation.labels),
        evaluate_every=max(1, updates // POINTS),
        report=rows.append,
        **chosen,
    )
    return model, [row["loss"] for row in history], rows


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    model, losses, rows = fitted(condition, seed, log, scale, **chosen)
    known = images("train", scale)
    result = evaluate(model, images("test", scale).images, images("test", scale).labels)
    return Outcome(
        {
            "test_accuracy": result.accuracy,
            "test_loss": result.loss,
            "train_accuracy": evaluate(model, known.images[:KNOWN], known.labels[:KNOWN]).accuracy,
            "curve_steps": [row["step"] for row in rows],
            "curve": [round(row["val_accuracy"], 5) for row in rows],
            "loss": thin(losses),
        }
    )


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
) -> dict:
    """Train one control for a shorter time, and judge it on validation images."""
    model, _, _ = fitted(condition, seed, log, scale, length=length, **tried)
    asked = images("validation", scale)
    found = evaluate(model, asked.images, asked.labels)
    return {"validation_loss": found.loss, "validation_accuracy": found.accuracy}


EXPERIMENT = Experiment(
    what="Matching pairs: the control that listens to all patches alike, with 8 times the "
    "updates of the ViT in `matching_pairs` (there the control has twice as many).",
    chosen_on="validation images: the learning rate, with one seed, after as many updates as "
    "`matching_pairs` gives the control",
    metrics={
        "test_accuracy": "share of 2,000 test images answered rightly",
        "test_loss": "mean cross-entropy on them, in nats",
        "train_accuracy": f"share of the first {KNOWN:,} training images answered rightly",
        "curve_steps": "updates after which the control was asked",
        "curve": "share of the 2,000 validation images answered rightly by then; chooses nothing",
        "loss": "training loss, about 100 means over equally many steps, in nats",
    },
    conditions=[{"times": TIMES}],
    seeds=range(3),
    run=run,
    data=lambda: {f"matching pairs, {part}": checksum(*images(part)) for part in pairs.IMAGES},
    settings={"mixing": MIXING, "training": pairs.RECIPE, "steps": steps({"times": TIMES})},
    replay=({"times": TIMES}, 0),
    steps=steps,
    workers=1,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)},
        trial=trial,
        length=0.5,
        finalists=0,
        limit=6,
        arm=lambda condition: {"times": TRIAL},
    ),
)
