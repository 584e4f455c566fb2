"""Are two glyphs the same? Seven architectures with equal parameters and equal compute."""

from functools import lru_cache, partial

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS
from experiments.machinery.experiment import Experiment, checksum, scaled
from experiments.token_mixing import mixing
from experiments.token_mixing.mixing import CURVES, EQUAL, LINEAR, NEAREST, Task
from vitbook.data import ImageSet, matching_pairs

TASK = Task(images=(32, 8, 1, 2), kernel_size=3, steps=300, batch_size=128)
IMAGES = {"train": 30_000, "validation": 2_000, "test": 4_000}
FIRST = 180  # seed of the first part


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Images (n, 1, 32, 32) between -1 and 1, and labels (n,)."""
    found = matching_pairs(scaled(IMAGES[part], scale), seed=FIRST + list(IMAGES).index(part))
    return ImageSet(2 * found.images - 1, found.labels)


CLASSIFIER = mixing.classifier(TASK, images_of)
EXPERIMENT = Experiment(
    what="Matching pairs (are two glyphs that stand apart the same?): seven architectures and a "
    "small CNN with equal parameters and equal compute; logistic regression and the nearest image.",
    chosen_on="validation images: the learning rate of each model",
    metrics={**METRICS, **CURVES},
    conditions=[{"model": model} for model in (*EQUAL, LINEAR)],
    once=[{"model": NEAREST}],
    seeds=range(5),
    run=partial(mixing.run, CLASSIFIER),
    data=lambda: {f"matching pairs, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "images": TASK.model,
        "training": TASK.recipe,
        "models": mixing.sizes(TASK),
        "counts": IMAGES,
        "first_seed": FIRST,
    },
    replay=({"model": "ViT"}, 0),
    steps=lambda condition: 0 if condition["model"] == NEAREST else CLASSIFIER.steps(condition),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.6, finalists=0
    ),
)
