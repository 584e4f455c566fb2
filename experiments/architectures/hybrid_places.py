"""Does it matter on CIFAR-10 how many layers of a stack are attention, and which ones?"""

from typing import Any

import torch

from experiments.architectures.conv_mixer_sizes import SET, images_of
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import COSTS, METRICS, Classifier, costs
from experiments.machinery.experiment import Experiment, Log, MustBeat, Outcome
from experiments.machinery.image_sets import whole_checksums
from vitbook.models.hybrid import Hybrid

KINDS: dict = {"A": "attention", "M": "mixer", "C": "conv", "U": "uniform", "N": "none"}
MODEL: dict = {
    "image_size": 32,
    "patch_size": 4,  # 64 patches
    "in_channels": 3,
    "num_classes": 10,
    "embed_dim": 32,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "token_dim": 32,  # 2 N S = 4 D^2: token mixing has as many weights as attention
    "positions": "learned",
    "position_std": 0.5,
}
# One letter for each layer; and what keeps the parameters of an arm within 5 % of the others.
ARMS: dict = {
    "MMMM": {},
    "AMMM": {},
    "MMMA": {},
    "MMAA": {},
    "AAAA": {},
    "CCMM": {"embed_dim": 46},
    "NNNN": {"mlp_ratio": 3.0},
}
RECIPE: dict = {"steps": 700, "batch_size": 64, "warmup_steps": 40}  # one pass over 45,000 images


def layers_of(arm: str) -> list[str]:
    """What the letters of an arm stand for: "AMMM" -> one attention layer, three Mixer layers."""
    return [KINDS[letter] for letter in arm]


def build(arm: str, seed: int) -> Hybrid:
    torch.manual_seed(seed)
    return Hybrid(**{**MODEL, **ARMS[arm]}, layers=layers_of(arm))


CLASSIFIER = Classifier(build=build, images=images_of, recipe=RECIPE)


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model, test it, count what it costs."""
    model, losses = CLASSIFIER.fit(condition, seed, log, scale, **chosen)
    metrics = CLASSIFIER.measure(model, losses, scale)
    return Outcome(metrics | costs(model, images_of("test", scale).images))


EXPERIMENT = Experiment(
    what="Stacks of four layers on CIFAR-10, with attention in none of them, one, two or all, at "
    "the beginning or at the end; convolutions before Mixer layers; no mixing.",
    chosen_on="validation images, a tenth of the official training images: the learning rate of "
    "each arm",
    metrics={**METRICS, **COSTS},
    conditions=[{"arm": arm} for arm in ARMS],
    seeds=range(3),
    run=run,
    data=lambda: whole_checksums(SET),
    settings={"model": MODEL, "training": RECIPE, "arms": ARMS},
    replay=({"arm": "AMMM"}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (4e-3, 8e-3, 1.6e-2)},
        trial=CLASSIFIER.trial,
        length=0.4,  # of much shorter trials the best rate is far too large for a run
        finalists=0,
        limit=5,
    ),
    must_beat=MustBeat({"arm": "AAAA"}, data=SET),
)
