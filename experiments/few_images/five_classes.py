"""Pretraining for `transfer`: a small ViT learns five of the ten classes of CIFAR-10."""

import torch

from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, checksum, scaled
from experiments.machinery.image_sets import root
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import STATISTICS, ImageSet, augmentation, load_torchvision, normalize
from vitbook.models.vit import VisionTransformer

# The even class numbers: airplane, bird, deer, frog, ship. The odd ones are left for `transfer`.
CLASSES = (0, 2, 4, 6, 8)
IMAGES: dict = {"image_size": 32, "patch_size": 8, "in_channels": 3, "num_classes": 5}
SIZES: dict = {"embed_dim": 64, "depth": 3, "num_heads": 4, "pool": "cls"}
MODEL: dict = {**SMALL, **LEARNED, **IMAGES, **SIZES}
# Not searched for: nothing is compared here. The rate is the one of the command's recipe.
RECIPE: dict = {"steps": 1000, "batch_size": 128, "warmup_steps": 100, "learning_rate": 2e-3}
AUGMENTATION: dict = {"shift": 2, "flip": True}


def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Normalized images (n, 3, 32, 32) of the five classes, and labels 0 ... 4."""
    images, labels = load_torchvision("cifar10", root(), part)
    index = torch.isin(labels, torch.tensor(CLASSES)).nonzero().flatten()
    index = index[: scaled(len(index), scale)]
    return ImageSet(normalize(images[index], *STATISTICS["cifar10"]), labels[index] // 2)


CLASSIFIER = Classifier(
    build=lambda classes: VisionTransformer(**MODEL),
    images=images_of,
    recipe=RECIPE,
    options=lambda condition: {"augment": augmentation(**AUGMENTATION)},
)
EXPERIMENT = Experiment(
    what="A small ViT learns five of the ten classes of CIFAR-10 (airplane, bird, deer, frog, "
    "ship), to be the pretrained model for the other five.",
    chosen_on="nothing: the learning rate is the one of the command's recipe for CIFAR-10",
    metrics=METRICS,
    conditions=[{"classes": "even"}],
    seeds=(0,),
    run=CLASSIFIER.run,
    data=lambda: {
        f"cifar10, even classes, {part}": checksum(*images_of(part)) for part in ("train", "test")
    },
    settings={"model": MODEL, "training": RECIPE, "augmentation": AUGMENTATION, "classes": CLASSES},
    replay=({"classes": "even"}, 0),
    keep={"vit": ({"classes": "even"}, 0)},
    steps=CLASSIFIER.steps,
)
