"""What `cost` shows: time and memory over the number of tokens, and what cheaper ways save.

A copy of known size, whose memory is measured in the same way, shows what the measurement can see.
About 4 minutes.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.attention_math.cheaper import WAYS as TIMED
from experiments.attention_math.cheaper import with_way
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.memory import peak_mib
from experiments.machinery.timing import milliseconds
from vitbook.layers.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from vitbook.layers.encoder import MLP, EncoderBlock
from vitbook.models.vit import VisionTransformer

LENGTHS = {192: [2**k for k in range(4, 13)], 768: [2**k for k in range(4, 12)]}
HEADS: dict = {192: 3, 768: 12}  # of ViT-Ti and ViT-B
MEMORY_LENGTHS = [256, 512, 1024, 2048, 4096]
MEMORY_WIDTH = 192
ROUNDS = 3
AT_LEAST = 4e-3  # seconds: what is shorter is repeated
SMALL: dict = {  # the model of the record `cheaper_attention`, on larger images too
    "patch_size": 3,
    "in_channels": 3,
    "num_classes": 10,
    "embed_dim": 48,
    "depth": 3,
    "num_heads": 4,
    "mlp_ratio": 2.0,
}
SIDES = {36: 16, 72: 4, 144: 1}  # pixels -> images at once: 144, 576 and 2304 patches
WAY_ROUNDS = 9


class ExplicitAttention(MultiHeadSelfAttention):
    """The same layer with the N x N weights written out."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.project(x)
        mixed, _ = scaled_dot_product_attention(q, k, v, mask)  # (B, h, N, d)
        return self.proj(mixed.transpose(1, 2).reshape(x.shape))


def parts(embed_dim: int) -> dict:
    """Every part as a function of tokens x (1, N, D)."""
    heads = HEADS[embed_dim]
    sizes = {"embed_dim": embed_dim, "num_heads": heads}
    attention, explicit = MultiHeadSelfAttention(**sizes), ExplicitAttention(**sizes)

    def split(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # for the products alone
        q = x.view(1, -1, heads, embed_dim // heads).transpose(1, 2)
        return q, q, q

    return {
        "products": lambda x: F.scaled_dot_product_attention(*split(x)),
        "products_explicit": lambda x: scaled_dot_product_attention(*split(x))[0],
        "attention": attention,
        "attention_explicit": explicit,
        "mlp": MLP(embed_dim=embed_dim, hidden_dim=4 * embed_dim),
        "block": EncoderBlock(embed_dim=embed_dim, attn=attention),
    }


@torch.no_grad()
def timed(embed_dim: int, seed: int, lengths: list[int], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each part, by length."""
    torch.manual_seed(seed)
    calls = {
        f"{name} {n}": partial(call, torch.randn(1, n, embed_dim))
        for n in lengths
        for name, call in parts(embed_dim).items()
    }
    found: dict[str, list[float]] = {}
    for name, ms in milliseconds(calls, rounds, AT_LEAST).items():
        found.setdefault(f"ms_{name.split()[0]}", []).append(ms)
    return found


@torch.no_grad()
def timed_ways(seed: int, sides: dict[int, int], rounds: int) -> dict[str, list[float]]:
    """Time of a whole model in each way over the untouched one's, by size of the image."""
    found: dict[str, list[float]] = {}
    for side, batch in sides.items():
        x = torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(seed))
        models = {way: with_way(way, {**SMALL, "image_size": side}, seed=seed) for way in TIMED}
        models["explicit"] = explicit(models["untouched"])
        calls = {way: partial(model.eval(), x) for way, model in models.items()}
        took = milliseconds(calls, rounds, AT_LEAST)
        for way, ms in took.items():
            found.setdefault(f"ratio_{way}", []).append(ms / took["untouched"])
    return found


def explicit(model: VisionTransformer) -> VisionTransformer:
    """The same model with the weights written out."""
    model = copy.deepcopy(model)
    for block in model.encoder.blocks:
        block.attn.__class__ = ExplicitAttention
    return model


def training(layer: nn.Module) -> Callable[[Tensor], None]:
    """A step's way forward and back through a layer."""

    def call(x: Tensor) -> None:
        layer(x.requires_grad_()).sum().backward()

    return call


def measured_calls(embed_dim: int) -> dict[str, Callable]:
    made = parts(embed_dim)
    explicit = EncoderBlock(embed_dim=embed_dim, attn=made["attention_explicit"])
    return {
        **{
            name: torch.no_grad()(made[name]) for name in ("attention", "attention_explicit", "mlp")
        },
        "training": training(made["block"]),
        "training_explicit": training(explicit),
        "copy": lambda x: x.clone(),  # as large as the output: the control
    }


def measured_call(way: str, seed: int, tokens: int) -> Callable[[], object]:
    torch.manual_seed(seed)
    call = measured_calls(MEMORY_WIDTH)[way]
    call(torch.randn(1, 8, MEMORY_WIDTH))  # load what is loaded once
    x = torch.randn(1, tokens, MEMORY_WIDTH)
    return lambda: call(x)


def peak(way: str, seed: int, tokens: int) -> float:
    return peak_mib(lambda: measured_call(way, seed, tokens))


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    if condition["measured"] == "memory":
        lengths = [scaled(n, scale) for n in MEMORY_LENGTHS]
        names = list(measured_calls(MEMORY_WIDTH))
        return Outcome({f"mib_{way}": [peak(way, seed, n) for n in lengths] for way in names})
    if condition["measured"] == "ways":
        sides = SIDES if scale == 1 else {36: 1}
        return Outcome(timed_ways(seed, sides, scaled(WAY_ROUNDS, scale)))
    lengths = [scaled(n, scale) for n in LENGTHS[condition["embed_dim"]]]
    return Outcome(timed(condition["embed_dim"], seed, lengths, scaled(ROUNDS, scale)))


PARTS = {
    "products": "the two N x N products and the softmax alone, fused kernel",
    "products_explicit": "the same with the weights written out",
    "attention": "the attention layer, projections included, fused kernel",
    "attention_explicit": "the same with the weights written out",
    "mlp": "the MLP",
    "block": "the whole block, fused kernel",
}
MEMORY = {
    "attention": "the attention layer, fused kernel, without gradients",
    "attention_explicit": "the same with the weights written out",
    "mlp": "the MLP, without gradients",
    "training": "the block forward and back, fused kernel, the gradients included",
    "training_explicit": "the same with the weights written out",
    "copy": "a copy of the tokens, whose bytes are known: it shows what this measurement can see",
}

EXPERIMENT = Experiment(
    what="Time and memory of attention, MLP and a whole block for 16 to 4096 tokens, at the widths "
    "of ViT-Ti and ViT-B, with the fused kernel and with the weights written out; and the time "
    "that cheaper ways take.",
    chosen_on="Nothing was chosen; every size that was measured is shown.",
    metrics={
        **{f"ms_{n}": f"milliseconds of {w}, by length, one image" for n, w in PARTS.items()},
        **{f"mib_{n}": f"peak MiB added by {w}, by memory length" for n, w in MEMORY.items()},
        **{
            f"ratio_{way}": f"time of a whole small model over the untouched one's, by size of "
            f"the image; {words}"
            for way, words in {**TIMED, "explicit": "the weights written out"}.items()
        },
    },
    conditions=[
        *({"measured": "time", "embed_dim": D} for D in HEADS),
        {"measured": "memory"},
        {"measured": "ways"},
    ],
    seeds=range(5),
    run=run,
    data=lambda: {"none": checksum(torch.tensor(MEMORY_LENGTHS))},
    settings={
        "lengths": {str(D): lengths for D, lengths in LENGTHS.items()},
        "memory_lengths": MEMORY_LENGTHS,
        "memory_width": MEMORY_WIDTH,
        "heads": {str(D): h for D, h in HEADS.items()},
        "rounds": ROUNDS,
        "small": SMALL,
        "sides": list(SIDES),
        "mlp_ratio": 4,
    },
    workers=1,
    timing=True,
)
