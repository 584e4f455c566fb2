"""Chapter 13: what it costs."""

import math

import torch
import torch.nn.functional as F
from case import Case

from vitbook.layers.efficient import window_mask as packaged_mask
from vitcheck.ch13_cost import (
    QUESTIONS,
    check_bill,
    check_reading,
    check_sizes,
    check_window_mask,
)


def bill(
    side,
    P,
    D,
    L,
    classes,
    *,
    cls=1,
    flops=1,
    ratio=4,
    colours=3,
    head=True,
    cut=True,
):
    patches = (side // P) ** 2
    n = patches + cls
    block = (4 + 2 * ratio) * n * D * D + 2 * n * n * D
    ends = (patches * colours * P**2 * D if cut else 0) + (D * classes if head else 0)
    return flops * (L * block + ends)


def bill_by_sums(image_size, patch_size, D, L, classes):
    patches = (image_size // patch_size) ** 2
    shapes = [(patches, 3 * patch_size**2, D), (1, D, classes)]
    n = patches + 1
    block = [(n, D, D)] * 4 + [(n, D, n), (n, n, D), (n, D, 4 * D), (n, 4 * D, D)]
    return sum(a * b * c for a, b, c in shapes + L * block)


def changed(f, **options):
    return lambda *args: f(*args, **options)


EXPONENTS = math.log2(9 / 5), math.log2(20 / 5.2)


def reading(*, a=EXPONENTS[0], b=EXPONENTS[1], crossing=256, fixed=1.0, linear="open"):
    return dict(zip(QUESTIONS, (a, b, crossing, fixed, linear), strict=True))


def window_mask(rows, columns, w, *, cls=(True, True), by=None, invert=False):
    place = torch.arange(rows * columns)
    row, column = place // columns, place % columns
    number = (by or (lambda r, c, p: r // w * columns + c // w))(row, column, place)
    mask = torch.ones(1 + rows * columns, 1 + rows * columns, dtype=torch.bool)
    mask[0, 1:], mask[1:, 0] = cls
    mask[1:, 1:] = number[:, None] == number
    return ~mask if invert else mask


def mask_by_loops(rows, columns, w):
    n = rows * columns
    mask = torch.ones(1 + n, 1 + n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            (r, c), (s, t) = divmod(i, columns), divmod(j, columns)
            mask[1 + i, 1 + j] = (r // w, c // w) == (s // w, t // w)
    return mask


def sizes(q, k, v, size):
    bias = size.log()[:, None, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def sizes_by_hand(q, k, v, size):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).exp() * size[:, None, None]
    return weights / weights.sum(-1, keepdim=True) @ v


def by_scores(change, *, scale=True):
    def attention(q, k, v, size):
        scores = q @ k.mT / (q.shape[-1] ** 0.5 if scale else 1)
        return change(scores, size[:, None, None]) @ v

    return attention


CASES = [
    Case(
        check_bill,
        right=bill,
        also={"sums": bill_by_sums},
        mistakes={
            "no class token": (changed(bill, cls=0), "not a patch"),
            "FLOPs": (changed(bill, flops=2), "those are FLOPs"),
            "grey": (changed(bill, colours=1), "three colours"),
            "no head": (changed(bill, head=False), "into logits"),
            "no embedding": (changed(bill, cut=False), "pixels become tokens"),
            "blocks alone": (changed(bill, cut=False, head=False), "the blocks alone"),
            "narrow MLP": (changed(bill, ratio=1), "how wide is the MLP"),
            "one block": (lambda s, p, D, L, k: bill(s, p, D, 1, k), "how many blocks"),
            "a token embedded": (
                lambda s, p, D, L, k: bill(s, p, D, L, k) + 3 * p * p * D,
                "does the embedding make it",
            ),
            "linear": (
                lambda s, p, D, L, k: bill(s, p, D, L, k) - 2 * L * ((s // p) ** 2 + 1) ** 2 * D,
                "where do two tokens meet",
            ),
            "no output": (
                lambda s, p, D, L, k: bill(s, p, D, L, k) - L * ((s // p) ** 2 + 1) * D * D,
                "which four products",
            ),
            "every token read": (
                lambda s, p, D, L, k: bill(s, p, D, L, k) + (s // p) ** 2 * D * k,
                "read every token",
            ),
        },
    ),
    Case(
        check_reading,
        right=reading,
        also={"rounded": lambda: reading(a=0.85, b=1.94, linear="Open")},
        stubs=(lambda: reading(a=...),),
        mistakes={
            "a ratio": (lambda: reading(a=1.8), "how many times as long"),
            "natural": (lambda: reading(b=math.log(20 / 5.2)), "turns a doubling into 1"),
            "per token": (lambda: reading(a=4 / 512), "ms per token"),
            "turned": (lambda: reading(b=-1.94), "above or below"),
            "two": (lambda: reading(a=2.0), "to which power"),
            "too late": (lambda: reading(crossing=512), "before the crossing"),
            "fixed, first": (lambda: reading(fixed=2.0), "at 128 tokens"),
            "fixed, none": (lambda: reading(fixed=0), "what is left at no tokens"),
            "linear": (lambda: reading(linear="yes"), "is 1.2 linear"),
            "not linear": (lambda: reading(linear="no"), "leave out 1"),
            "neither": (lambda: reading(linear="perhaps"), "answer"),
        },
    ),
    Case(
        check_window_mask,
        right=window_mask,
        also={"loops": mask_by_loops, "package": lambda r, c, w: packaged_mask((r, c), w)},
        mistakes={
            "inverted": (changed(window_mask, invert=True), "other way round"),
            "class token asks nobody": (changed(window_mask, cls=(False, True)), "whom may"),
            "nobody asks it": (changed(window_mask, cls=(True, False)), "who may ask"),
            "alone": (changed(window_mask, cls=(False, False)), "how would the image"),
            "in a row": (
                lambda r, c, w: window_mask(r, c, w, by=lambda a, b, p: p // w),
                "one row",
            ),
            "in sequence": (
                lambda r, c, w: window_mask(r, c, w, by=lambda a, b, p: p // w**2),
                "follow each other",
            ),
            "bands": (
                lambda r, c, w: window_mask(r, c, w, by=lambda a, b, p: a // w),
                "a whole band",
            ),
            "rows for columns": (
                lambda r, c, w: window_mask(
                    r, c, w, by=lambda a, b, p: p // r // w * 100 + p % r // w
                ),
                "rows or columns",
            ),
            "floats": (lambda *a: window_mask(*a).float(), "expected torch.bool"),
            "all": (
                lambda r, c, w: torch.ones(1 + r * c, 1 + r * c, dtype=torch.bool),
                "with whom may patch 0",
            ),
        },
    ),
    Case(
        check_sizes,
        right=sizes,
        also={"by hand": sizes_by_hand},
        mistakes={
            "ignored": (by_scores(lambda s, n: s.softmax(-1)), "change nothing"),
            "added": (by_scores(lambda s, n: (s + n).softmax(-1)), "itself is added"),
            "scores multiplied": (by_scores(lambda s, n: (s * n).softmax(-1)), "are multiplied"),
            "weights multiplied": (by_scores(lambda s, n: s.softmax(-1) * n), "sum to one"),
            "the asker's": (by_scores(lambda s, n: (s + n.mT.log()).softmax(-1)), "along a row"),
            "no root": (
                by_scores(lambda s, n: (s + n.log()).softmax(-1), scale=False),
                "divides the scores",
            ),
            "less": (by_scores(lambda s, n: (s - n.log()).softmax(-1)), "counts less"),
        },
    ),
]
