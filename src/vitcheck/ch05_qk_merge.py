"""Checks of chapter 5: merging W_Q and W_K."""

from __future__ import annotations

import torch
from torch import Tensor

from vitcheck.trial import Trial, staged


def _parameters(D, h, d):
    return 2 * h * D * d, h * D * D


@staged(
    "my_parameters",
    ok="both counts, for any width, number and size of heads",
    right=_parameters,
    mistakes={"the two are swapped: which is first?": lambda D, h, d: _parameters(D, h, d)[::-1]},
    in_part={
        0: {
            "that is one of the two matrices. Who makes the keys?": lambda D, h, d: h * D * d,
            "that is one head. Does each have its own matrices?": lambda D, h, d: 2 * D * d,
            "right if the heads together are as wide as a token. Here h d is not D.": (
                lambda D, h, d: 2 * D * D
            ),
        },
        1: {
            "merged: one matrix for all heads? Do they share scores?": lambda D, h, d: D * D,
            "merged: M stands between two tokens. How wide is a token?": (
                lambda D, h, d: h * d * d
            ),
        },
    },
)
def check_parameters(trial: Trial, parameters):
    """Exercise "Count before you merge": parameters(D, h, d) -> (separate, merged)."""
    for D, h, d in ((6, 1, 4), (768, 12, 64), (40 + trial.integer(1, 9), 3, trial.integer(5, 20))):
        trial.stage(f"D = {D}, h = {h}, d = {d}")
        pair = trial.pair(parameters(D, h, d), name="the counts")
        otherwise = "separate: what is the shape of one head's W_Q?"
        trial.compare(pair, D, h, d, part=0, otherwise=otherwise, name="the first count")
        otherwise = "merged: what is the shape of W_Q W_K^T?"
        trial.compare(pair, D, h, d, part=1, otherwise=otherwise, name="the second count")


def _split(M, d, power=1.0, other=0.0):
    """From the singular values, to this power in W_Q and to the other one in W_K."""
    U, S, Vh = torch.linalg.svd(M)
    return U[:, :d] * S[:d] ** power, Vh[:d].T * S[:d] ** other


def _product(factors):
    W_Q, W_K = factors
    return W_Q @ W_K.T


@staged(
    "my_split",
    ok="two factors of width d, and no pair of that width comes nearer to M",
    right=_split,
    mistakes={
        "W_Q W_K^T gives the transpose of M. Which factor holds the rows?": lambda M, d: _split(
            M, d
        )[::-1],
        "the singular values went into both factors, whole": lambda M, d: _split(M, d, other=1.0),
        "where are the singular values?": lambda M, d: _split(M, d, power=0.0),
        "torch.linalg.svd returns V transposed already. Did you see it?": lambda M, d: (
            _split(M, d)[0],
            torch.linalg.svd(M).Vh[:, :d],
        ),
    },
)
def check_split(trial: Trial, split):
    """Exercise "Undo the merge": split(M (D, D), d) -> W_Q, W_K, each (D, d)."""

    def factors(M: Tensor, d: int) -> tuple[Tensor, Tensor]:
        W_Q, W_K = trial.pair(split(M, d), name="the factors")
        shape = (len(M), d)
        return trial.tensor(W_Q, shape, name="W_Q"), trial.tensor(W_K, shape, name="W_K")

    D, d = trial.integer(7, 9), 3
    trial.stage("a matrix of rank d")
    M = trial.randn(D, d) @ trial.randn(d, D)
    got = factors(M, d)
    otherwise = "M has rank d, so two factors of width d can give it exactly"
    if torch.allclose(_product(got), _product(got).T, rtol=1e-3, atol=1e-3):
        otherwise = "W_Q W_K^T is symmetric, and M is not. Eigenvectors will not do"
    trial.compare(got, M, d, part=_product, otherwise=otherwise, tolerance=1e-3)

    trial.stage("a matrix of full rank")
    M = trial.randn(D, D)
    U, S, Vh = torch.linalg.svd(M)
    got = _product(factors(M, d))
    possible = S[d:].norm()
    error = (got - M).norm()
    if error > 1.001 * possible:
        smallest = (U[:, -d:] * S[-d:]) @ Vh[-d:]
        trial.ask(
            (got - smallest).norm() > 1e-3 * M.norm(),
            "you kept the smallest singular values, not these",
        )
        trial.fail(
            f"the product misses M by {error:.3f}, and {possible:.3f} is possible. Which d "
            "directions of M are worth keeping?"
        )


def _multiplies(N, D, d):
    projections = 2 * N * D * d
    return {
        "separate": projections + N * N * d,
        "reordered": projections + N * N * D,
        "merged": N * D * D + N * N * D,
    }


def _weights_first(N, D, d):
    return D * D * d + N * D * D + N * N * D


@staged(
    "my_multiplies",
    ok="the three counts; you can now say who wins at any size",
    right=_multiplies,
    mistakes={
        "these are FLOPs: a multiplication and an addition counted as two. We count one.": (
            lambda N, D, d: {way: 2 * count for way, count in _multiplies(N, D, d).items()}
        )
    },
    in_part={
        "separate": {
            "separate: queries, and who makes the keys?": lambda N, D, d: N * D * d + N * N * d
        },
        "reordered": {
            "reordered: you multiplied the two weight matrices first. Go from left to right": (
                _weights_first
            ),
            "reordered: which shapes meet in the last product? (N, D), not (N, d)": (
                lambda N, D, d: _multiplies(N, D, d)["separate"]
            ),
        },
        "merged": {"merged: M is stored. Why make it again for each input?": _weights_first},
    },
)
def check_multiplies(trial: Trial, multiplies):
    """Exercise "Three ways to count": multiplies(N, D, d) -> dict of three counts."""
    sizes = [(5, 7, 3), (7, 5, 11), (9, 6, 6), tuple(trial.integer(20, 90) for _ in range(3))]
    for N, D, d in sizes:
        trial.stage(f"N = {N}, D = {D}, d = {d}")
        given = trial.answers(multiplies(N, D, d), _multiplies(N, D, d))
        for way, otherwise in (
            ("separate", "separate: (N, D) times (D, d), twice, then (N, d) times (d, N)"),
            ("reordered", "reordered: write the shape after each of the three products"),
            ("merged", "merged: x M, and then? Write down the shapes"),
        ):
            trial.compare(given, N, D, d, part=way, otherwise=otherwise, name=f"got[{way!r}]")


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


def _rebase(E, W_Q, W_K, W_V):
    back = torch.linalg.inv(W_Q)
    return E @ W_Q, back @ W_K, back @ W_V


@staged(
    "my_rebase",
    ok="no W_Q any more, and every head computes what it did",
    right=_rebase,
    in_part={
        0: {
            "the embedding is unchanged, so the tokens are. But they must now be the queries": (
                lambda E, W_Q, W_K, W_V: E
            )
        },
        1: {
            "W_K is unchanged, but it meets other tokens now": lambda E, W_Q, W_K, W_V: W_K,
            "the inverse stands on the wrong side: what does x W_Q have to meet first?": (
                lambda E, W_Q, W_K, W_V: W_K @ torch.linalg.inv(W_Q)
            ),
            "a transpose is an inverse only for a rotation. Is W_Q one?": (
                lambda E, W_Q, W_K, W_V: W_Q.T @ W_K
            ),
        },
        2: {
            "the scores are right. Who else reads the tokens?": lambda E, W_Q, W_K, W_V: W_V,
            "the inverse stands on the wrong side, as it did not for the keys": (
                lambda E, W_Q, W_K, W_V: W_V @ torch.linalg.inv(W_Q)
            ),
        },
    },
)
def check_identity_queries(trial: Trial, rebase):
    """Exercise "A layer without W_Q": rebase(E, W_Q, W_K, W_V) -> E, W_K, W_V of the new layer.

    Any layer with the same scores and values will do; how it is usually made only helps to say
    what went wrong.
    """
    N, P, D, h = 5, 4, 6, trial.integer(2, 3)
    inputs, E = trial.randn(N, P), trial.randn(P, D)
    U, _, Vh = torch.linalg.svd(trial.randn(D, D))
    W_Q = U * torch.linspace(0.5, 2, D) @ Vh  # no rotation, and far from singular
    W_K, W_V = trial.randn(D, D), trial.randn(D, D)

    def triple(value) -> list[Tensor]:
        if isinstance(value, tuple | list) and len(value) == 3:
            shapes = {"the embedding": (P, D), "W_K": (D, D), "W_V": (D, D)}
            pairs = zip(value, shapes.items(), strict=True)
            return [trial.tensor(a, s, name=n) for a, (n, s) in pairs]
        return trial.fail(f"expected three matrices, got {type(value).__name__}")

    def heads(table: Tensor) -> Tensor:
        return table.view(N, h, D // h).transpose(0, 1)  # (h, N, d)

    def close(a: Tensor, b: Tensor) -> bool:
        return bool((a - b).norm() < 1e-3 * (1 + b.norm()))

    def as_usual(part: int, otherwise: str) -> None:
        trial.compare(new, E, W_Q, W_K, W_V, part=part, otherwise=otherwise, tolerance=1e-3)

    x = inputs @ E
    trial.stage("queries")
    new = new_E, new_K, new_V = triple(rebase(E, W_Q, W_K, W_V))
    new_x = inputs @ new_E
    scores = heads(x @ W_Q) @ heads(x @ W_K).mT
    if not close(heads(new_x) @ heads(new_x @ new_K).mT, scores):
        as_usual(0, "the new tokens are not the old queries. What should E become?")
        trial.stage("scores")
        as_usual(1, "the scores differ. How do you get the old tokens back?")
    trial.stage("values")
    if not close(new_x @ new_V, x @ W_V):
        as_usual(2, "the values differ from those of the old layer")
