"""The architectures that ``python -m vitbook train`` builds, and the settings each of them has."""

import inspect

from torch import nn

from vitbook import require
from vitbook.layers.positions import POSITION_OPTIONS
from vitbook.models.conv_mixer import ConvMixer
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import VisionTransformer

ARCHITECTURES = {
    "vit": VisionTransformer,
    "mlp-mixer": MlpMixer,
    "conv-mixer": ConvMixer,
    "hybrid": Hybrid,
}
# What the others have and ViT has not, by default; the rest comes from the recipe.
DEFAULTS = {
    "token_dim": None,  # D / 2
    "kernel_size": 5,
    "layers": ["mixer", "mixer", "attention"],
    "stem": "patches",
}


def arguments_of(architecture: str) -> set[str]:
    """What a model of this architecture can be given, the options of its positions too."""
    own = set(inspect.signature(ARCHITECTURES[architecture]).parameters)
    return own | POSITION_OPTIONS.keys() if "positions" in own else own


def only_its_own(settings: dict, given: dict) -> dict:
    """Settings without those that only other architectures have.

    Raises:
        ValueError: Such a one was given; the message says whose it is.
    """
    require.one_of("architecture", settings["architecture"], tuple(ARCHITECTURES))
    arguments = {name: arguments_of(name) for name in ARCHITECTURES}
    own = arguments[settings["architecture"]]
    foreign = set().union(*arguments.values()) - own
    for name in given:
        if name in foreign:
            whose = ", ".join(other for other, names in arguments.items() if name in names)
            advice = "; name its layers instead (layers, --layers)" if "layers" in own else ""
            raise ValueError(
                f"{name} must be left out, the architecture {settings['architecture']} has none "
                f"(of {whose}){advice if name == 'depth' else ''}"
            )
    return {name: value for name, value in settings.items() if name not in foreign}


def build(settings: dict, shape: dict) -> nn.Module:
    """The model that the settings describe, for images of this shape and its number of classes."""
    names = arguments_of(settings["architecture"]) - shape.keys() & settings.keys()
    model = ARCHITECTURES[settings["architecture"]]
    return model(**shape, **{name: settings[name] for name in names})
