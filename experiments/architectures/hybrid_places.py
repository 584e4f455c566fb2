"""Does it matter on CIFAR-10 how many layers of a stack are attention, and which ones?"""

from dataclasses import replace

from experiments.architectures import conv_mixer_sizes as sizes
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import MustBeat
from experiments.machinery.small_vit import LEARNED
from vitbook.models.hybrid import Hybrid

KINDS: dict = {"A": "attention", "M": "mixer", "C": "conv", "U": "uniform", "N": "none"}
MODEL: dict = {
    **sizes.MODEL,  # 64 patches
    "embed_dim": 32,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "token_dim": 32,  # 2 N S = 4 D^2: token mixing has as many weights as attention
    **LEARNED,
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


def layers_of(arm: str) -> list[str]:
    """What the letters of an arm stand for: "AMMM" -> one attention layer, three Mixer layers."""
    return [KINDS[letter] for letter in arm]


def build(arm: str) -> Hybrid:
    return Hybrid(**{**MODEL, **ARMS[arm]}, layers=layers_of(arm))


CLASSIFIER = replace(sizes.CLASSIFIER, build=build)
EXPERIMENT = replace(
    sizes.EXPERIMENT,
    what="Stacks of four layers on CIFAR-10, with attention in none of them, one, two or all, at "
    "the beginning or at the end; convolutions before Mixer layers; no mixing.",
    chosen_on="validation images, a tenth of the official training images: the learning rate of "
    "each arm",
    conditions=[{"arm": arm} for arm in ARMS],
    run=CLASSIFIER.run,
    settings={"model": MODEL, "training": sizes.RECIPE, "arms": ARMS},
    replay=({"arm": "AMMM"}, 0),
    keep={},
    choose=Choice(
        grid={"learning_rate": (4e-3, 8e-3, 1.6e-2)},
        trial=CLASSIFIER.trial,
        length=0.4,  # of much shorter trials the best rate is far too large for a run
        finalists=0,
        limit=5,
    ),
    must_beat=MustBeat({"arm": "AAAA"}, data=sizes.SET),
)
