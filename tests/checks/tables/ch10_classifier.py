"""Chapter 10: the classifier."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from case import Case, stub
from torch import nn

from vitcheck.ch10_classifier import (
    check_in_line,
    check_losses,
    check_merge_qkv,
    check_readout,
    check_vit_parameters,
)


def readout_by_loops(features, pool):
    rows = []
    for tokens in features:
        patches = [token for i, token in enumerate(tokens) if i > 0]
        rows.append(tokens[0] if pool == "cls" else sum(patches) / len(patches))
    return torch.stack(rows)


def readout_by_einsum(features, pool):
    weights = torch.zeros(features.shape[1])
    if pool == "cls":
        weights[0] = 1
    else:
        weights[1:] = 1 / (len(weights) - 1)
    return torch.einsum("bnd,n->bd", features, weights)


def mean_is(mean):
    """The class token is right, and for "mean" this is returned."""
    return lambda f, pool: f[:, 0] if pool == "cls" else mean(f)


def in_line_by_rows(cls, patches, table):
    first = torch.zeros(1, table.shape[1])  # a row of zeros for the class token
    return joined(cls, patches) + torch.cat([first, table])


def in_line_by_loops(cls, patches, table):
    images = []
    for image in patches:
        rows = [cls[0, 0]] + [patch + row for patch, row in zip(image, table, strict=True)]
        images.append(torch.stack(rows))
    return torch.stack(images)


def joined(cls, patches):
    return torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)


def count(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    D, tokens = embed_dim, (image_size // patch_size) ** 2 + 1
    patches = patch_size**2 * in_channels * D + D + D + tokens * D  # and class token, positions
    return patches + depth * (12 * D * D + 13 * D) + 2 * D + (D + 1) * num_classes


def merge(q, k, v):
    return torch.cat([q.weight, k.weight, v.weight]), torch.cat([q.bias, k.bias, v.bias])


def merge_into_a_layer(q, k, v):
    qkv = nn.Linear(q.in_features, 3 * q.in_features)
    with torch.no_grad():
        for i, layer in enumerate((q, k, v)):
            rows = slice(i * q.in_features, (i + 1) * q.in_features)
            qkv.weight[rows], qkv.bias[rows] = layer.weight, layer.bias
    return qkv.weight, qkv.bias


def merge_by_probing(q, k, v):
    """What the layers do to the unit vectors, and to nothing."""
    units, nothing = torch.eye(q.in_features), torch.zeros(q.in_features)
    bias = torch.cat([layer(nothing) for layer in (q, k, v)])
    return torch.cat([layer(units) for layer in (q, k, v)], dim=1).T - bias[:, None], bias


def weight_is(weight):
    """The biases are right, and this is the weight."""
    return lambda q, k, v: (weight(q.weight, k.weight, v.weight), merge(q, k, v)[1])


def bias_is(bias):
    """The weight is right, and this is the bias."""
    return lambda q, k, v: (merge(q, k, v)[0], bias(q.bias, k.bias, v.bias))


def by_head(*weights, heads=3):
    return torch.stack(weights).unflatten(1, (heads, -1)).transpose(0, 1).flatten(0, 2)


def losses_by_torch(K):
    target = torch.zeros(1, dtype=torch.long)
    equal, sure = torch.zeros(1, K), torch.full((1, K), -1e9)
    sure[0, 0] = 1e9
    return F.cross_entropy(equal, target), F.cross_entropy(sure.softmax(-1), target).item()


def losses_by_numpy(K):
    return np.log(K), np.log(np.e + K - 1) - 1


CASES = [
    Case(
        check_readout,
        also={"loops": readout_by_loops, "einsum": readout_by_einsum},
        wrong={
            "last token": (lambda f, pool: readout_by_loops(f.flip(1), pool), "the last token"),
            "first patch": (
                lambda f, pool: readout_by_loops(f[:, 1:], pool),
                "which row of an image",
            ),
            "wrong axis": (mean_is(lambda f: f[:, 1:].mean(2)), "expected"),
            "median": (mean_is(lambda f: f[:, 1:].median(1).values), "what is the mean"),
            "in place": (mean_is(lambda f: f[:, 1:].mul_(1.0).mean(1)), "in place"),
        },
    ),
    Case(
        check_in_line,
        also={"a row of zeros": in_line_by_rows, "loops": in_line_by_loops},
        wrong={
            "reversed": (lambda c, p, t: joined(c, p + t.flip(0)), "is row n of the table"),
            "twice the token": (lambda c, p, t: joined(2 * c, p + t), "before any block"),
            "no token": (lambda c, p, t: p + t, "expected (2, 7, 5)"),
            "in place": (lambda c, p, t: joined(c, p.add_(t)), "in place"),
        },
    ),
    Case(
        check_vit_parameters,
        also={"in letters": count, "a tensor": lambda *a: torch.tensor(count(*a))},
        wrong={
            "too many": (lambda *a: 2 * count(*a), "too many"),
            "one less": (lambda *a: count(*a) - 1, "1 are missing"),
            "one more": (lambda *a: count(*a) + 1, "1 too many"),
        },
    ),
    Case(
        check_merge_qkv,
        also={"a layer": merge_into_a_layer, "probing": merge_by_probing},
        wrong={
            "side by side": (weight_is(lambda *w: torch.cat(w, 1)), "expected (36, 12)"),
            "by head, biases too": (
                lambda q, k, v: (
                    by_head(q.weight, k.weight, v.weight),
                    by_head(q.bias[:, None], k.bias[:, None], v.bias[:, None])[:, 0],
                ),
                "sorted by head",
            ),
            "a third is neither": (
                weight_is(lambda q, k, v: torch.cat([q, k + v, v])),
                "the second third is none",
            ),
            "k and v swapped": (bias_is(lambda q, k, v: torch.cat([q, v, k])), "their own bias"),
            "q and k swapped": (
                bias_is(lambda q, k, v: torch.cat([k, q, v])),
                "bias of q where it belongs",
            ),
            "only q": (bias_is(lambda q, k, v: torch.cat([q, 0 * k, 0 * v])), "their own bias"),
            "no pair": (lambda q, k, v: merge(q, k, v)[0], "should be a pair"),
        },
        stubs=(stub, lambda q, k, v: (..., ...)),
    ),
    Case(
        check_losses,
        also={"by torch": losses_by_torch, "by numpy": losses_by_numpy},
        wrong={
            "another start": (lambda K: (3.0, 0.0), "which probability has the right class"),
            "another floor": (lambda K: (math.log(K), 0.1), "feed cross_entropy"),
            "one number": (lambda K: math.log(K), "should be a pair"),
        },
        stubs=(stub, lambda K: (math.log(K), ...)),
    ),
]
