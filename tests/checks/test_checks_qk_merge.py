"""Each check of chapter 5 passes the right answer and names the planted mistakes."""

import pytest
import torch

from vitcheck import CheckFailed
from vitcheck.ch05_qk_merge import (
    check_identity_queries,
    check_merge_biases,
    check_multiplies,
    check_parameters,
    check_split,
)


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


def svd_factors(M, d, power=1.0, rows=slice(None), v_transposed=False):
    U, S, Vh = torch.linalg.svd(M)
    left, right = (U * S**power)[:, rows][:, :d], Vh.T[:, rows][:, :d]
    return left, Vh[:, :d] if v_transposed else right


def multiplies(N, D, d, **changed):
    counts = {
        "separate": 2 * N * D * d + N * N * d,
        "reordered": 2 * N * D * d + N * N * D,
        "merged": N * D * D + N * N * D,
    }
    return counts | {way: count(N, D, d) for way, count in changed.items()}


def merge(W_Q, b_Q, W_K, b_K):
    return W_Q @ W_K.T, W_K @ b_Q


def rebase(E, W_Q, W_K, W_V):
    inverse = torch.linalg.inv(W_Q)
    return E @ W_Q, inverse @ W_K, inverse @ W_V


def rebase_by_solving(E, W_Q, W_K, W_V):
    return E @ W_Q, torch.linalg.solve(W_Q, W_K), torch.linalg.solve(W_Q, W_V)


RIGHT = [
    ("parameters", check_parameters, parameters),
    ("parameters as tensors", check_parameters, lambda *s: torch.tensor(parameters(*s)).unbind()),
    ("split by SVD", check_split, split),
    ("split evenly", check_split, balanced_split),
    ("split by projection", check_split, projected_split),
    ("multiplies", check_multiplies, multiplies),
    ("merge", check_merge_biases, merge),
    (
        "merge, constant added",
        check_merge_biases,
        lambda q, b, k, c: (q @ k.T, k @ b + 0 * b.sum()),
    ),
    ("rebase by inverse", check_identity_queries, rebase),
    ("rebase by solving", check_identity_queries, rebase_by_solving),
]


@pytest.mark.parametrize(("check", "answer"), [r[1:] for r in RIGHT], ids=[r[0] for r in RIGHT])
def test_a_right_answer_passes_with_one_line(check, answer, capsys):
    for _ in range(5):  # other inputs each time
        check(answer)
        printed = capsys.readouterr().out
        assert printed.startswith("ok:")
        assert printed.count("\n") == 1


STUBS = [
    (check_parameters, lambda *_: ...),
    (check_parameters, lambda *_: (..., ...)),
    (check_split, lambda *_: ...),
    (check_multiplies, lambda *_: dict.fromkeys(("separate", "reordered", "merged"), ...)),
    (check_merge_biases, lambda *_: ...),
    (check_identity_queries, lambda *_: None),
]


@pytest.mark.parametrize(("check", "answer"), STUBS, ids=lambda part: part.__name__)
def test_an_unanswered_stub_passes_on(check, answer, capsys):
    check(answer)
    assert capsys.readouterr().out.startswith("not answered yet")


MISTAKES = [
    ("swapped", check_parameters, lambda D, h, d: parameters(D, h, d)[::-1], "which is first"),
    ("one matrix", check_parameters, lambda D, h, d: (h * D * d, h * D * D), "one of the two"),
    ("one head", check_parameters, lambda D, h, d: (2 * D * d, D * D), "one head"),
    ("h d = D", check_parameters, lambda D, h, d: (2 * D * D, h * D * D), "h d is not D|W_Q"),
    ("shared M", check_parameters, lambda D, h, d: (2 * h * D * d, D * D), "share scores"),
    ("narrow M", check_parameters, lambda D, h, d: (2 * h * D * d, h * d * d), "wide is a token"),
    ("not a pair", check_parameters, lambda D, h, d: 3, "pair"),
    ("transposed", check_split, lambda M, d: split(M, d)[::-1], "transpose of M"),
    (
        "values in both",
        check_split,
        lambda M, d: (svd_factors(M, d)[0], split(M, d)[1] * torch.linalg.svd(M).S[:d]),
        "into both factors",
    ),
    ("no values", check_split, lambda M, d: svd_factors(M, d, power=0), "where are the singular"),
    (
        "V twice transposed",
        check_split,
        lambda M, d: svd_factors(M, d, v_transposed=True),
        "V transposed",
    ),
    (
        "smallest kept",
        check_split,
        lambda M, d: (
            svd_factors(M, d, rows=slice(-d, None))
            if torch.linalg.matrix_rank(M) > d
            else split(M, d)
        ),
        "smallest",
    ),
    ("first columns", check_split, lambda M, d: (M[:, :d], torch.eye(len(M))[:, :d]), "exactly"),
    (
        "exact only",
        check_split,
        lambda M, d: (M[:, :d], torch.linalg.lstsq(M[:, :d], M).solution.T),
        "worth keeping",
    ),
    ("wrong shape", check_split, lambda M, d: (split(M, d)[0], split(M, d)[1].T), "expected"),
    (
        "FLOPs",
        check_multiplies,
        lambda *s: {way: 2 * count for way, count in multiplies(*s).items()},
        "FLOPs",
    ),
    (
        "keys for free",
        check_multiplies,
        lambda *s: multiplies(*s, separate=lambda N, D, d: N * D * d + N * N * d),
        "who makes the keys",
    ),
    (
        "weights first",
        check_multiplies,
        lambda *s: multiplies(*s, reordered=lambda N, D, d: D * D * d + N * D * D + N * N * D),
        "weight matrices first",
    ),
    (
        "same as separate",
        check_multiplies,
        lambda *s: multiplies(*s, reordered=lambda N, D, d: 2 * N * D * d + N * N * d),
        "last product",
    ),
    (
        "M made again",
        check_multiplies,
        lambda *s: multiplies(*s, merged=lambda N, D, d: D * D * d + N * D * D + N * N * D),
        "M is stored",
    ),
    (
        "one product",
        check_multiplies,
        lambda *s: multiplies(*s, merged=lambda N, D, d: N * D * D),
        "and then",
    ),
    ("a number", check_multiplies, lambda *s: 12, "expected a dict"),
    ("M transposed", check_merge_biases, lambda q, b, k, c: (k @ q.T, k @ b), "transposed"),
    (
        "query bias lost",
        check_merge_biases,
        lambda q, b, k, c: (q @ k.T, torch.zeros(len(q))),
        "disappeared",
    ),
    ("wrong weights", check_merge_biases, lambda q, b, k, c: (q @ k.T, q @ b), "Whose weights"),
    (
        "key bias too",
        check_merge_biases,
        lambda q, b, k, c: (q @ k.T, k @ b + q @ c),
        "same along each row",
    ),
    (
        "key bias times keys",
        check_merge_biases,
        lambda q, b, k, c: (q @ k.T, k @ b + k @ c),
        "changes no weight",
    ),
    ("halved", check_merge_biases, lambda q, b, k, c: (q @ k.T, k @ b / 2), "token that is asked"),
    (
        "only one bias at a time",
        check_merge_biases,
        lambda q, b, k, c: (q @ k.T, k @ (b if c.abs().max() == 0 else 0 * b)),
        "wrong for both",
    ),
    (
        "embedding kept",
        check_identity_queries,
        lambda e, q, k, v: (e, rebase(e, q, k, v)[1], v),
        "must now be the queries",
    ),
    (
        "embedding by the inverse",
        check_identity_queries,
        lambda e, q, k, v: (e @ torch.linalg.inv(q), k, v),
        "What should E become",
    ),
    ("keys kept", check_identity_queries, lambda e, q, k, v: (e @ q, k, v), "other tokens now"),
    (
        "inverse on the wrong side",
        check_identity_queries,
        lambda e, q, k, v: (e @ q, k @ torch.linalg.inv(q), v),
        "wrong side",
    ),
    ("transpose", check_identity_queries, lambda e, q, k, v: (e @ q, q.T @ k, v), "rotation"),
    ("keys twice", check_identity_queries, lambda e, q, k, v: (e @ q, q @ k, v), "old tokens back"),
    (
        "values kept",
        check_identity_queries,
        lambda e, q, k, v: (*rebase(e, q, k, v)[:2], v),
        "Who else reads",
    ),
    (
        "values doubled",
        check_identity_queries,
        lambda e, q, k, v: (*rebase(e, q, k, v)[:2], 2 * rebase(e, q, k, v)[2]),
        "values differ",
    ),
    ("a pair", check_identity_queries, lambda e, q, k, v: (e @ q, k), "three matrices"),
]


@pytest.mark.parametrize(
    ("check", "answer", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_named(check, answer, words):
    with pytest.raises(CheckFailed) as failure:
        check(answer)
    assert any(word in str(failure.value) for word in words.split("|")), str(failure.value)
