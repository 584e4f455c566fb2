"""Chapter 5: merging W_Q and W_K."""

import torch
from case import Case, stub

from vitcheck.ch05_qk_merge import (
    check_identity_queries,
    check_merge_biases,
    check_multiplies,
    check_parameters,
    check_split,
)

WAYS = ("separate", "reordered", "merged")


def parameters(D, h, d):
    return h * 2 * D * d, h * D * D


def split(M, d):
    U, S, Vh = torch.linalg.svd(M)
    return U[:, :d] * S[:d], Vh[:d].T


def balanced_split(M, d):
    U, S, Vh = torch.linalg.svd(M)
    return U[:, :d] * S[:d].sqrt(), Vh[:d].T * S[:d].sqrt()


def projected_split(M, d):  # another factorisation of the same best product
    Vh = torch.linalg.svd(M).Vh[:d]
    return M @ Vh.T, Vh.T


def split_by_eigenvectors(M, d):  # of M^T M, whose eigenvectors are the right singular vectors
    V = torch.linalg.eigh(M.double().T @ M.double()).eigenvectors[:, -d:]
    return [M.double() @ V, V]


def svd_factors(M, d, power=1.0, rows=slice(None), v_transposed=False):
    U, S, Vh = torch.linalg.svd(M)
    left, right = (U * S**power)[:, rows][:, :d], Vh.T[:, rows][:, :d]
    return left, Vh[:, :d] if v_transposed else right


def symmetric_split(M, d):
    values, vectors = torch.linalg.eigh((M + M.T) / 2)
    largest = values.abs().argsort(descending=True)[:d]
    return vectors[:, largest] * values[largest], vectors[:, largest]


def multiplies(N, D, d, **changed):
    counts = {
        "separate": 2 * N * D * d + N * N * d,
        "reordered": 2 * N * D * d + N * N * D,
        "merged": N * D * D + N * N * D,
    }
    return counts | {way: count(N, D, d) for way, count in changed.items()}


def multiplies_by_shapes(N, D, d):
    def product(a, b, c):
        return torch.tensor(a * b * c)

    return {
        "merged": product(N, D, D) + product(N, D, N),
        "reordered": product(N, D, d) + product(N, d, D) + product(N, D, N),
        "separate": product(N, D, d) + product(N, D, d) + product(N, d, N),
    }


def merge(W_Q, b_Q, W_K, b_K):
    return W_Q @ W_K.T, W_K @ b_Q


def merge_by_loops(W_Q, b_Q, W_K, b_K):
    D, d = W_Q.shape
    M, u = torch.zeros(D, D), torch.zeros(D)
    for a in range(D):
        for c in range(d):
            u[a] += W_K[a, c] * b_Q[c]
            for b in range(D):
                M[a, b] += W_Q[a, c] * W_K[b, c]
    return [M, u]


def merge_by_einsum(W_Q, b_Q, W_K, b_K):
    return torch.einsum("ac,bc->ab", W_Q, W_K), torch.einsum("ac,c->a", W_K, b_Q)


def merge_in_float64(W_Q, b_Q, W_K, b_K):
    return merge(W_Q.double(), b_Q.double(), W_K.double(), b_K.double())


def rebase(E, W_Q, W_K, W_V):
    inverse = torch.linalg.inv(W_Q)
    return E @ W_Q, inverse @ W_K, inverse @ W_V


def rebase_by_solving(E, W_Q, W_K, W_V):
    return E @ W_Q, torch.linalg.solve(W_Q, W_K), torch.linalg.solve(W_Q, W_V)


def rebase_in_float64(E, W_Q, W_K, W_V):
    back = torch.linalg.pinv(W_Q.double())
    return [E.double() @ W_Q.double(), back @ W_K.double(), back @ W_V.double()]


def rebase_with_longer_queries(E, W_Q, W_K, W_V):
    """Queries twice as long, keys half as long: the same scores and values."""
    new_E, new_K, new_V = rebase(E, 2 * W_Q, W_K / 2, W_V)
    return new_E, new_K, new_V


CASES = [
    Case(
        check_parameters,
        right=parameters,
        also={
            "tensors": lambda *s: torch.tensor(parameters(*s)).unbind(),
            "loops": lambda D, h, d: (sum(D * d + D * d for _ in range(h)), sum([D * D] * h)),
        },
        wrong={
            "swapped": (lambda D, h, d: parameters(D, h, d)[::-1], "which is first"),
            "one matrix": (lambda D, h, d: (h * D * d, h * D * D), "one of the two"),
            "one head": (lambda D, h, d: (2 * D * d, D * D), "one head"),
            "h d = D": (lambda D, h, d: (2 * D * D, h * D * D), "h d is not D"),
            "shared M": (lambda D, h, d: (2 * h * D * d, D * D), "share scores"),
            "narrow M": (lambda D, h, d: (2 * h * D * d, h * d * d), "wide is a token"),
            "biases too": (lambda D, h, d: (2 * h * (D + 1) * d, h * D * D), "one head's W_Q"),
            "off by one": (lambda D, h, d: (2 * h * D * d, h * D * D + 1), "shape of W_Q W_K"),
            "not a pair": (lambda D, h, d: 3, "pair"),
        },
        stubs=(stub, lambda *_: (..., ...)),
    ),
    Case(
        check_split,
        right=split,
        also={
            "evenly": balanced_split,
            "by projection": projected_split,
            "by eigenvectors": split_by_eigenvectors,
        },
        wrong={
            "transposed": (lambda M, d: split(M, d)[::-1], "transpose of M"),
            "values in both": (
                lambda M, d: (svd_factors(M, d)[0], split(M, d)[1] * torch.linalg.svd(M).S[:d]),
                "into both factors",
            ),
            "no values": (lambda M, d: svd_factors(M, d, power=0), "where are the singular"),
            "V twice transposed": (
                lambda M, d: svd_factors(M, d, v_transposed=True),
                "V transposed",
            ),
            "symmetric part": (symmetric_split, "symmetric, and M is not"),
            "smallest kept": (
                lambda M, d: (
                    svd_factors(M, d, rows=slice(-d, None))
                    if torch.linalg.matrix_rank(M) > d
                    else split(M, d)
                ),
                "smallest",
            ),
            "first columns": (lambda M, d: (M[:, :d], torch.eye(len(M))[:, :d]), "exactly"),
            "exact only": (
                lambda M, d: (M[:, :d], torch.linalg.lstsq(M[:, :d], M).solution.T),
                "worth keeping",
            ),
            "wrong shape": (lambda M, d: (split(M, d)[0], split(M, d)[1].T), "expected"),
        },
    ),
    Case(
        check_multiplies,
        right=multiplies,
        also={"shape by shape": multiplies_by_shapes},
        wrong={
            "FLOPs": (
                lambda *s: {way: 2 * count for way, count in multiplies(*s).items()},
                "FLOPs",
            ),
            "keys for free": (
                lambda *s: multiplies(*s, separate=lambda N, D, d: N * D * d + N * N * d),
                "who makes the keys",
            ),
            "weights first": (
                lambda *s: multiplies(
                    *s, reordered=lambda N, D, d: D * D * d + N * D * D + N * N * D
                ),
                "weight matrices first",
            ),
            "same as separate": (
                lambda *s: multiplies(*s, reordered=lambda N, D, d: 2 * N * D * d + N * N * d),
                "last product",
            ),
            "M made again": (
                lambda *s: multiplies(*s, merged=lambda N, D, d: D * D * d + N * D * D + N * N * D),
                "M is stored",
            ),
            "one product": (
                lambda *s: multiplies(*s, merged=lambda N, D, d: N * D * D),
                "and then",
            ),
            "one too many": (
                lambda *s: multiplies(*s, separate=lambda N, D, d: 2 * N * D * d + N * N * d + 1),
                "twice, then",
            ),
            "a number": (lambda *s: 12, "return a dictionary"),
            "no answers": (lambda *s: {}, "lost its answer"),
            "one deleted": (
                lambda *s: {way: multiplies(*s)[way] for way in WAYS[:2]},
                "lost its answer",
            ),
            "renamed": (
                lambda *s: multiplies(*s) | {"re-ordered": 1},
                "not one of the questions",
            ),
        },
        stubs=(stub, lambda *_: dict.fromkeys(WAYS, ...)),
    ),
    Case(
        check_merge_biases,
        right=merge,
        also={
            "constant added": lambda q, b, k, c: (q @ k.T, k @ b + 0 * b.sum()),
            "loops": merge_by_loops,
            "einsum": merge_by_einsum,
            "float64 inside": merge_in_float64,
        },
        wrong={
            "M transposed": (lambda q, b, k, c: (k @ q.T, k @ b), "transposed"),
            "scaled": (lambda q, b, k, c: (q @ k.T / q.shape[1] ** 0.5, k @ b), "the scale"),
            "query bias lost": (
                lambda q, b, k, c: (q @ k.T, torch.zeros(len(q))),
                "disappeared",
            ),
            "wrong weights": (lambda q, b, k, c: (q @ k.T, q @ b), "Whose weights"),
            "key bias too": (lambda q, b, k, c: (q @ k.T, k @ b + q @ c), "same along each row"),
            "key bias instead": (lambda q, b, k, c: (q @ k.T, q @ c), "disappeared"),
            "key bias times keys": (
                lambda q, b, k, c: (q @ k.T, k @ b + k @ c),
                "changes no weight",
            ),
            "halved": (lambda q, b, k, c: (q @ k.T, k @ b / 2), "token that is asked"),
            "bias in M": (
                lambda q, b, k, c: ((q + b) @ k.T, k @ b),
                "M changes with a bias",
            ),
            "only one bias at a time": (
                lambda q, b, k, c: (q @ k.T, k @ (b if c.abs().max() == 0 else 0 * b)),
                "wrong for both",
            ),
            "u as a column": (lambda q, b, k, c: (q @ k.T, (k @ b)[:, None]), "u has the shape"),
        },
    ),
    Case(
        check_identity_queries,
        right=rebase,
        also={
            "by solving": rebase_by_solving,
            "float64 inside": rebase_in_float64,
            "longer queries": rebase_with_longer_queries,
        },
        wrong={
            "embedding kept": (
                lambda e, q, k, v: (e, rebase(e, q, k, v)[1], v),
                "must now be the queries",
            ),
            "embedding by the inverse": (
                lambda e, q, k, v: (e @ torch.linalg.inv(q), k, v),
                "What should E become",
            ),
            "keys kept": (lambda e, q, k, v: (e @ q, k, v), "other tokens now"),
            "inverse on the wrong side": (
                lambda e, q, k, v: (e @ q, k @ torch.linalg.inv(q), v),
                "wrong side",
            ),
            "transpose": (lambda e, q, k, v: (e @ q, q.T @ k, v), "rotation"),
            "keys twice": (lambda e, q, k, v: (e @ q, q @ k, v), "old tokens back"),
            "values kept": (
                lambda e, q, k, v: (*rebase(e, q, k, v)[:2], v),
                "Who else reads",
            ),
            "values on the wrong side": (
                lambda e, q, k, v: (*rebase(e, q, k, v)[:2], v @ torch.linalg.inv(q)),
                "wrong side",
            ),
            "values doubled": (
                lambda e, q, k, v: (*rebase(e, q, k, v)[:2], 2 * rebase(e, q, k, v)[2]),
                "values differ",
            ),
            "a pair": (lambda e, q, k, v: (e @ q, k), "three matrices"),
        },
        stubs=(stub, lambda *_: None, lambda *_: (..., ..., ...)),
    ),
]
