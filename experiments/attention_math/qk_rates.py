"""Recall with separate and merged scores, each at both learning rates of `qk_variants`."""

from experiments.attention_math import qk_variants as base
from experiments.attention_math.qk_variants import CLASSIFIERS, IMAGES, RECIPES, images_of
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum
from vitbook.comparison.recall_task import answered

TASK, RATES = "recall", (0.002, 0.004)  # what the search chose for the merged and the separate


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    asked = {"task": TASK, "model": condition["model"]}
    rate = condition["rate"]
    trained, losses = CLASSIFIERS[TASK].fit(asked, seed, log, scale, learning_rate=rate)
    loss, accuracy = answered(trained, images_of(TASK, "test", scale))
    learned = base.learned_after(losses)
    return Outcome({"test_accuracy": accuracy, "test_loss": loss, "steps_to_learn": learned})


EXPERIMENT = Experiment(
    what="Recall as in qk_variants, with two matrices or one merged matrix for each head: each "
    "kind at the learning rate of its own search and at that of the other.",
    chosen_on="validation images, by the search of qk_variants: one rate for each kind; here both "
    "kinds get both",
    metrics={
        "test_accuracy": "share of right answers to the test images",
        "test_loss": "mean cross-entropy of these answers, in nats",
        "steps_to_learn": "updates until the mean loss of 20 in a row first lay below half a "
        "guess's; if it never did, all there were",
    },
    conditions=[{"model": m, "rate": rate} for m in ("separate", "merged") for rate in RATES],
    seeds=range(20),
    run=run,
    data=lambda: {f"{TASK}, {part}": checksum(*images_of(TASK, part)) for part in IMAGES[TASK]},
    settings={"model": base.MODEL, "training": RECIPES[TASK], "images": IMAGES[TASK]},
    replay=({"model": "merged", "rate": RATES[0]}, 0),
    steps=lambda condition: RECIPES[TASK]["steps"],
)
