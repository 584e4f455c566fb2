"""The tables of `sincos_base` on a large grid, 14 x 14 patches: is the default good there, too?"""

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS
from experiments.machinery.experiment import Experiment
from experiments.machinery.image_sets import checksums
from experiments.positions.sincos_base import CLASSIFIER, MODEL, RECIPE, SET, positions_of

PATCH_SIZE = 2
TABLES = ("none", "learned", "10000", "2 sides, centred")

EXPERIMENT = Experiment(
    what="Digits in 14 x 14 patches: the small ViT of `sincos_base` without positions, with a "
    "learned table, with the published sin-cos table and with the default of `sincos_2d`, trained "
    "on 10,000 images of MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: the learning rate of each table, by a "
    "search with a seed of its own that this record keeps",
    metrics=METRICS,
    conditions=[{"patch_size": PATCH_SIZE, "table": table} for table in TABLES],
    seeds=range(5),
    run=CLASSIFIER.run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "tables": {table: positions_of(PATCH_SIZE, table) for table in TABLES},
    },
    replay=({"patch_size": PATCH_SIZE, "table": "2 sides, centred"}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, finalists=0),
)
