"""Checks of chapter 17: a stack of chosen layers, equal weights, what ties it, a table."""

import torch.nn.functional as F
from torch import Tensor

from vitcheck.reading import NO, OPEN, YES, judge
from vitcheck.trial import Trial, staged


@staged("my_stack", ok="each block mixes the tokens in its own way, all else is the same")
def check_stack(trial: Trial, my_stack):
    """my_stack(x, mixings, mlps, norm): x (B, N, D), functions (B, N, D) -> (B, N, D)."""
    B, N, D = 2, 4, 4
    x = trial.randn(B, N, D)
    tables = [trial.randn(N, N) / 2 for _ in range(3)]
    matrices = [trial.randn(D, D) / 2 for _ in range(3)]
    mixings = [lambda x, w=w: w @ x for w in tables]
    mlps = [lambda x, w=w: F.gelu(x @ w) for w in matrices]

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (x.shape[-1],))

    def stack(x, mixings, mlps, before=norm, second=norm, last=norm, keep=1):
        for mix, mlp in zip(mixings, mlps, strict=True):
            x = keep * x + mix(before(x))
            x = keep * x + mlp(second(x))
        return last(x)

    def same(x):
        return x

    after = x
    for mix, mlp in zip(mixings, mlps, strict=True):
        after = norm(after + mix(after))
        after = norm(after + mlp(after))
    apart = x
    for mix in mixings:
        apart = apart + mix(norm(apart))
    for mlp in mlps:
        apart = apart + mlp(norm(apart))
    side = x
    for mix, mlp in zip(mixings, mlps, strict=True):
        side = side + mix(norm(side)) + mlp(norm(side))
    trial.stage("three blocks")
    trial.match(
        my_stack(x, mixings, mlps, norm),
        stack(x, mixings, mlps),
        {
            "what comes after the last block?": stack(x, mixings, mlps, last=same),
            "what does a block add to its input, and what would it replace?": stack(
                x, mixings, mlps, keep=0
            ),
            "the norm stands before a layer here, not after the sum": [after, norm(after)],
            "what stands before the mixing?": stack(x, mixings, mlps, before=same),
            "what stands before the MLP?": stack(x, mixings, mlps, second=same),
            "each block mixes the tokens, then the channels. Did all mixings come first?": norm(
                apart
            ),
            "the MLP of a block reads what its mixing has left": norm(side),
            "is every block's mixing that of the first?": stack(x, mixings[:1] * 3, mlps),
            "in which order do the blocks come?": stack(x, mixings[::-1], mlps[::-1]),
        },
        otherwise="x = x + mix(norm(x)), then x = x + mlp(norm(x)), block by block",
        tolerance=1e-4,
    )
    trial.stage("another depth")
    trial.close(
        my_stack(x, mixings[:1], mlps[:1], norm),
        stack(x, mixings[:1], mlps[:1]),
        "is the number of blocks typed somewhere?",
        tolerance=1e-4,
    )


@staged("my_equal", ok="as many weights; attention costs more from N = 0.73 D on")
def check_equal(trial: Trial, my_equal):
    """my_equal(N, D): S for attention's number of weights, and attention's cost over that of S."""
    few = 2 * trial.integer(4, 9)
    many = 3 * trial.integer(3, 6)
    _equal_at(trial, my_equal, few, few * trial.integer(3, 4), "few patches")
    _equal_at(trial, my_equal, many, many // 3 * 4, "three patches for four channels")
    _equal_at(trial, my_equal, 2 * many, many, "more patches than channels")


def _equal_at(trial: Trial, my_equal, N: int, D: int, when: str) -> None:
    S = 2 * D * D / N
    given = trial.pair(my_equal(N, D))
    trial.stage(f"the hidden width, {when}")
    trial.match(
        trial.number(given[0], name="S"),
        S,
        {
            "attention has four matrices: queries, keys, values and the projection": [
                3 * D * D / (2 * N),
                D * D / (2 * N),
            ],
            "the token mixing has two matrices, N x S and S x N": 4 * D * D / N,
            "the MLP along the channels is another layer": [4 * D, 6 * D * D / N],
            "that is the paper's rule, whatever N is": D / 2,
        },
        otherwise="2 N S weights in one layer, 4 D^2 in the other",
        tolerance=1e-9,
        name="S",
    )
    trial.stage(f"multiplications, {when}")
    own, products, mixing = 4 * N * D * D, 2 * N * N * D, 2 * N * S * D
    trial.match(
        trial.number(given[1], name="the ratio"),
        (own + products) / mixing,
        {
            "attention over token mixing, not the other way round": mixing / (own + products),
            "are there products without weights in attention?": own / mixing,
            "queries with keys, and the weights with the values: two such products": (
                (own + products / 2) / mixing
            ),
            "one uses a weight for each of N tokens, the other for each of D channels": [
                1,
                (own + products) / (2 * N * S),
                (own + products) / (2 * N * S * N),
            ],
            "by how many times, not by how many": own + products - mixing,
        },
        otherwise="4 N D^2 + 2 N^2 D for one layer, 2 N S D for the other",
        tolerance=1e-9,
        name="the ratio",
    )


@staged("my_misfits", ok="one Mixer layer is enough to tie a stack to its grid")
def check_misfits(trial: Trial, my_misfits):
    """my_misfits(layers, positions): how many tensors do not fit a grid with another N."""
    cases = [
        (["attention", "attention"], "learned"),
        (["conv", "conv", "conv"], "none"),
        (["mixer", "attention"], "none"),
        (["conv", "mixer", "mixer"], "none"),
        (["mixer", "attention", "conv", "mixer"], "learned"),
        (["uniform", "none", "attention"], "none"),
    ]
    for layers, positions in cases:
        mixers, learned = layers.count("mixer"), positions == "learned"
        trial.stage(f"{layers}, positions {positions!r}")
        trial.match(
            trial.number(my_misfits(layers, positions), name="misfits"),
            3 * mixers + learned,
            {
                "which of the four tensors of a token mixing do not know N?": 4 * mixers + learned,
                "a bias of the token mixing has N entries, too": 2 * mixers + learned,
                "count tensors, not layers": [mixers + learned] if mixers else [],
                "is there a table with a row for each place?": 3 * mixers if learned else [],
                "there are no positions here": 3 * mixers + 1 if not learned else [],
            },
            otherwise="go through the layers: which shapes hold N?",
            tolerance=0,
            name="misfits",
        )


_STATEMENTS = {
    "mixing the patches helps on these images": (YES, "compare with the stack that mixes nothing"),
    "one attention layer at the beginning helps on these images": (
        YES,
        "the difference, paired by seed, has an interval of its own. Does it hold zero?",
    ),
    "one attention layer at the end helps on these images": (
        OPEN,
        "does the interval of its difference hold zero? And half a point?",
    ),
    "the beginning is a better place for it than the end": (
        OPEN,
        "which difference would have to be in the table? Two that are not alike do not replace it",
    ),
    "four attention layers gain five points or more here": (
        NO,
        "what is the largest gain that the interval allows?",
    ),
    "with ten times as many images the stacks come out alike": (
        OPEN,
        "was any stack trained on more images?",
    ),
}


@staged("my_reading", ok="what differences paired by seed allow one to say")
def check_places(trial: Trial, my_reading):
    """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_reading(), _STATEMENTS)
