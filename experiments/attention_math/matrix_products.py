"""Three spellings of one product timed, fused attention's memory and time.

Times are ratios. A copy of known size, whose memory is measured in the same way, shows what the
measurement can see. About 3 minutes.
"""

import statistics
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.memory import peak_mib
from experiments.machinery.timing import turns
from vitbook.layers.attention import scaled_dot_product_attention

SHAPES = ["1x4x8", "8x16x16", "16x64x32", "32x196x64"]  # B, N, d
LENGTHS = [512, 1024, 2048, 4096]
HEADS, HEAD_DIM = 4, 64
CAUSAL_LENGTH = 2048
ROUNDS = {"spellings": 30, "causal": 4}

SPELLINGS = {
    "matmul": lambda q, k: q @ k.transpose(1, 2),
    "einsum": lambda q, k: torch.einsum("bid,bjd->bij", q, k),
}
WAYS = {
    "explicit": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
    "fused": F.scaled_dot_product_attention,
    "copy": lambda q, k, v: v.clone(),  # as large as the output: the control
}
MASKS = {
    "none": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v),
    "unmasked_again": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v),
    "is_causal": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "given_mask": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask),
}


def by_bmm(q: Tensor, k: Tensor) -> Tensor:
    return torch.bmm(q, k.transpose(1, 2))


def ratios(
    calls: dict[str, Callable], given: Sequence[Tensor], rounds: int, at_least: float = 0
) -> dict[str, float]:
    """Median over the rounds of time / time of the first."""
    ready = {name: partial(call, *given) for name, call in calls.items()}
    first, *others = turns(ready, rounds, at_least=at_least).items()
    return {
        name: statistics.median(own / one for own, one in zip(took, first[1], strict=True))
        for name, took in others
    }


def spelled(shape: str, seed: int, rounds: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(seed)
    size = [int(number) for number in shape.split("x")]
    q, k = torch.randn(*size, generator=generator), torch.randn(*size, generator=generator)
    return ratios({"bmm": by_bmm, **SPELLINGS}, (q, k), rounds, at_least=5e-3)


def masked(seed: int, rounds: int, tokens: int) -> dict[str, float]:
    torch.manual_seed(seed)
    given = [torch.randn(1, HEADS, tokens, HEAD_DIM) for _ in range(3)]
    given.append(torch.ones(tokens, tokens, dtype=torch.bool).tril())
    return ratios(MASKS, given, rounds)


def attention_call(way: str, seed: int, tokens: int) -> Callable[[], Tensor]:
    torch.manual_seed(seed)
    call = WAYS[way]
    call(*(torch.randn(1, HEADS, 8, HEAD_DIM) for _ in range(3)))  # load what is loaded once
    q, k, v = (torch.randn(1, HEADS, tokens, HEAD_DIM) for _ in range(3))
    return lambda: call(q, k, v)


def peak(way: str, seed: int, tokens: int) -> float:
    return peak_mib(lambda: attention_call(way, seed, tokens))


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    if condition["measured"] == "memory":
        peaks = {way: [peak(way, seed, scaled(n, scale)) for n in LENGTHS] for way in WAYS}
        return Outcome({f"peak_{way}": values for way, values in peaks.items()})
    found = [spelled(shape, seed, scaled(ROUNDS["spellings"], scale)) for shape in SHAPES]
    masks = masked(seed, scaled(ROUNDS["causal"], scale), scaled(CAUSAL_LENGTH, scale))
    times = {f"{name}_to_bmm": [ratios[name] for ratios in found] for name in SPELLINGS}
    return Outcome(times | {f"{mask}_to_unmasked": ratio for mask, ratio in masks.items()})


EXPERIMENT = Experiment(
    what="The time of matmul and einsum as a multiple of bmm's, the peak memory of explicit and "
    "fused attention, and the time of fused attention with a causal mask.",
    chosen_on="Nothing was chosen; every size that was measured is shown.",
    metrics={
        "matmul_to_bmm": "time of matmul over the time of bmm, median of interleaved rounds, "
        "by shape",
        "einsum_to_bmm": "time of einsum over the time of bmm, median of interleaved rounds, "
        "by shape",
        "is_causal_to_unmasked": "time of fused attention with is_causal=True over its time "
        "without a mask, median of interleaved rounds",
        "given_mask_to_unmasked": "the same with the causal mask given as a tensor",
        "unmasked_again_to_unmasked": "the same without a mask in both, which shows the noise",
        "peak_explicit": "peak memory that one explicit attention call adds to a process of its "
        "own, MiB, by length",
        "peak_fused": "the same for the fused call",
        "peak_copy": "the same for a copy of the values, whose bytes are those of the output: "
        "it shows what this measurement can see",
    },
    conditions=[{"measured": "time"}, {"measured": "memory"}],
    seeds=range(5),
    run=run,
    data=lambda: {"none": checksum(torch.tensor(SHAPES and LENGTHS))},
    settings={
        "shapes": SHAPES,
        "lengths": LENGTHS,
        "heads": HEADS,
        "head_dim": HEAD_DIM,
        "causal_length": CAUSAL_LENGTH,
        "rounds": ROUNDS,
    },
    workers=1,
    timing=True,
)
