"""Checks of chapter 5: merging W_Q and W_K."""

from __future__ import annotations

import torch
from torch import Tensor

from vitcheck.trial import Trial, staged


@staged("my_parameters", ok="both counts, for any width, number and size of heads")
def check_parameters(trial: Trial, parameters):
    """Exercise "Count before you merge": parameters(D, h, d) -> (separate, merged)."""
    for D, h, d in ((6, 1, 4), (768, 12, 64), (40 + trial.integer(1, 9), 3, trial.integer(5, 20))):
        trial.stage(f"D = {D}, h = {h}, d = {d}")
        pair = trial.pair(parameters(D, h, d), name="the counts")
        separate = trial.number(pair[0], name="the first count")
        merged = trial.number(pair[1], name="the second count")
        want = (2 * h * D * d, h * D * D)
        trial.ask(
            (separate, merged) == want or (merged, separate) != want,
            "the two are swapped: which is first?",
        )
        trial.match(
            separate,
            want[0],
            {
                "that is one of the two matrices. Who makes the keys?": h * D * d,
                "that is one head. Does each have its own matrices?": 2 * D * d,
                "right if the heads together are as wide as a token. Here h d is not D.": 2 * D * D,
            },
            otherwise="separate: what is the shape of one head's W_Q?",
            tolerance=0,
        )
        trial.match(
            merged,
            want[1],
            {
                "merged: one matrix for all heads? Do they share scores?": D * D,
                "merged: M stands between two tokens. How wide is a token?": h * d * d,
            },
            otherwise="merged: what is the shape of W_Q W_K^T?",
            tolerance=0,
        )


@staged("my_split", ok="two factors of width d, and no pair of that width comes nearer to M")
def check_split(trial: Trial, split):
    """Exercise "Undo the merge": split(M (D, D), d) -> W_Q, W_K, each (D, d)."""

    def product(M: Tensor, d: int) -> Tensor:
        W_Q, W_K = trial.pair(split(M, d), name="the factors")
        shape = (len(M), d)
        W_Q = trial.tensor(W_Q, shape, name="W_Q")
        return W_Q @ trial.tensor(W_K, shape, name="W_K").T

    D, d = trial.integer(7, 9), 3
    trial.stage("a matrix of rank d")
    M = trial.randn(D, d) @ trial.randn(d, D)
    U, S, Vh = torch.linalg.svd(M)
    got = product(M, d)
    trial.match(
        got,
        M,
        {
            "W_Q W_K^T gives the transpose of M. Which factor holds the rows?": M.T,
            "the singular values went into both factors, whole": (U * S**2) @ Vh,
            "where are the singular values?": U[:, :d] @ Vh[:d],
            "torch.linalg.svd returns V transposed already. Did you see it?": (U * S) @ Vh.T,
            "W_Q W_K^T is symmetric, and M is not. Eigenvectors will not do": (got + got.T) / 2,
        },
        otherwise="M has rank d, so two factors of width d can give it exactly",
        tolerance=1e-3,
    )

    trial.stage("a matrix of full rank")
    M = trial.randn(D, D)
    U, S, Vh = torch.linalg.svd(M)
    got = product(M, d)
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


@staged("my_multiplies", ok="the three counts; you can now say who wins at any size")
def check_multiplies(trial: Trial, multiplies):
    """Exercise "Three ways to count": multiplies(N, D, d) -> dict of three counts."""
    sizes = [(5, 7, 3), (7, 5, 11), (9, 6, 6), tuple(trial.integer(20, 90) for _ in range(3))]
    for N, D, d in sizes:
        trial.stage(f"N = {N}, D = {D}, d = {d}")
        projections = 2 * N * D * d
        weights_first = D * D * d + N * D * D + N * N * D
        want = {
            "separate": projections + N * N * d,
            "reordered": projections + N * N * D,
            "merged": N * D * D + N * N * D,
        }
        got = trial.answers(multiplies(N, D, d), want)
        count = {way: trial.number(got[way], name=f"got[{way!r}]") for way in want}
        trial.ask(
            count != {way: 2 * number for way, number in want.items()},
            "these are FLOPs: a multiplication and an addition counted as two. We count one.",
        )
        mistakes = {
            "separate": {
                "separate: queries, and who makes the keys?": N * D * d + N * N * d,
            },
            "reordered": {
                "reordered: you multiplied the two weight matrices first. Go from left to "
                "right": weights_first,
                "reordered: which shapes meet in the last product? (N, D), not (N, d)": want[
                    "separate"
                ],
            },
            "merged": {
                "merged: M is stored. Why make it again for each input?": weights_first,
            },
        }
        otherwise = {
            "separate": "separate: (N, D) times (D, d), twice, then (N, d) times (d, N)",
            "reordered": "reordered: write the shape after each of the three products",
            "merged": "merged: x M, and then? Write down the shapes",
        }
        for way, number in want.items():
            trial.match(count[way], number, mistakes[way], otherwise=otherwise[way], tolerance=0)


@staged("my_merge", ok="one matrix and one vector do the work of two matrices and two biases")
def check_merge_biases(trial: Trial, merge):
    """Exercise "Merge the biases too": merge(W_Q, b_Q, W_K, b_K) -> M (D, D), u (D,).

    Both are unique: softmax(x M x^T + x u) is to be right for all tokens x.
    """
    D, d = trial.integer(6, 8), 3
    W_Q, W_K = trial.randn(D, d), trial.randn(D, d)
    b_Q, b_K, none = trial.randn(d), trial.randn(d), torch.zeros(d)
    right = W_Q @ W_K.T
    near = 1e-4

    def answer(b_Q, b_K):
        M, u = trial.pair(merge(W_Q, b_Q, W_K, b_K), name="the answer")
        return trial.tensor(M, (D, D), name="M"), trial.tensor(u, (D,), name="u")

    def vector(b_Q, b_K):
        """u, once M is known to be what it was without biases."""
        M, u = answer(b_Q, b_K)
        trial.match(M, right, {}, otherwise="M changes with a bias; should it?", tolerance=near)
        return u

    trial.stage("no biases")
    M, u = answer(none, none)
    trial.match(
        M,
        right,
        {
            "M is transposed: rows of M belong to the token that asks": right.T,
            "the scale is to be left out here": right / d**0.5,
        },
        otherwise="M should be the product of the two weights",
        tolerance=near,
    )
    trial.match(u, torch.zeros(D), {}, otherwise="without biases nothing is left for u")

    trial.stage("a query bias")
    trial.match(
        vector(b_Q, none),
        W_K @ b_Q,
        {
            "the query bias has disappeared. Which of the four terms is it in?": torch.zeros(D),
            "the query bias meets the keys. Whose weights make those?": W_Q @ b_Q,
        },
        otherwise="the weights differ. Which term depends on the token that is asked?",
        tolerance=near,
    )

    trial.stage("a key bias")
    trial.match(
        vector(none, b_K),
        torch.zeros(D),
        {
            "x W_Q b_K^T belongs to the token that asks: it is the same along each row. Does it "
            "count?": W_Q @ b_K,
        },
        otherwise="a key bias changes no weight. Leave it out",
        tolerance=near,
    )

    trial.stage("both")
    trial.match(
        vector(b_Q, b_K),
        W_K @ b_Q,
        {},
        otherwise="right for each bias alone, wrong for both",
        tolerance=near,
    )


@staged("my_rebase", ok="no W_Q any more, and every head computes what it did")
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

    x, back = inputs @ E, torch.linalg.inv(W_Q)
    trial.stage("queries")
    new_E, new_K, new_V = triple(rebase(E, W_Q, W_K, W_V))
    new_x = inputs @ new_E
    scores = heads(x @ W_Q) @ heads(x @ W_K).mT
    if not close(heads(new_x) @ heads(new_x @ new_K).mT, scores):
        trial.match(
            new_E,
            E @ W_Q,
            {
                "the embedding is unchanged, so the tokens are. But they must now be the "
                "queries": E,
            },
            otherwise="the new tokens are not the old queries. What should E become?",
            tolerance=1e-3,
        )
        trial.stage("scores")
        trial.match(
            new_K,
            back @ W_K,
            {
                "W_K is unchanged, but it meets other tokens now": W_K,
                "the inverse stands on the wrong side: what does x W_Q have to meet first?": W_K
                @ back,
                "a transpose is an inverse only for a rotation. Is W_Q one?": W_Q.T @ W_K,
            },
            otherwise="the scores differ. How do you get the old tokens back?",
            tolerance=1e-3,
        )

    trial.stage("values")
    if not close(new_x @ new_V, x @ W_V):
        trial.match(
            new_V,
            back @ W_V,
            {
                "the scores are right. Who else reads the tokens?": W_V,
                "the inverse stands on the wrong side, as it did not for the keys": W_V @ back,
            },
            otherwise="the values differ from those of the old layer",
            tolerance=1e-3,
        )
