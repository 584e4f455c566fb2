"""Checks: merging W_Q and W_K."""

import torch

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _multiplies(n, N, D, d):
    return {
        "separate": n * D * d + N * D * d + n * N * d,
        "reordered": 2 * n * D * d + n * N * D,
        "merged": n * D * D + n * N * D,
    }


def _weights_first(n, N, D, d):
    return D * D * d + n * D * D + n * N * D


@staged(
    "my_multiplies",
    ok="the three counts; you can now say who wins at any size",
    right=_multiplies,
    mistakes={
        "these are FLOPs: a multiplication and an addition counted as two. We count one.": (
            lambda n, N, D, d: {way: 2 * count for way, count in _multiplies(n, N, D, d).items()}
        ),
        "n tokens ask. Which of the N tokens need a query?": (
            lambda n, N, D, d: _multiplies(N, N, D, d)
        ),
        "all N tokens are asked, also by a single query": (
            lambda n, N, D, d: _multiplies(n, n, D, d)
        ),
    },
    in_part={
        "separate": {
            "separate: queries, and who makes the keys?": (
                lambda n, N, D, d: n * D * d + n * N * d
            ),
            "separate: how many tokens have a key?": lambda n, N, D, d: 2 * n * D * d + n * N * d,
        },
        "reordered": {
            "reordered: you multiplied the two weight matrices first. Go from left to right": (
                _weights_first
            ),
            "reordered: which shapes meet in the last product? (n, D), not (n, d)": (
                lambda n, N, D, d: 2 * n * D * d + n * N * d
            ),
            "reordered: W_K meets the queries, not the N tokens that are asked": (
                lambda n, N, D, d: n * D * d + N * D * d + n * N * D
            ),
        },
        "merged": {"merged: M is stored. Why make it again for each input?": _weights_first},
    },
)
def check_multiplies(trial: Trial, multiplies):
    """Exercise "Three ways to count": multiplies(n, N, D, d) -> dict of three counts."""
    sizes = [
        (3, 5, 7, 2),
        (1, 7, 5, 11),
        (9, 9, 6, 6),
        tuple(trial.integer(20, 90) for _ in "nNDd"),
    ]
    for n, N, D, d in sizes:
        trial.stage(f"n = {n}, N = {N}, D = {D}, d = {d}")
        given = trial.answers(multiplies(n, N, D, d), _multiplies(n, N, D, d))
        for way, otherwise in (
            ("separate", "separate: n queries, N keys, then (n, d) times (d, N)"),
            ("reordered", "reordered: write the shape after each of the three products"),
            ("merged", "merged: x M, and then? Write down the shapes"),
        ):
            trial.compare(given, n, N, D, d, part=way, otherwise=otherwise, name=f"got[{way!r}]")


def _merge(W_Q, b_Q, W_K, b_K):
    return W_Q @ W_K.T, W_K @ b_Q


@staged(
    "my_merge",
    ok="one matrix and one vector do the work of two matrices and two biases",
    right=_merge,
    in_part={
        0: {
            "M is transposed: rows of M belong to the token that asks": (
                lambda W_Q, b_Q, W_K, b_K: W_K @ W_Q.T
            ),
            "the scale is to be left out here": lambda W_Q, b_Q, W_K, b_K: (
                W_Q @ W_K.T / W_Q.shape[1] ** 0.5
            ),
        },
        1: {
            "the query bias has disappeared. Which of the four terms is it in?": (
                lambda W_Q, b_Q, W_K, b_K: torch.zeros(len(W_Q))
            ),
            "the query bias meets the keys. Whose weights make those?": (
                lambda W_Q, b_Q, W_K, b_K: W_Q @ b_Q
            ),
            "x W_Q b_K^T belongs to the token that asks: it is the same along each row. Does "
            "it count?": lambda W_Q, b_Q, W_K, b_K: W_K @ b_Q + W_Q @ b_K,
        },
    },
)
def check_merge_biases(trial: Trial, merge):
    """Exercise "Merge the biases too": merge(W_Q, b_Q, W_K, b_K) -> M (D, D), u (D,).

    Both are unique: softmax(x M x^T + x u) is to be right for all tokens x.
    """
    D, d = trial.integer(6, 8), 3
    W_Q, W_K = trial.randn(D, d), trial.randn(D, d)
    b_Q, b_K, none = trial.randn(d), trial.randn(d), torch.zeros(d)
    moved = "M changes with a bias; should it?"
    for stage, q, k, in_M, in_u in (
        (
            "no biases",
            none,
            none,
            "M should be the product of the two weights",
            "without biases nothing is left for u",
        ),
        (
            "a query bias",
            b_Q,
            none,
            moved,
            "the weights differ. Which term depends on the token that is asked?",
        ),
        ("a key bias", none, b_K, moved, "a key bias changes no weight. Leave it out"),
    ):
        trial.stage(stage)
        pair = trial.pair(merge(W_Q, q, W_K, k), name="the answer")
        for part, name, otherwise in ((0, "M", in_M), (1, "u", in_u)):
            trial.compare(
                pair, W_Q, q, W_K, k, part=part, otherwise=otherwise, name=name, tolerance=1e-4
            )
    trial.stage("both")
    M, u = trial.pair(merge(W_Q, b_Q, W_K, b_K), name="the answer")
    trial.close(M, W_Q @ W_K.T, moved, tolerance=1e-4, name="M")
    question = "right for each bias alone, wrong for both"
    trial.close(u, W_K @ b_Q, question, tolerance=1e-4, name="u")


_STATEMENTS = {
    "even weights are worse than two matrices on this task": (
        YES,
        "the difference, paired by seed, has an interval of its own. Does it hold zero?",
    ),
    "merging costs a point or more on this task": (
        NO,
        "what is the largest loss that the interval allows?",
    ),
    "merging helps on this task": (
        OPEN,
        "does the interval of its difference hold zero? And half a point?",
    ),
    "one component makes worse scores than two matrices here": (
        OPEN,
        "its interval holds zero. Does that show that one component is as good?",
    ),
    "merging is harmless where answers depend on the scores": (
        OPEN,
        "would a layer that scores badly have been seen on this task? Look at one component",
    ),
}


check_report = reading(
    "no difference says something only where a difference would have been seen", _STATEMENTS
)
