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


def parameters_by_loops(D, h, d):
    return sum(D * d + D * d for _ in range(h)), sum([D * D] * h)


def balanced_split(M, d):
    U, S, Vh = torch.linalg.svd(M)
    return U[:, :d] * S[:d].sqrt(), Vh[:d].T * S[:d].sqrt()


def projected_split(M, d):  # another factorisation of the same best product
    Vh = torch.linalg.svd(M).Vh[:d]
    return M @ Vh.T, Vh.T


def split_by_eigenvectors(M, d):  # of M^T M, whose eigenvectors are the right singular vectors
    V = torch.linalg.eigh(M.double().T @ M.double()).eigenvectors[:, -d:]
    return [M.double() @ V, V]


def symmetric_split(M, d):
    values, vectors = torch.linalg.eigh((M + M.T) / 2)
    largest = values.abs().argsort(descending=True)[:d]
    return vectors[:, largest] * values[largest], vectors[:, largest]


def smallest_kept(M, d):
    if torch.linalg.matrix_rank(M) == d:
        return projected_split(M, d)
    U, S, Vh = torch.linalg.svd(M)
    return U[:, -d:] * S[-d:], Vh[-d:].T


def multiplies_by_shapes(N, D, d):
    def product(a, b, c):
        return torch.tensor(a * b * c)

    return {
        "merged": product(N, D, D) + product(N, D, N),
        "reordered": product(N, D, d) + product(N, d, D) + product(N, D, N),
        "separate": product(N, D, d) + product(N, D, d) + product(N, d, N),
    }


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


def rebase(E, W_Q, W_K, W_V):
    return E @ W_Q, torch.linalg.solve(W_Q, W_K), torch.linalg.solve(W_Q, W_V)


def rebase_in_float64(E, W_Q, W_K, W_V):
    back = torch.linalg.pinv(W_Q.double())
    return [E.double() @ W_Q.double(), back @ W_K.double(), back @ W_V.double()]


def rebase_with_longer_queries(E, W_Q, W_K, W_V):
    """Queries twice as long, keys half as long: the same scores and values."""
    return rebase(E, 2 * W_Q, W_K / 2, W_V)


CASES = [
    Case(
        check_parameters,
        also={
            "tensors": lambda *s: torch.tensor(parameters_by_loops(*s)).unbind(),
            "loops": parameters_by_loops,
        },
        wrong={
            "biases too": (lambda D, h, d: (2 * h * (D + 1) * d, h * D * D), "one head's W_Q"),
            "off by one": (lambda D, h, d: (2 * h * D * d, h * D * D + 1), "shape of W_Q W_K"),
            "not a pair": (lambda D, h, d: 3, "pair"),
        },
        stubs=(stub, lambda *_: (..., ...)),
    ),
    Case(
        check_split,
        also={
            "evenly": balanced_split,
            "by projection": projected_split,
            "by eigenvectors": split_by_eigenvectors,
        },
        wrong={
            "symmetric part": (symmetric_split, "symmetric, and M is not"),
            "smallest kept": (smallest_kept, "smallest"),
            "first columns": (lambda M, d: (M[:, :d], torch.eye(len(M))[:, :d]), "exactly"),
            "exact only": (
                lambda M, d: (M[:, :d], torch.linalg.lstsq(M[:, :d], M).solution.T),
                "worth keeping",
            ),
            "wrong shape": (lambda M, d: (M[:, :d], M[:d]), "expected"),
        },
    ),
    Case(
        check_multiplies,
        also={"shape by shape": multiplies_by_shapes},
        wrong={
            "one product": (
                lambda *s: multiplies_by_shapes(*s) | {"merged": s[0] * s[1] ** 2},
                "and then",
            ),
            "one too many": (
                lambda *s: multiplies_by_shapes(*s) | {"separate": 1},
                "twice, then",
            ),
            "a number": (lambda *s: 12, "return a dictionary"),
            "no answers": (lambda *s: {}, "lost its answer"),
            "one deleted": (
                lambda *s: {way: multiplies_by_shapes(*s)[way] for way in WAYS[:2]},
                "lost its answer",
            ),
            "renamed": (
                lambda *s: multiplies_by_shapes(*s) | {"re-ordered": 1},
                "not one of the questions",
            ),
        },
        stubs=(stub, lambda *_: dict.fromkeys(WAYS, ...)),
    ),
    Case(
        check_merge_biases,
        also={"loops": merge_by_loops, "einsum": merge_by_einsum},
        wrong={
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
        also={
            "by solving": rebase,
            "float64 inside": rebase_in_float64,
            "longer queries": rebase_with_longer_queries,
        },
        wrong={
            "embedding by the inverse": (
                lambda e, q, k, v: (e @ torch.linalg.inv(q), k, v),
                "What should E become",
            ),
            "keys twice": (lambda e, q, k, v: (e @ q, q @ k, v), "old tokens back"),
            "values doubled": (
                lambda e, q, k, v: (*rebase(e, q, k, v)[:2], 2 * rebase(e, q, k, v)[2]),
                "values differ",
            ),
            "a pair": (lambda e, q, k, v: (e @ q, k), "three matrices"),
        },
        stubs=(stub, lambda *_: None, lambda *_: (..., ..., ...)),
    ),
]
