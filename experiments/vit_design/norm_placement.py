"""Norm before or after? Accuracy over the learning rate, at three depths, with and without warm-up.

The curve is the result: a kind that seems to need a warm-up may only need a smaller rate.
"""

from itertools import product

from experiments.machinery.baseline_rows import PLAIN, plain, updates
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import digits_checksums, digits_set
from experiments.machinery.small_vit import DIGITS, LEARNED, SMALL
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate

MODEL: dict = {**SMALL, **LEARNED, **DIGITS, "embed_dim": 32, "num_heads": 4}
SHORT, LONG = 450, 900  # steps: 25 passes over the images, and 50
WARMUP = 0.2  # of the steps, where there is one
RECIPE: dict = {"batch_size": 64}
PARTS = ("train", "validation", "test")
RATES = {  # the deeper, the lower; where a curve has its top at the end, the page says so
    2: (1e-3, 2e-3, 4e-3, 8e-3, 16e-3),
    12: (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3),
    24: (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3),
}
LARGER = {12: (8e-3,), 24: (4e-3, 8e-3, 16e-3)}  # so that no best rate of pre-norm is the largest
LONGER = {  # of 24 blocks, in the long training
    ("post", True): (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3),
    ("post", False): (1.25e-4, 2.5e-4, 5e-4, 1e-3),
    ("pre", True): (5e-4, 1e-3, 2e-3, 4e-3),
}
CLASSIFIER = Classifier(
    build=lambda norm, depth, **_: VisionTransformer(
        **MODEL, depth=depth, norm_first=norm == "pre"
    ),
    images=digits_set,
    recipe=RECIPE,
    settings=lambda condition: {
        "steps": condition["steps"],
        "learning_rate": condition["learning_rate"],
        "warmup_steps": round(WARMUP * condition["steps"]) if condition["warmup"] else 0,
    },
)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one model and test it, on the validation images too: they say which rate is best."""
    if condition.get("model") in PLAIN:
        given: dict = {"steps": SHORT, "log": log, "scale": scale}
        return plain(condition["model"], lambda part: digits_set(part, scale), **given)
    model, losses = CLASSIFIER.fit(condition, seed, log, scale)
    found = evaluate(model, *digits_set("validation", scale))
    measured = CLASSIFIER.measure(model, losses, scale)
    del measured["loss"]  # of 240 runs, a quarter of this record that no page reads
    judged = {"validation_accuracy": found.accuracy, "validation_loss": found.loss}
    return Outcome(measured | judged)


def conditions() -> list[dict]:
    short = [
        {"norm": norm, "depth": depth, "warmup": warmup, "learning_rate": rate, "steps": SHORT}
        for norm, depth, warmup in product(("pre", "post"), RATES, (True, False))
        for rate in RATES[depth]
    ]
    larger = [
        {"norm": norm, "depth": depth, "warmup": warmup, "learning_rate": rate, "steps": SHORT}
        for norm, warmup, depths in (
            ("pre", True, (12, 24)),
            ("pre", False, (12, 24)),
            ("post", True, (12,)),
        )
        for depth in depths
        for rate in LARGER[depth]
    ]
    deep = {"depth": max(RATES), "steps": LONG}
    long = [
        {"norm": norm, **deep, "warmup": warmup, "learning_rate": rate}
        for (norm, warmup), rates in LONGER.items()
        for rate in rates
    ]
    return short + larger + long


EXPERIMENT = Experiment(
    what="Small ViTs of 2, 12 and 24 blocks with the norm before each branch (pre) or after each "
    "addition (post), with a warm-up and without, each at five learning rates, on digits of 8 x 8 "
    "pixels; larger rates where the best was the largest; 24 blocks also for twice as many steps; "
    "beside them logistic regression, an MLP and the nearest image.",
    chosen_on="nothing: every rate is shown; which one a reader should take, the validation images "
    "say, that no run learns from",
    metrics={
        **{name: words for name, words in METRICS.items() if name != "loss"},
        "validation_accuracy": "share of the validation images answered correctly",
        "validation_loss": "mean cross-entropy on them, in nats",
        "learning_rate": "of an opponent: the one of three that validation images prefer",
    },
    conditions=conditions(),
    once=[{"model": name} for name in PLAIN],
    seeds=range(3),
    run=run,
    data=lambda: digits_checksums(*PARTS),
    settings={"model": MODEL, "training": {**RECIPE, "warmup": WARMUP}},
    replay=(
        {"norm": "post", "depth": 12, "warmup": True, "learning_rate": 1e-3, "steps": SHORT},
        0,
    ),
    steps=lambda condition: updates(condition.get("model", ""), condition.get("steps", SHORT)),
)
