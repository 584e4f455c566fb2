"""Checks: a stack of chosen layers, equal weights, what ties it, a table."""

from functools import partial

import torch.nn.functional as F
from torch import Tensor

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _stack(x, mixings, mlps, norm, *, before=True, second=True, last=True, keep=1):
    """``before``, ``second`` and ``last``: does the norm stand there?"""
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = keep * x + mix(norm(x) if before else x)
        x = keep * x + mlp(norm(x) if second else x)
    return norm(x) if last else x


def _post_norm(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = norm(x + mix(x))
        x = norm(x + mlp(x))
    return x


def _mixings_first(x, mixings, mlps, norm):
    for layer in [*mixings, *mlps]:
        x = x + layer(norm(x))
    return norm(x)


def _side_by_side(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(norm(x)) + mlp(norm(x))
    return norm(x)


@staged(
    "my_stack",
    ok="each block mixes the tokens in its own way, all else is the same",
    right=_stack,
    mistakes={
        "what comes after the last block?": partial(_stack, last=False),
        "what does a block add to its input, and what would it replace?": partial(_stack, keep=0),
        "the norm stands before a layer here, not after the sum": [
            _post_norm,
            lambda x, mixings, mlps, norm: norm(_post_norm(x, mixings, mlps, norm)),
        ],
        "what stands before the mixing?": partial(_stack, before=False),
        "what stands before the MLP?": partial(_stack, second=False),
        "each block mixes the tokens, then the channels. Did all mixings come first?": (
            _mixings_first
        ),
        "the MLP of a block reads what its mixing has left": _side_by_side,
        "is every block's mixing that of the first?": lambda x, mixings, mlps, norm: _stack(
            x, mixings[:1] * len(mixings), mlps, norm
        ),
        "in which order do the blocks come?": lambda x, mixings, mlps, norm: _stack(
            x, mixings[::-1], mlps[::-1], norm
        ),
    },
)
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

    trial.stage("three blocks")
    otherwise = "x = x + mix(norm(x)), then x = x + mlp(norm(x)), block by block"
    trial.compare(my_stack, x, mixings, mlps, norm, otherwise=otherwise, tolerance=1e-4)
    trial.stage("another depth")
    one = x, mixings[:1], mlps[:1], norm
    question = "is the number of blocks typed somewhere?"
    trial.close(my_stack(*one), _stack(*one), question, tolerance=1e-4)


def _equal(N, D):
    return 2 * D * D / N, N / D + N * N / (2 * D * D)


@staged(
    "my_equal",
    ok="as many weights; attention costs more from N = 0.73 D on",
    right=_equal,
    in_part={
        0: {
            "attention has four matrices: queries, keys, values and the projection": [
                lambda N, D: 3 * D * D / (2 * N),
                lambda N, D: D * D / (2 * N),
            ],
            "the token mixing has two matrices, N x S and S x N": lambda N, D: 4 * D * D / N,
            "the MLP along the channels is another layer": [
                lambda N, D: 4 * D,
                lambda N, D: 6 * D * D / N,
            ],
            "that is the paper's rule, whatever N is": lambda N, D: D / 2,
        },
        1: {
            "attention over token mixing, not the other way round": lambda N, D: (
                1 / _equal(N, D)[1]
            ),
            "are there products without weights in attention?": lambda N, D: N / D,
            "queries with keys, and the weights with the values: two such products": (
                lambda N, D: N / D + N * N / (4 * D * D)
            ),
            "one uses a weight for each of N tokens, the other for each of D channels": [
                lambda N, D: 1,
                lambda N, D: _equal(N, D)[1] * D,
                lambda N, D: _equal(N, D)[1] * D / N,
            ],
            "by how many times, not by how many": lambda N, D: (
                4 * N * D * D + 2 * N * N * D - 4 * D**3
            ),
        },
    },
)
def check_equal(trial: Trial, my_equal):
    """my_equal(N, D): S for attention's number of weights, and attention's cost over that of S."""
    few = 2 * trial.integer(4, 9)
    many = 3 * trial.integer(3, 6)
    for when, N, D in (
        ("few patches", few, few * trial.integer(3, 4)),
        ("three patches for four channels", many, many // 3 * 4),
        ("more patches than channels", 2 * many, many),
    ):
        given = trial.pair(my_equal(N, D))
        for part, stage, name, otherwise in (
            (0, "the hidden width", "S", "2 N S weights in one layer, 4 D^2 in the other"),
            (
                1,
                "multiplications",
                "the ratio",
                "4 N D^2 + 2 N^2 D for one layer, 2 N S D for the other",
            ),
        ):
            trial.stage(f"{stage}, {when}")
            trial.compare(given, N, D, part=part, otherwise=otherwise, tolerance=1e-9, name=name)


_STATEMENTS = {
    "mixing the patches helps on these images": (YES, "compare with the stack that mixes nothing"),
    "attention in the first layer helps on these images": (
        YES,
        "the difference, paired by seed, has an interval of its own. Does it hold zero?",
    ),
    "attention in the last layer helps on these images": (
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


check_places = reading("what differences paired by seed allow one to say", _STATEMENTS)
