"""What `qk_merge` times: x W_Q W_K^T x^T in three orders, and one projection against one a head.

All times are ratios, measured in turn within one process with one thread. About 4 minutes.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum
from experiments.machinery.timing import turns

# Separate matrices: (x W_Q) (x W_K)^T. Reordered, from the left: ((x W_Q) W_K^T) x^T. Merged: M is
# there already, (x M) x^T.
ORDERS = {
    "separate": lambda x, wq, wk, m: (x @ wq) @ (x @ wk).T,
    "reordered": lambda x, wq, wk, m: ((x @ wq) @ wk.T) @ x.T,
    "merged": lambda x, wq, wk, m: (x @ m) @ x.T,
}
THREAD = {"tokens": 2000, "embed_dim": 3000, "head_dim": 4000}  # the sizes of the question
SQUARE = {"tokens": 576, "embed_dim": 576}  # equal multiplies at d = D (D + N) / (2 D + N) = 384
WIDTHS = (96, 288, 384, 480, 576)
PROJECTED = {"tokens": 196, "embed_dim": 192}  # a ViT-Ti/16 on 224 x 224 pixels
HEADS = (3, 12)
ROUNDS = {"order, thread": 3, "order, square": 40, "projection": 2000}


def tensors(tokens: int, embed_dim: int, head_dim: int, *, seed: int) -> list[Tensor]:
    """x (N, D), W_Q and W_K (D, d) and M = W_Q W_K^T (D, D)."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, embed_dim, generator=random)
    wq, wk = (torch.randn(embed_dim, head_dim, generator=random) / embed_dim for _ in range(2))
    return [x, wq, wk, wq @ wk.T]


def medians(calls: dict[str, Callable], rounds: int) -> dict[str, float]:
    """Seconds of each call, median over the rounds."""
    took = turns(calls, rounds, clock=time.perf_counter)
    return {name: statistics.median(times) for name, times in took.items()}


def multiplies(order: Callable, tokens: int, embed_dim: int, head_dim: int) -> float:
    """Counted, in 10^9, without computing anything."""
    shapes = [(tokens, embed_dim), *[(embed_dim, head_dim)] * 2, (embed_dim, embed_dim)]
    counter = FlopCounterMode(display=False)
    with counter:
        order(*(torch.empty(shape, device="meta") for shape in shapes))
    return counter.get_total_flops() / 2 / 1e9


def orders(condition: dict, seed: int, scale: float) -> dict[str, float]:
    """Times as ratios and counted multiplications of the three orders."""
    rounds = ROUNDS["order, thread" if condition == THREAD else "order, square"]
    sizes = condition
    if scale != 1:
        sizes, rounds = {name: max(4, size // 25) for name, size in condition.items()}, 3
    given = tensors(**sizes, seed=seed)
    took = medians({n: lambda f=f: f(*given) for n, f in ORDERS.items()}, rounds)
    return {
        "reorder_to_separate": took["reordered"] / took["separate"],
        "merged_to_separate": took["merged"] / took["separate"],
        **{f"multiplies_{name}": multiplies(f, **condition) for name, f in ORDERS.items()},
    }


def projection(kind: str, heads: int, seed: int, rounds: int) -> float:
    """Time of h products with (D, d) matrices, or of another single one, over that of one."""
    x, w, _, _ = tensors(**PROJECTED, head_dim=PROJECTED["embed_dim"], seed=seed)
    blocks = [block.contiguous() for block in w.chunk(heads, dim=1)]
    ways = {"one matrix": lambda: x @ w, "per head": lambda: [x @ block for block in blocks]}
    took = medians({"first": ways["one matrix"], "second": ways[kind]}, rounds)
    return took["second"] / took["first"]


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    if "projection" in condition:
        rounds = max(3, round(ROUNDS["projection"] * scale))
        ratio = projection(condition["projection"], condition["heads"], seed, rounds)
        return Outcome({"time_to_one_matrix": ratio})
    return Outcome(orders(condition, seed, scale))


EXPERIMENT = Experiment(
    what="The time of scores from one merged matrix and from reordered products as a multiple of "
    "the usual order's, and of one projection for each head as a multiple of one for all.",
    chosen_on="Nothing was chosen; every size that was measured is shown.",
    metrics={
        "reorder_to_separate": "time of ((x W_Q) W_K^T) x^T over that of (x W_Q) (x W_K)^T, each "
        "the median of interleaved rounds",
        "merged_to_separate": "the same for (x M) x^T with M = W_Q W_K^T computed before",
        "multiplies_separate": "10^9 multiplications in (x W_Q) (x W_K)^T, counted",
        "multiplies_reordered": "the same in ((x W_Q) W_K^T) x^T",
        "multiplies_merged": "the same in (x M) x^T",
        "time_to_one_matrix": "time of h products x W_h, W_h (D, D / h), over that of one product "
        'x W, W (D, D); "one matrix": the same product against itself, which shows the noise',
    },
    conditions=[
        THREAD,
        *({**SQUARE, "head_dim": d} for d in WIDTHS),
        *({"projection": p, "heads": h} for p in ("one matrix", "per head") for h in HEADS),
    ],
    seeds=range(5),
    run=run,
    data=lambda: {"none": checksum(torch.tensor(WIDTHS))},
    settings={"projected": PROJECTED, "rounds": ROUNDS},
    workers=1,
    timing=True,
)
