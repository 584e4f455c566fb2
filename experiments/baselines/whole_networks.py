"""What a ViT has to beat on whole data sets: a small MLP and a small CNN, as `small_networks`."""

from functools import lru_cache, partial

from torch import nn

from experiments.machinery.baselines import mlp
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier, trial_by
from experiments.machinery.experiment import Experiment
from experiments.machinery.image_sets import whole_checksums, whole_set
from vitbook.data import ImageSet
from vitbook.models.small_cnn import SmallCNN

SETS = ("mnist", "fashion-mnist", "cifar10")
STEPS = 3000
RECIPE: dict = {"steps": STEPS, "batch_size": 64, "warmup_steps": 200}  # three and a half passes
HIDDEN, WIDTHS = 64, (16, 32, 64)
MLP, CNN = "MLP", "small CNN"


@lru_cache(maxsize=2)
def images_of(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, C, H, W) and labels (n,)."""
    return whole_set(name, part, scale)


def build(data: str, model: str, steps: int) -> nn.Module:
    side, channels = (32, 3) if data == "cifar10" else (28, 1)
    if model == CNN:
        return SmallCNN(in_channels=channels, num_classes=10, widths=WIDTHS)
    return mlp(channels * side**2, HIDDEN, 10)


CLASSIFIERS = {
    name: Classifier(build=build, images=partial(images_of, name), recipe=RECIPE) for name in SETS
}

EXPERIMENT = Experiment(
    what="An MLP with one hidden layer and a small CNN on MNIST, Fashion-MNIST and CIFAR-10 whole, "
    "on the very images of `full_sets`, tested on the official test images.",
    chosen_on='a tenth of the training images ("validation"): the learning rate of each network '
    "for each set, after half of the steps, with a seed of its own; the sizes were not searched "
    "for",
    metrics=METRICS,
    conditions=[
        {"data": name, "model": model, "steps": STEPS} for name in SETS for model in (MLP, CNN)
    ],
    seeds=range(3),
    run=lambda condition, *args, **options: CLASSIFIERS[condition["data"]].run(
        condition, *args, **options
    ),
    data=lambda: whole_checksums(*SETS, added=""),
    settings={
        "training": RECIPE,
        "hidden": HIDDEN,
        "widths": WIDTHS,
        "model": "MLP: pixels, one hidden layer, GELU, ten logits; small CNN: "
        "vitbook.models.small_cnn.SmallCNN; the loop and the AdamW of the ViTs",
    },
    replay=({"data": "mnist", "model": MLP, "steps": STEPS}, 0),
    steps=lambda condition: STEPS,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)}, trial=trial_by("data", CLASSIFIERS), finalists=0
    ),
)
