"""Bmm, matmul, einsum and the fused kernel."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.bmm_matmul_einsum import (
    check_einsum_attention,
    check_strict_matmul,
    check_times,
)


def heads_are_more_queries(q, k, v):
    """No einsum, and no copy: all heads' queries stand in one list."""
    raw = torch.bmm(q.flatten(1, 2), k.mT) / q.shape[-1] ** 0.5
    return torch.bmm(raw.softmax(-1), v).view(*q.shape[:3], -1)


def queries_in_one_list(q, k, v):
    raw = q.flatten(1, 2) @ k.mT / q.shape[-1] ** 0.5
    return (raw.softmax(-1) @ v).view(*q.shape[:3], -1)


def multi_query_by_loops(q, k, v):
    heads = [F.scaled_dot_product_attention(one, k, v) for one in q.unbind(1)]
    return torch.stack(heads, dim=1)


def multi_query_in_double(q, k, v):
    return heads_are_more_queries(q.double(), k.double(), v.double()).float()


def repeated(q, k, v):
    k, v = (x[:, None].repeat(1, q.shape[1], 1, 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v)


def broadcast_by_matmul(q, k, v):  # matmul itself makes the copy
    return (q @ k[:, None].mT / q.shape[-1] ** 0.5).softmax(-1) @ v[:, None]


def stacked_values(q, k, v):
    weights = (torch.einsum("bhqd,bkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, torch.stack([v] * q.shape[1], dim=1))


def repeated_with_double_keys(q, k, v):
    return repeated(q.double(), k.double(), v.double()).float()


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


READ = {
    "the fused kernel is faster here at 4,096 tokens": "yes",
    "the fused kernel is slower here at 128 tokens": "cannot say",
    "at 1,024 tokens explicit takes twice as long or longer": "no",
    "explicit memory grows about with the square of N here": "yes",
    "the fused kernel makes fewer multiplications": "cannot say",
    "the written-out map is why explicit is slower here": "cannot say",
}


CASES = [
    Case(
        check_einsum_attention,
        also={
            "bmm": heads_are_more_queries,
            "@ on three axes": queries_in_one_list,
            "loops": multi_query_by_loops,
            "float64 inside": multi_query_in_double,
            "fused": lambda q, k, v: F.scaled_dot_product_attention(q, k[:, None], v[:, None]),
        },
        wrong={
            "no head axis": (
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
                "your code stopped with RuntimeError",
            ),
            "repeat": (repeated, "the keys are copied for each head by repeat"),
            "repeat in float64": (repeated_with_double_keys, "the keys are copied for each head"),
            "matmul broadcasts": (
                broadcast_by_matmul,
                "the keys are copied for each head by clone and the values are copied",
            ),
            "values stacked": (stacked_values, "but the values are copied for each head by stack"),
        },
    ),
    Case(
        check_strict_matmul,
        right=strict,
        also={"einsum": strict_by_einsum},
        wrong={
            "matmul": (torch.matmul, "an axis is missing"),
            "ranks only": (strict_about_rank_only, "length 1"),
            "bmm": (lambda a, b: torch.bmm(a, b), "3D"),
            "transposed": (lambda a, b: strict(a, b).transpose(-2, -1), "shape"),
        },
    ),
    Case(check_times, also={"in words": lambda: READ}),
]
