"""The published and the default table of `sincos_base` for longer: does the gain last?"""

from dataclasses import replace

from experiments.machinery.choose import Choice
from experiments.positions import sincos_base as base
from experiments.positions.sincos_base import PATCH_SIZES, RECIPE

TABLES = ("10000", "2 sides, centred")
LONGER = 4
LONG_RECIPE = {**RECIPE, "steps": LONGER * RECIPE["steps"]}
PATIENT = replace(base.CLASSIFIER, recipe=LONG_RECIPE)
EXPERIMENT = replace(
    base.EXPERIMENT,
    what="Digits in 4 x 4 and in 7 x 7 patches for four times as long as in `sincos_base`: the "
    "small ViT with the published sin-cos table and with the default of `sincos_2d`, trained on "
    "10,000 images of MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: the learning rate of each table, by a "
    "search with a seed of its own that this record keeps",
    conditions=[
        {"patch_size": patch_size, "table": table} for patch_size in PATCH_SIZES for table in TABLES
    ],
    run=PATIENT.run,
    settings={
        "model": base.MODEL,
        "training": LONG_RECIPE,
        "tables": {
            f"{P}, {table}": base.positions_of(P, table) for P in PATCH_SIZES for table in TABLES
        },
    },
    replay=({"patch_size": 7, "table": "2 sides, centred"}, 0),
    steps=PATIENT.steps,
    choose=Choice(grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=PATIENT.trial, finalists=0),
)
