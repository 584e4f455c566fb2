"""Width, patch size and depth: 12 small ViTs on garments anywhere, each with a rate of its own."""

from dataclasses import replace
from itertools import product

from experiments.machinery.baseline_rows import beside_plain, updates
from experiments.machinery.choose import Choice
from experiments.machinery.small_vit import LEARNED
from experiments.vit_design import patch_sizes
from experiments.vit_design.canvas import COUNTS, SIDE
from vitbook.models.vit import VisionTransformer

WIDTHS, PATCHES, DEPTHS = (32, 64, 96), (7, 14), (2, 4)
MODEL: dict = {
    "image_size": SIDE,
    "in_channels": 1,
    "num_classes": 10,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    **LEARNED,
}
RECIPE: dict = {"steps": 1600, "batch_size": 64, "warmup_steps": 40}  # 3.4 passes over the images
CLASSIFIER = replace(
    patch_sizes.CLASSIFIER,
    build=lambda **sizes: VisionTransformer(**MODEL, **sizes),
    recipe=RECIPE,
    settings=lambda condition: {},
)
EXPERIMENT = replace(
    patch_sizes.EXPERIMENT,
    what="Small ViTs of three widths, two patch sizes and two depths, each trained for as many "
    "steps on 30,000 garments somewhere on a canvas of 42 x 42 pixels; beside them logistic "
    "regression, an MLP and the nearest image.",
    chosen_on="validation images that no run learns from: the learning rate of each of the 12 "
    "models, after half of the steps, with a seed of its own",
    conditions=[
        {"embed_dim": embed_dim, "patch_size": patch_size, "depth": depth}
        for embed_dim, patch_size, depth in product(WIDTHS, PATCHES, DEPTHS)
    ],
    seeds=range(3),
    run=beside_plain(CLASSIFIER, RECIPE["steps"]),
    settings={"model": MODEL, "training": RECIPE, "images": COUNTS},
    replay=({"embed_dim": 32, "patch_size": 14, "depth": 2}, 0),
    steps=lambda condition: updates(condition.get("model", ""), RECIPE["steps"]),
    choose=Choice(grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=CLASSIFIER.trial, finalists=0),
)
