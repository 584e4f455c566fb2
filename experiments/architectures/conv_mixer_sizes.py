"""Two ConvMixers and a ViT on CIFAR-10: which accuracy do the same parameters buy?"""

from functools import lru_cache

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import COSTS, METRICS, Classifier, costs
from experiments.machinery.experiment import Experiment, MustBeat
from experiments.machinery.image_sets import whole_checksums, whole_set
from experiments.machinery.small_vit import LEARNED
from vitbook.data import ImageSet
from vitbook.models.hybrid import Hybrid

SET = "cifar10"
MODEL: dict = {"image_size": 32, "patch_size": 4, "in_channels": 3, "num_classes": 10}
CONV = {"stem": "normed", "positions": "none", "kernel_size": 5}
VIT = {"num_heads": 4, "mlp_ratio": 4.0, **LEARNED}
ARMS: dict = {
    "ViT, 29 k": {**VIT, "embed_dim": 32, "layers": ["attention"] * 2},
    "ConvMixer, 8 k": {**CONV, "embed_dim": 32, "layers": ["conv"] * 3},
    "ConvMixer, 28 k": {**CONV, "embed_dim": 64, "layers": ["conv"] * 4},
}
RECIPE: dict = {"steps": 700, "batch_size": 64, "warmup_steps": 40}  # one pass over 45,000 images


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Normalised images (n, 3, 32, 32) and labels (n,)."""
    return whole_set(SET, part, scale)


CLASSIFIER = Classifier(
    build=lambda arm: Hybrid(**MODEL, **ARMS[arm]),
    images=images_of,
    recipe=RECIPE,
    further=lambda model, scale: costs(model, images_of("test", scale).images),
)
EXPERIMENT = Experiment(
    what="Two ConvMixers and a ViT with the same patches on CIFAR-10; the larger ConvMixer has "
    "about as many parameters as the ViT.",
    chosen_on="validation images, a tenth of the official training images: the learning rate of "
    "each model",
    metrics={**METRICS, **COSTS},
    conditions=[{"arm": arm} for arm in ARMS],
    seeds=range(3),
    run=CLASSIFIER.run,
    data=lambda: whole_checksums(SET),
    settings={"model": MODEL, "training": RECIPE, "arms": ARMS},
    replay=({"arm": "ConvMixer, 8 k"}, 0),
    keep={"conv": ({"arm": "ConvMixer, 28 k"}, 0), "vit": ({"arm": "ViT, 29 k"}, 0)},
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.15, finalists=0
    ),
    must_beat=MustBeat({"arm": "ConvMixer, 28 k"}, data=SET),
)
