"""The pointer images of `block_ablation`, with twenty seeds: in how many is the answer found?"""

from experiments.machinery.classifier import METRICS
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum
from experiments.vit_design import block_ablation as base
from experiments.vit_design.block_ablation import CLASSIFIERS, COUNTS, FIRST, WHOLE, images_of

TASK = "pointer"
RATES = {"no MLP": 0.004, WHOLE: 0.002}  # what `block_ablation` chose
KEPT = {name: words for name, words in METRICS.items() if name != "loss"}  # no page shows curves


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    rate = RATES[condition["model"]]
    outcome = CLASSIFIERS[TASK].run(condition, seed, log, scale, learning_rate=rate)
    return Outcome({name: outcome.metrics[name] for name in KEPT})


EXPERIMENT = Experiment(
    what="The ViT of `block_ablation` on pointer images, without its MLPs and whole, with "
    "twenty seeds, the first three of them those of that record.",
    chosen_on="the learning rates are those that the search of `block_ablation` chose",
    metrics=KEPT,
    conditions=[{"task": TASK, "model": model} for model in RATES],
    seeds=range(20),
    run=run,
    data=lambda: {f"{TASK}, {part}": checksum(*images_of(TASK, part)) for part in COUNTS},
    settings={
        "tasks": {TASK: base.TASKS[TASK]},
        "model": base.MODEL,
        "training": {TASK: base.RECIPES[TASK]},
        "rates": RATES,
        "first_seed": FIRST,
    },
    replay=({"task": TASK, "model": "no MLP"}, 0),
    steps=CLASSIFIERS[TASK].steps,
)
