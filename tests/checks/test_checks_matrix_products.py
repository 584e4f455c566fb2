"""Each check of chapter 3 passes the right answer and names the planted mistakes."""

import pytest
import torch
import torch.nn.functional as F

from vitcheck import CheckFailed
from vitcheck.ch03_bmm_matmul_einsum import (
    check_bmm_scores,
    check_einsum_attention,
    check_shapes,
    check_strict_matmul,
)

SHAPES = {
    "matmul (7, 3, 5) (5, 2)": (7, 3, 2),
    "bmm    (7, 3, 5) (5, 2)": "error",
    "matmul (7, 3, 5) (5,)": (7, 3),
    "matmul (6, 1, 3, 5) (7, 5, 2)": (6, 7, 3, 2),
    "matmul (7, 3, 5) (6, 5, 2)": "error",
}


def scores(q, k):
    product = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2))
    return product.view(*q.shape[:3], k.shape[2])


def reshaped_scores(q, k):  # tokens are read as channels
    B, h, n, d = k.shape
    return torch.bmm(q.flatten(0, 1), k.reshape(B * h, d, n)).view(*q.shape[:3], n)


def swapped_scores(q, k):
    B, h, n, _ = q.shape
    q, k = q.transpose(0, 1).flatten(0, 1), k.transpose(0, 1).flatten(0, 1)
    return torch.bmm(q, k.transpose(1, 2)).view(B, h, n, -1)


def multi_query(q, k, v, scale=None, axis=-1, softmax=True):
    raw = torch.einsum("bhqd,bkd->bhqk", q, k) / (scale or q.shape[-1] ** 0.5)
    return torch.einsum("bhqk,bkd->bhqd", raw.softmax(axis) if softmax else raw, v)


def strict(a, b):
    if a.ndim < 2 or b.ndim < 2 or a.shape[:-2] != b.shape[:-2]:
        raise ValueError("leading axes differ")
    return a @ b


def strict_about_rank_only(a, b):
    if a.ndim != b.ndim:
        raise ValueError("ranks differ")
    return a @ b


RIGHT = [
    (check_shapes, lambda: SHAPES),
    (check_bmm_scores, scores),
    (check_einsum_attention, multi_query),
    (check_strict_matmul, strict),
]

MISTAKES = [
    (check_shapes, lambda: SHAPES | {"bmm    (7, 3, 5) (5, 2)": (7, 3, 2)}, "does not broadcast"),
    (check_shapes, lambda: SHAPES | {"matmul (7, 3, 5) (5,)": (7, 3, 1)}, "how many are left"),
    (check_shapes, lambda: SHAPES | {"matmul (6, 1, 3, 5) (7, 5, 2)": "error"}, "is accepted"),
    (check_shapes, lambda: SHAPES | {"matmul (7, 3, 5) (5, 2)": (7, 3, 5)}, "survives"),
    (check_shapes, lambda: SHAPES | {"matmul (6, 1, 3, 5) (7, 5, 2)": (6, 1, 3, 2)}, "broadcast"),
    (check_shapes, lambda: SHAPES | {"matmul (7, 3, 5) (6, 5, 2)": (7, 3, 2)}, "neither is 1"),
    (check_bmm_scores, lambda q, k: q @ k.transpose(-2, -1), "single torch.bmm"),
    (check_bmm_scores, lambda q, k: scores(q, k) / q.shape[-1] ** 0.5, "raw scores"),
    (check_bmm_scores, reshaped_scores, "reshape where a transpose"),
    (check_bmm_scores, swapped_scores, "in each other's place"),
    (check_bmm_scores, lambda q, k: scores(k, q), "expected (2, 3, 4, 6)"),
    (
        check_bmm_scores,
        lambda q, k: torch.bmm(
            q.view(-1, *q.shape[2:]), k.view(-1, *k.shape[2:]).transpose(1, 2)
        ).view(*q.shape[:3], -1),
        "view size is not compatible",
    ),
    (check_einsum_attention, lambda q, k, v: multi_query(q, k, v, 1), "square root of the head"),
    (check_einsum_attention, lambda q, k, v: multi_query(q, k, v, q.shape[-1]), "instead of its"),
    (check_einsum_attention, lambda q, k, v: multi_query(q, k, v, axis=-2), "sum to one"),
    (
        check_einsum_attention,
        lambda q, k, v: multi_query(q, k, v, softmax=False),
        "where is the softmax",
    ),
    (check_einsum_attention, lambda q, k, v: multi_query(q, k, k), "keys or the values"),
    (
        check_einsum_attention,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        "your code stopped with RuntimeError",
    ),
    (check_strict_matmul, torch.matmul, "an axis is missing"),
    (check_strict_matmul, strict_about_rank_only, "length 1"),
    (check_strict_matmul, lambda a, b: torch.bmm(a, b), "3D"),
    (check_strict_matmul, lambda a, b: strict(a, b).transpose(-2, -1), "shape"),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_the_right_answer_passes(check, answer, capsys):
    check(answer)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize(("check", "answer", "words"), MISTAKES)
def test_a_mistake_is_named(check, answer, words):
    with pytest.raises(CheckFailed) as failure:
        check(answer)
    assert words in str(failure.value)


@pytest.mark.parametrize("check", [check for check, _ in RIGHT])
def test_a_stub_is_not_answered_yet(check, capsys):
    check(lambda *args: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_unfinished_shapes_are_not_answered_yet(capsys):
    check_shapes(lambda: SHAPES | {"matmul (7, 3, 5) (5,)": ...})
    assert capsys.readouterr().out.startswith("not answered yet")
