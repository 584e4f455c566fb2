"""Which sin-cos table suits a small grid? The base, centred or not, beside a learned table."""

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.models.vit import VisionTransformer

SET = "mnist"  # digits differ in where their strokes are
SIZE = 28
MODEL: dict = {**SMALL, "image_size": SIZE, "depth": 2, "num_heads": 4}
PATCH_SIZES = (7, 4)  # grids of 4 x 4 and of 7 x 7
RECIPE: dict = {"steps": 500, "batch_size": 100, "warmup_steps": 50}  # 5 epochs
# positions, base of the waves in sides of the grid or as a number, centred
TABLES = {
    "none": ("none", None, False),
    "learned": ("learned", None, False),
    "10000": ("sincos_2d", 10000.0, False),
    "10000, centred": ("sincos_2d", 10000.0, True),
    "100": ("sincos_2d", 100.0, False),
    "2 sides": ("sincos_2d", "sides", False),
    "2 sides, centred": ("sincos_2d", "sides", True),
}


def positions_of(patch_size: int, table: str) -> dict:
    """The arguments of `VisionTransformer` for one of `TABLES`."""
    positions, base, centred = TABLES[table]
    if positions == "learned":
        return LEARNED
    if positions != "sincos_2d":
        return {"positions": positions}
    side = SIZE // patch_size
    base = 2.0 * side if base == "sides" else base
    return {"positions": positions, "position_base": base, "centred_positions": centred}


def build(patch_size: int, table: str) -> VisionTransformer:
    return VisionTransformer(**MODEL, patch_size=patch_size, **positions_of(patch_size, table))


CLASSIFIER = Classifier(
    build=build, images=lambda part, scale: image_set(SET, part, scale), recipe=RECIPE
)
EXPERIMENT = Experiment(
    what="Digits in 4 x 4 and in 7 x 7 patches: the same small ViT without positions, with a "
    "learned table and with sin-cos tables of three bases, centred or as published, trained on "
    "10,000 images of MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: the learning rate of each table on each "
    "grid, by a search with a seed of its own that this record keeps",
    metrics=METRICS,
    conditions=[
        {"patch_size": patch_size, "table": table} for patch_size in PATCH_SIZES for table in TABLES
    ],
    seeds=range(5),
    run=CLASSIFIER.run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "tables": {
            f"{P}, {table}": positions_of(P, table) for P in PATCH_SIZES for table in TABLES
        },
    },
    replay=({"patch_size": 7, "table": "2 sides"}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, finalists=0),
)
