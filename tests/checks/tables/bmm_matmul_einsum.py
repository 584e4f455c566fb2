"""Bmm, matmul, einsum and the fused kernel."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.bmm_matmul_einsum import check_einsum_attention, check_strict_matmul


def heads_are_more_queries(q, k, v):
    """No einsum, and no copy: all heads' queries stand in one list."""
    raw = torch.bmm(q.flatten(1, 2), k.mT) / q.shape[-1] ** 0.5
    return torch.bmm(raw.softmax(-1), v).view(*q.shape[:3], -1)


def repeated(q, k, v):
    k, v = (x[:, None].repeat(1, q.shape[1], 1, 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v)


def broadcast_by_matmul(q, k, v):  # matmul itself makes the copy
    return (q @ k[:, None].mT / q.shape[-1] ** 0.5).softmax(-1) @ v[:, None]


def stacked_values(q, k, v):
    weights = (torch.einsum("bhqd,bkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, torch.stack([v] * q.shape[1], dim=1))


def strict(a, b):
    if a.ndim < 2 or b.ndim < 2 or a.shape[:-2] != b.shape[:-2]:
        raise ValueError("leading axes differ")
    return a @ b


def strict_by_einsum(a, b):
    if min(a.ndim, b.ndim) < 2 or a.ndim != b.ndim:
        raise ValueError("ranks")
    if any(one != other for one, other in zip(a.shape[:-2], b.shape[:-2], strict=True)):
        raise ValueError("leading axes")
    return torch.einsum("...ij,...jk->...ik", a, b)


def strict_about_rank_only(a, b):
    if a.ndim != b.ndim:
        raise ValueError("ranks differ")
    return a @ b


CASES = [
    Case(
        check_einsum_attention,
        also={
            "bmm": heads_are_more_queries,
            "fused": lambda q, k, v: F.scaled_dot_product_attention(q, k[:, None], v[:, None]),
        },
        wrong={
            "no head axis": (
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
                "your code stopped with RuntimeError",
            ),
            "repeat": (repeated, "the keys are copied for each head by repeat"),
            "matmul broadcasts": (
                broadcast_by_matmul,
                "the keys are copied for each head by clone and the values are copied",
            ),
            "values stacked": (stacked_values, "but the values are copied for each head by stack"),
        },
    ),
    Case(
        check_strict_matmul,
        also={"einsum": strict_by_einsum},
        wrong={
            "matmul": (torch.matmul, "an axis is missing"),
            "ranks only": (strict_about_rank_only, "length 1"),
            "bmm": (lambda a, b: torch.bmm(a, b), "3D"),
            "transposed": (lambda a, b: strict(a, b).transpose(-2, -1), "shape"),
        },
    ),
]
