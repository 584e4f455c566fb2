"""On which pictures does mixing the tokens matter more? Settled before the comparison."""

from functools import lru_cache, partial

import torch

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum
from experiments.machinery.image_sets import image_set, whole_set
from experiments.token_mixing import mixing
from experiments.token_mixing.mixing import Task
from vitbook.data import STATISTICS, ImageSet, normalize
from vitbook.data.canvas import place_on_canvas
from vitbook.training import evaluate

CIFAR, GARMENTS = "cifar10", "garments on a canvas"
CANVAS = 56
TASKS = {
    CIFAR: Task(images=(32, 4, 3, 10), kernel_size=5, steps=200, batch_size=64),
    GARMENTS: Task(images=(CANVAS, 7, 1, 10), kernel_size=5, steps=200, batch_size=64),
}
PARTS = ("train", "validation")  # test images are not looked at
RATE = 4e-3
SEEDS = (200, 201)  # used nowhere else


@lru_cache(maxsize=4)
def images_of(data: str, part: str, scale: float = 1.0) -> ImageSet:
    """Normalized images (n, C, side, side) and labels (n,)."""
    if data == CIFAR:
        return whole_set(CIFAR, part, scale)
    images, labels = image_set("fashion-mnist", part, scale)
    mean, std = (torch.tensor(of)[:, None, None] for of in STATISTICS["fashion-mnist"])
    seed = SEEDS[0] + PARTS.index(part)
    canvas = place_on_canvas((images * std + mean).clamp(0, 1), CANVAS, seed=seed)
    return ImageSet(normalize(canvas.images, *STATISTICS["fashion-mnist"]), labels)


CLASSIFIERS = {
    data: mixing.classifier(task, partial(images_of, data)) for data, task in TASKS.items()
}


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    data, asked = condition["data"], {"model": condition["model"]}
    model, _ = CLASSIFIERS[data].fit(asked, seed, log, scale, learning_rate=RATE)
    accuracy = evaluate(model, *images_of(data, "validation", scale)).accuracy
    return Outcome({"validation_accuracy": accuracy})


EXPERIMENT = Experiment(
    what="A ViT and a model without token mixing, on CIFAR-10 and on garments somewhere on a "
    "larger canvas: where is the gap wider? The comparison of all takes these pictures.",
    chosen_on="one learning rate for all, not searched for; the accuracies are those of validation "
    "images, and no test image was looked at",
    metrics={"validation_accuracy": "share of the validation images answered correctly"},
    conditions=[{"data": data, "model": model} for data in TASKS for model in ("ViT", "no mixing")],
    seeds=SEEDS,
    run=run,
    data=lambda: {
        f"{data}, {part}": checksum(*images_of(data, part)) for data in TASKS for part in PARTS
    },
    settings={
        "learning_rate": RATE,
        **{data: {"images": task.model, "training": task.recipe} for data, task in TASKS.items()},
    },
    replay=({"data": CIFAR, "model": "ViT"}, SEEDS[0]),
    steps=lambda condition: mixing.steps_of(TASKS[condition["data"]], condition["model"]),
)
