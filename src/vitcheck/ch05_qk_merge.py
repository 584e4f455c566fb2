"""Checks of chapter 5: merging W_Q and W_K."""

from __future__ import annotations

import torch
from torch import Tensor

from vitcheck.trial import staged


@staged("my_parameters", ok="both counts, for any width, number and size of heads")
def check_parameters(trial, parameters):
    """Exercise "Count before you merge": parameters(D, h, d) -> (separate, merged)."""
    for D, h, d in ((6, 1, 4), (768, 12, 64), (40 + trial.integer(1, 9), 3, trial.integer(5, 20))):
        trial.stage(f"D = {D}, h = {h}, d = {d}")
        pair = trial.pair(parameters(D, h, d), name="the counts")
        separate = trial.number(pair[0], name="the first count")
        merged = trial.number(pair[1], name="the second count")
        trial.ask(
            (separate, merged) != (h * D * D, 2 * h * D * d), "the two are swapped: which is first?"
        )
        trial.ask(separate != h * D * d, "that is one of the two matrices. Who makes the keys?")
        trial.ask(
            h == 1 or separate != 2 * D * d, "that is one head. Does each have its own matrices?"
        )
        trial.ask(
            h * d == D or separate != 2 * D * D,
            "right if the heads together are as wide as a token. Here h d is not D.",
        )
        trial.close(separate, 2.0 * h * D * d, "separate: what is the shape of one head's W_Q?")
        trial.ask(
            h == 1 or merged != D * D, "merged: one matrix for all heads? Do they share scores?"
        )
        trial.ask(merged != h * d * d, "merged: M stands between two tokens. How wide is a token?")
        trial.close(merged, float(h * D * D), "merged: what is the shape of W_Q W_K^T?")


@staged("my_split", ok="two factors of width d, and no pair of that width comes nearer to M")
def check_split(trial, split):
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
    scale = M.norm()

    def near(other: Tensor) -> bool:
        return bool((got - other).norm() < 1e-3 * scale)

    trial.ask(not near(M.T), "W_Q W_K^T gives the transpose of M. Which factor holds the rows?")
    trial.ask(not near((U * S**2) @ Vh), "the singular values went into both factors, whole")
    trial.ask(not near(U[:, :d] @ Vh[:d]), "where are the singular values?")
    trial.ask(
        not near((U * S) @ Vh.T), "torch.linalg.svd returns V transposed already. Did you see it?"
    )
    trial.ask(near(M), "M has rank d, so two factors of width d can give it exactly")

    trial.stage("a matrix of full rank")
    M = trial.randn(D, D)
    U, S, Vh = torch.linalg.svd(M)
    got = product(M, d)
    possible = S[d:].norm()
    error = (got - M).norm()
    smallest = (U[:, -d:] * S[-d:]) @ Vh[-d:]
    trial.ask(
        (got - smallest).norm() > 1e-3 * scale, "you kept the smallest singular values, not these"
    )
    trial.ask(
        error < 1.001 * possible,
        f"the product misses M by {error:.3f}, and {possible:.3f} is possible. Which d directions "
        "of M are worth keeping?",
    )


@staged("my_multiplies", ok="the three counts; you can now say who wins at any size")
def check_multiplies(trial, multiplies):
    """Exercise "Three ways to count": multiplies(N, D, d) -> dict of three counts."""
    ways = ("separate", "reordered", "merged")
    sizes = [(5, 7, 3), (7, 5, 11), tuple(trial.integer(20, 90) for _ in range(3))]
    for N, D, d in sizes:
        trial.stage(f"N = {N}, D = {D}, d = {d}")
        got = multiplies(N, D, d)
        if not isinstance(got, dict) or set(got) != set(ways):
            trial.fail(f"expected a dict with the keys {', '.join(ways)}, got {got!r}")
        count = {way: trial.number(got[way], name=f"got[{way!r}]") for way in ways}
        want = {
            "separate": 2 * N * D * d + N * N * d,
            "reordered": 2 * N * D * d + N * N * D,
            "merged": N * D * D + N * N * D,
        }
        trial.ask(
            count != {way: 2 * want[way] for way in ways},
            "these are FLOPs: a multiplication and an addition counted as two. We count one.",
        )
        trial.ask(
            count["separate"] != N * D * d + N * N * d, "separate: queries, and who makes the keys?"
        )
        trial.close(
            count["separate"],
            float(want["separate"]),
            "separate: (N, D) times (D, d), twice, then (N, d) times (d, N)",
        )
        trial.ask(
            count["reordered"] != D * D * d + N * D * D + N * N * D,
            "reordered: you multiplied the two weight matrices first. Go from left to right",
        )
        trial.ask(
            count["reordered"] != want["separate"],
            "reordered: which shapes meet in the last product? (N, D), not (N, d)",
        )
        trial.close(
            count["reordered"],
            float(want["reordered"]),
            "reordered: write the shape after each of the three products",
        )
        trial.ask(
            count["merged"] != D * D * d + N * D * D + N * N * D,
            "merged: M is stored. Why make it again for each input?",
        )
        trial.close(
            count["merged"], float(want["merged"]), "merged: x M, and then? Write down the shapes"
        )


@staged("my_merge", ok="one matrix and one vector do the work of two matrices and two biases")
def check_merge_biases(trial, merge):
    """Exercise "Merge the biases too": merge(W_Q, b_Q, W_K, b_K) -> M (D, D), u (D,)."""
    N, D, d = 5, trial.integer(6, 8), 3
    x, W_Q, W_K = trial.randn(N, D), trial.randn(D, d), trial.randn(D, d)
    none = torch.zeros(d)
    shapes = {"M": (D, D), "u": (D,)}

    def answer(b_Q: Tensor, b_K: Tensor) -> list[Tensor]:
        pair = trial.pair(merge(W_Q, b_Q, W_K, b_K), name="the answer")
        return [trial.tensor(a, s, name=n) for a, (n, s) in zip(pair, shapes.items(), strict=True)]

    def weights(scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def agree(b_Q: Tensor, b_K: Tensor) -> bool:
        M, u = answer(b_Q, b_K)
        right = weights((x @ W_Q + b_Q) @ (x @ W_K + b_K).T)
        return torch.allclose(weights(x @ M @ x.T + x @ u), right, atol=1e-4)

    trial.stage("no biases")
    M, u = answer(none, none)
    trial.ask(
        not torch.allclose(M, W_K @ W_Q.T, atol=1e-4),
        "M is transposed: rows of M belong to the token that asks",
    )
    trial.close(M, W_Q @ W_K.T, "M should be the product of the two weights", tolerance=1e-4)
    trial.ask(u.abs() < 1e-5, "without biases nothing is left for u")

    trial.stage("a query bias")
    b_Q, b_K = trial.randn(d), trial.randn(d)
    u = answer(b_Q, none)[1]
    trial.ask(
        u.abs().max() > 1e-5, "the query bias has disappeared. Which of the four terms is it in?"
    )
    trial.ask(
        not torch.allclose(u, W_Q @ b_Q, atol=1e-4),
        "the query bias meets the keys. Whose weights make those?",
    )
    trial.ask(
        agree(b_Q, none), "the weights differ. Which term depends on the token that is asked?"
    )

    trial.stage("a key bias")
    u = answer(none, b_K)[1]
    trial.ask(
        not torch.allclose(u, W_Q @ b_K, atol=1e-4),
        "x W_Q b_K^T belongs to the token that asks: it is the same along each row. Does it count?",
    )
    trial.ask(agree(none, b_K), "a key bias changes no weight. Leave it out")

    trial.stage("both")
    trial.ask(agree(b_Q, b_K), "right for each bias alone, wrong for both")


@staged("my_rebase", ok="no W_Q any more, and every head computes what it did")
def check_identity_queries(trial, rebase):
    """Exercise "A layer without W_Q": rebase(E, W_Q, W_K, W_V) -> E, W_K, W_V of the new layer."""
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

    trial.stage("queries")
    x = inputs @ E
    new_E, new_K, new_V = triple(rebase(E, W_Q, W_K, W_V))
    new_x = inputs @ new_E
    trial.ask(
        not close(new_E, E),
        "the embedding is unchanged, so the tokens are. But they must now be the queries",
    )
    trial.ask(
        close(new_x, x @ W_Q), "the new tokens are not the old queries. What should E become?"
    )

    trial.stage("scores")
    scores = heads(x @ W_Q) @ heads(x @ W_K).mT
    trial.ask(not close(new_K, W_K), "W_K is unchanged, but it meets other tokens now")
    trial.ask(
        not close(new_K, W_K @ torch.linalg.inv(W_Q)),
        "the inverse stands on the wrong side: what does x W_Q have to meet first?",
    )
    trial.ask(
        not close(new_K, W_Q.T @ W_K), "a transpose is an inverse only for a rotation. Is W_Q one?"
    )
    got = heads(new_x) @ heads(new_x @ new_K).mT
    trial.ask(close(got, scores), "the scores differ. How do you get the old tokens back?")

    trial.stage("values")
    trial.ask(not close(new_V, W_V), "the scores are right. Who else reads the tokens?")
    trial.ask(close(new_x @ new_V, x @ W_V), "the values differ from those of the old layer")
