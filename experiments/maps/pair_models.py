"""Matching pairs: two more ViTs like the one of `matching_pairs`, to look into."""

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.maps import matching_pairs as pairs
from vitbook.training import evaluate

PARTS = ("train", "test")
SEEDS = (1, 2)  # `matching_pairs` keeps the weights of seed 0


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    known, test = (pairs.images(part, scale) for part in PARTS)
    model = pairs.build(condition["mixing"], seed)
    pairs.fit(model, known, scaled(pairs.RECIPE["steps"], scale), seed, log, scale)
    found = evaluate(model, test.images, test.labels)
    return Outcome({"test_accuracy": found.accuracy, "test_loss": found.loss}, model.state_dict())


MODEL: dict = {"mixing": "attention"}
EXPERIMENT = Experiment(
    what="Matching pairs: two ViTs trained as the one of `matching_pairs`, with other seeds; their "
    "weights are kept.",
    chosen_on="nothing: all settings are those of `matching_pairs`",
    metrics={
        "test_accuracy": "share of 2,000 test images answered rightly",
        "test_loss": "mean cross-entropy on them, in nats",
    },
    conditions=[MODEL],
    seeds=SEEDS,
    run=run,
    data=lambda: {f"matching pairs, {part}": checksum(*pairs.images(part)) for part in PARTS},
    settings={"model": pairs.MODEL, "training": pairs.RECIPE, "images": pairs.IMAGES},
    replay=(MODEL, SEEDS[0]),
    keep={f"seed_{seed}": (MODEL, seed) for seed in SEEDS},
    steps=lambda condition: pairs.RECIPE["steps"],
)
