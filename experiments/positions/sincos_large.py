"""The tables of `sincos_base` on a large grid, 14 x 14 patches: is the default good there, too?"""

from dataclasses import replace

from experiments.positions import sincos_base as base

PATCH_SIZE = 2
TABLES = ("none", "learned", "10000", "2 sides, centred")
EXPERIMENT = replace(
    base.EXPERIMENT,
    what="Digits in 14 x 14 patches: the small ViT of `sincos_base` without positions, with a "
    "learned table, with the published sin-cos table and with the default of `sincos_2d`, trained "
    "on 10,000 images of MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: the learning rate of each table, by a "
    "search with a seed of its own that this record keeps",
    conditions=[{"patch_size": PATCH_SIZE, "table": table} for table in TABLES],
    settings={
        "model": base.MODEL,
        "training": base.RECIPE,
        "tables": {table: base.positions_of(PATCH_SIZE, table) for table in TABLES},
    },
    replay=({"patch_size": PATCH_SIZE, "table": "2 sides, centred"}, 0),
)
