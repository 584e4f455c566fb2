"""How large should a patch be? One small ViT, four patch sizes, after few steps and after many."""

from experiments.machinery.baseline_rows import PLAIN, beside_plain, updates
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import COSTS, METRICS, Classifier
from experiments.machinery.experiment import Experiment
from experiments.machinery.small_vit import LEARNED, SMALL
from experiments.vit_design.canvas import COUNTS, SIDE, checksums, costs_on_canvas, garments
from vitbook.models.vit import VisionTransformer

SIZES = (6, 14, 21, 42)  # pixels: 49 patches, 9, 4, and the whole image
MODEL: dict = {**SMALL, **LEARNED, "image_size": SIDE, "depth": 2, "num_heads": 4}
SHORT, LONG = 300, 2400  # steps: 0.6 passes over the images, and 5
RECIPE: dict = {"batch_size": 64, "warmup_steps": 40}
CLASSIFIER = Classifier(
    build=lambda patch_size, steps: VisionTransformer(**MODEL, patch_size=patch_size),
    images=garments,
    recipe=RECIPE,
    settings=lambda condition: {"steps": condition["steps"]},
    further=costs_on_canvas,
)
EXPERIMENT = Experiment(
    what="Garments somewhere on a canvas of 42 x 42 pixels, cut into patches of 6 x 6 pixels up to "
    "the whole image: the same small ViT, trained on 30,000 of them for few steps and for eight "
    "times as many; beside it logistic regression, an MLP and the nearest image.",
    chosen_on="validation images that no run learns from: the learning rate of each patch size for "
    "each number of steps, with a seed of its own",
    metrics={
        **METRICS,
        **COSTS,
        "learning_rate": "of an opponent: the one of three that validation images prefer",
    },
    conditions=[
        {"patch_size": patch_size, "steps": steps}
        for steps in (SHORT, LONG)
        for patch_size in SIZES
    ],
    once=[{"model": name} for name in PLAIN],
    seeds=range(5),
    run=beside_plain(CLASSIFIER, LONG),
    data=checksums,
    settings={"model": MODEL, "training": RECIPE, "images": COUNTS},
    replay=({"patch_size": 14, "steps": SHORT}, 0),
    steps=lambda condition: updates(condition.get("model", ""), condition.get("steps", LONG)),
    choose=Choice(grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial),
)
