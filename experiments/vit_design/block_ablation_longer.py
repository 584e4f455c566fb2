"""The garments of `block_ablation` for longer: what are attention and the MLP worth then?"""

from dataclasses import replace

from experiments.machinery.choose import Choice
from experiments.vit_design import block_ablation
from experiments.vit_design.block_ablation import CLASSIFIERS, LINEAR, MODEL, RECIPES, TASKS, WHOLE
from experiments.vit_design.canvas import checksums

TASK = "garments"
LONGER = 3
MODELS = (WHOLE, "no attention", "uniform", "no MLP", "no GELU", LINEAR)
RECIPE: dict = {**RECIPES[TASK], "steps": LONGER * RECIPES[TASK]["steps"]}
CLASSIFIER = replace(CLASSIFIERS[TASK], recipe=RECIPE)
EXPERIMENT = replace(
    block_ablation.EXPERIMENT,
    what="The ViT of `block_ablation`, whole, with its attention or MLP or a part of it left out "
    "of every block, and logistic regression, on its garments, with three times as many steps.",
    chosen_on="validation images: the learning rate of each model, for the longer run anew",
    conditions=[{"task": TASK, "model": model} for model in MODELS],
    once=(),
    seeds=range(5),
    run=CLASSIFIER.run,
    data=checksums,
    settings={"tasks": {TASK: TASKS[TASK]}, "model": MODEL, "training": {TASK: RECIPE}},
    replay=({"task": TASK, "model": LINEAR}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, finalists=0, limit=6
    ),
)
