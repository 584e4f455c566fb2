"""How long do ConvMixer and ViT take? By part, for the models of `conv_mixer_sizes`, as published.

About a minute.
"""

from functools import partial

import torch
from torch import Tensor, nn

from experiments.architectures.conv_mixer_sizes import ARMS, CONV, MODEL, VIT
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.timing import milliseconds
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import MLP, EncoderBlock
from vitbook.models.conv_mixer import CONV_MIXER_VARIANTS, ConvMixerBlock
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.vit import VIT_VARIANTS

BATCH = 32  # images of the small models
SMALL: dict = {
    **ARMS,
    "ViT, 91 k": {**VIT, "embed_dim": 48, "layers": ["attention"] * 3},
    "ConvMixer, 91 k": {**CONV, "embed_dim": 96, "layers": ["conv"] * 7},
}
WIDTH, GRID, KERNEL = 192, (14, 14), 7  # of the parts
SIDE = 224
VITS = ("S/16", "B/16")
ROUNDS = 7
AT_LEAST = 10e-3  # seconds: what is shorter is repeated
Call = tuple[nn.Module, Tensor]


def parts(scale: float) -> dict[str, Call]:
    """The parts of both blocks at the same width and for the same patches."""
    D, (rows, columns), k = WIDTH, GRID, KERNEL
    grid, tokens = torch.randn(1, D, rows, columns), torch.randn(1, rows * columns, D)
    return {
        "depthwise": (nn.Conv2d(D, D, k, padding=k // 2, groups=D), grid),
        "pointwise": (nn.Conv2d(D, D, 1), grid),
        "linear": (nn.Linear(D, D), tokens),
        "attention": (MultiHeadSelfAttention(embed_dim=D, num_heads=3), tokens),
        "mlp": (MLP(embed_dim=D, hidden_dim=4 * D), tokens),
    }


def small(scale: float) -> dict[str, Call]:
    """The models of `conv_mixer_sizes`, and a larger pair."""
    images = torch.randn(BATCH, MODEL["in_channels"], MODEL["image_size"], MODEL["image_size"])
    return {arm: (Hybrid(**MODEL, **sizes), images) for arm, sizes in SMALL.items()}


def published(scale: float) -> dict[str, Call]:
    """One block of each model of the papers, with the tokens of an image of 224 x 224."""
    calls: dict[str, Call] = {}
    size = SIDE if scale == 1 else 56  # smaller in a trial
    for name, v in CONV_MIXER_VARIANTS.items():
        D, side = v["embed_dim"], size // v["patch_size"]
        block: nn.Module = ConvMixerBlock(
            embed_dim=D, grid=(side, side), kernel_size=v["kernel_size"]
        )
        calls[f"ConvMixer-{name}"] = block, torch.randn(1, side * side, D)
    for name in VITS:
        v, side = VIT_VARIANTS[name[0]], size // int(name[2:])
        attention = MultiHeadSelfAttention(embed_dim=v["embed_dim"], num_heads=v["num_heads"])
        block = EncoderBlock(embed_dim=v["embed_dim"], attn=attention)
        calls[f"ViT-{name}"] = block, torch.randn(1, side * side + 1, v["embed_dim"])
    return calls


MEASURED = {"parts": parts, "small": small, "published": published}
NAMES = {
    "parts": ["depthwise", "pointwise", "linear", "attention", "mlp"],
    "small": list(SMALL),
    "published": [*(f"ConvMixer-{n}" for n in CONV_MIXER_VARIANTS), *(f"ViT-{n}" for n in VITS)],
}


@torch.no_grad()
def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Milliseconds of each call, median over rounds in which all take turns."""
    torch.manual_seed(seed)
    calls = MEASURED[condition["measured"]](scale)
    assert list(calls) == NAMES[condition["measured"]]
    for module, _ in calls.values():
        module.eval()
    took = milliseconds(
        {name: partial(module, x) for name, (module, x) in calls.items()},
        scaled(ROUNDS, scale),
        AT_LEAST if scale == 1 else 0,
    )
    return Outcome(
        {
            "ms": [*took.values()],
            "multiplies": [count_multiplies(*call) for call in calls.values()],
            "parameters": [count_parameters(module) for module, _ in calls.values()],
        }
    )


EXPERIMENT = Experiment(
    what="Time of ConvMixers and ViTs: the parts of their blocks, the small models of "
    "`conv_mixer_sizes`, and one block of each published model.",
    chosen_on="Nothing was chosen; every size that was measured is shown.",
    metrics={
        "ms": "milliseconds of a call, in the order of the names in the settings",
        "multiplies": "multiplications of a call",
        "parameters": "numbers that are learned",
    },
    conditions=[{"measured": name} for name in MEASURED],
    seeds=range(5),
    run=run,
    data=lambda: {"none": checksum(torch.tensor(GRID))},
    settings={
        "names": NAMES,
        "batch": BATCH,
        "width": WIDTH,
        "grid": GRID,
        "kernel": KERNEL,
        "rounds": ROUNDS,
        "published": {"image": SIDE, "calls": "one block, one image"},
    },
    workers=1,
    timing=True,
)
