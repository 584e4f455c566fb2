"""Whatever number, switch or word a call takes, one that cannot be is refused by its name."""

import inspect
import math

import pytest

from vitbook.data import augmentation, load_digits, matching_pairs, pointer
from vitbook.data.recall import recall
from vitbook.layers.attention import MultiHeadCrossAttention, MultiHeadSelfAttention, causal_mask
from vitbook.layers.efficient import LinearAttention, WindowAttention
from vitbook.layers.encoder import MLP
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import LearnedPositions, RotaryPositions, sincos_1d, sincos_2d
from vitbook.layers.stems import ConvStem, NormedPatchEmbedding
from vitbook.layers.token_mixing import TokenMixing
from vitbook.models.conv_mixer import ConvMixer, ConvMixerBlock
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.small_cnn import SmallCNN
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig
from vitbook.training.run_folder import RunFolder

HEADS = {"embed_dim": 8, "num_heads": 2}
IMAGES = {"image_size": 8, "patch_size": 4, "in_channels": 1}
PATCHES, MODEL = IMAGES | {"embed_dim": 8}, IMAGES | {"embed_dim": 8, "num_classes": 3}
CALLS = {  # with what they need
    MultiHeadSelfAttention: HEADS,
    MultiHeadCrossAttention: HEADS,
    LinearAttention: HEADS,
    WindowAttention: HEADS | {"grid": (4, 4), "window": 2},
    MLP: {"embed_dim": 8, "hidden_dim": 4},
    PatchEmbedding: PATCHES,
    ConvStem: PATCHES,
    NormedPatchEmbedding: PATCHES,
    LearnedPositions: {"num_tokens": 3, "embed_dim": 8},
    RotaryPositions: {"grid": 3, "head_dim": 4},
    sincos_1d: {"n": 3, "dim": 4},
    sincos_2d: {"grid": 3, "dim": 4},
    TokenMixing: {"num_tokens": 4, "token_dim": 2},
    ConvMixerBlock: {"embed_dim": 8, "grid": (2, 2), "kernel_size": 3},
    VisionTransformer: MODEL | {"depth": 1, "num_heads": 2},
    MlpMixer: MODEL | {"depth": 1},
    ConvMixer: MODEL | {"depth": 1, "kernel_size": 3},
    Hybrid: MODEL | {"layers": ["attention", "conv"], "num_heads": 2},
    SmallCNN: {"in_channels": 1, "num_classes": 3},
    TrainConfig: {"steps": 3},
    RunFolder: {"path": "any"},
    matching_pairs: {"n": 2},
    pointer: {"n": 2},
    recall: {"n": 2},
    augmentation: {"shift": 1},
    load_digits: {"part": "train"},
    causal_mask: {"n": 3},
}
ZERO = {"jitter", "n", "num_prefix", "num_registers", "seed", "shift", "warmup_steps"}  # may be it
WRONG = {bool: ["yes"], int: [0, 2.5, "3"], float: [math.nan, "x"], str: ["nothing"]}
# Looked at by nobody, or not by this name.
FREE = {"qkv_bias", "path", "fill", "num_kinds", "num_classes of pointer", "noise of recall"}


def wrong_arguments():
    found = []
    for call, given in CALLS.items():
        parameters = inspect.signature(call).parameters.items()
        for name, value in ({key: one.default for key, one in parameters} | given).items():
            if not FREE & {name, f"{name} of {call.__name__}"}:
                found += [(call, name, wrong) for wrong in WRONG.get(type(value), [])]
    return found


@pytest.mark.parametrize(("call", "name", "wrong"), wrong_arguments())
def test_a_wrong_argument_is_named(call, name, wrong):
    wrong = -1 if wrong == 0 and name in ZERO else wrong
    with pytest.raises((ValueError, TypeError), match=name):
        call(**CALLS[call] | {name: wrong})
