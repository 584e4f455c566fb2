"""Chapter 10: the classifier."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from case import Case, stub
from torch import nn

from vitbook.models.vit import VisionTransformer
from vitcheck.ch10_classifier import (
    check_in_line,
    check_losses,
    check_merge_qkv,
    check_readout,
    check_vit_parameters,
)


def readout(features, pool):
    return features[:, 0] if pool == "cls" else features[:, 1:].mean(1)


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


def in_line(cls, patches, table):
    return torch.cat([cls.expand(len(patches), -1, -1), patches + table], dim=1)


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


def count(
    image_size,
    patch_size,
    in_channels,
    num_classes,
    embed_dim,
    depth,
    *,
    block_biases=9,
    block_norms=4,
    others=2,
    head_bias=1,
    last_norm=2,
    squares=12,
    channels=None,
):
    D, pixels = embed_dim, patch_size**2 * (channels or in_channels)
    tokens = (image_size // patch_size) ** 2
    patches = pixels * D + D + (tokens + others) * D  # others: class token and its row
    blocks = depth * (squares * D * D + (block_biases + block_norms) * D)
    return patches + blocks + last_norm * D + D * num_classes + head_bias * num_classes


def count_by_building(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    model = VisionTransformer(
        image_size=image_size,
        patch_size=patch_size,
        in_channels=in_channels,
        num_classes=num_classes,
        embed_dim=embed_dim,
        depth=depth,
        num_heads=1,
    )
    return sum(p.numel() for p in model.parameters())


def weights_alone(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    """Without biases; the norms' biases are biases too."""
    D, all_ = embed_dim, count(image_size, patch_size, in_channels, num_classes, embed_dim, depth)
    return all_ - (D + depth * 11 * D + D + num_classes)


def changed(**settings):
    return lambda *sizes: count(*sizes, **settings)


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


def taking_turns(*parts):
    return torch.stack(parts, 1).flatten(0, 1)


def losses(K):
    return math.log(K), math.log(math.e + K - 1) - 1


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
        right=readout,
        also={"loops": readout_by_loops, "einsum": readout_by_einsum},
        mistakes={
            "last token": (lambda f, pool: readout(f.flip(1), pool), "the last token"),
            "always a mean of all": (lambda f, pool: f.mean(1), "is pool looked at"),
            "always the mean": (lambda f, pool: f[:, 1:].mean(1), "is pool looked at"),
            "always the token": (lambda f, pool: f[:, 0], "the class token again"),
            "first patch": (lambda f, pool: readout(f[:, 1:], pool), "which row of an image"),
            "token in the mean": (mean_is(lambda f: f.mean(1)), "is it in your mean"),
            "sum": (mean_is(lambda f: f[:, 1:].sum(1)), "a sum"),
            "divided by all": (
                mean_is(lambda f: f[:, 1:].sum(1) / f.shape[1]),
                "number you divide by",
            ),
            "last left out": (mean_is(lambda f: f[:, :-1].mean(1)), "left out the last patch"),
            "wrong axis": (mean_is(lambda f: f[:, 1:].mean(2)), "expected"),
            "one patch": (mean_is(lambda f: f[:, 1]), "may the order"),
            "median": (mean_is(lambda f: f[:, 1:].median(1).values), "what is the mean"),
            "in place": (mean_is(lambda f: f[:, 1:].mul_(1.0).mean(1)), "in place"),
        },
    ),
    Case(
        check_in_line,
        right=in_line,
        also={"a row of zeros": in_line_by_rows, "loops": in_line_by_loops},
        mistakes={
            "off by one": (
                lambda c, p, t: joined(c, p) + F.pad(t, (0, 0, 0, 1)),
                "took the row of the first patch",
            ),
            "at the end": (
                lambda c, p, t: torch.cat([p + t, c.expand(len(p), -1, -1)], 1),
                "at the end",
            ),
            "at the end, no places": (
                lambda c, p, t: torch.cat([p, c.expand(len(p), -1, -1)], 1),
                "at the end",
            ),
            "no places": (lambda c, p, t: joined(c, p), "was told its place"),
            "next row": (
                lambda c, p, t: joined(c, p + F.pad(t[1:], (0, 0, 0, 1))),
                "the row of the next one",
            ),
            "row before": (
                lambda c, p, t: joined(c, p + F.pad(t[:-1], (0, 0, 1, 0))),
                "the one before",
            ),
            "reversed": (lambda c, p, t: joined(c, p + t.flip(0)), "is row n of the table"),
            "twice the token": (lambda c, p, t: joined(2 * c, p + t), "before any block"),
            "no token": (lambda c, p, t: p + t, "expected (2, 7, 5)"),
            "in place": (lambda c, p, t: joined(c, p.add_(t)), "in place"),
        },
    ),
    Case(
        check_vit_parameters,
        right=count,
        also={"by building it": count_by_building, "a tensor": lambda *a: torch.tensor(count(*a))},
        mistakes={
            "head without bias": (changed(head_bias=0), "has the head a bias"),
            "no row of the token": (changed(others=1), "its row of the table"),
            "no token": (changed(others=0), "the class token and its row"),
            "no last norm": (changed(last_norm=0), "the last norm"),
            "no norms": (changed(block_norms=0), "how many norms has a block"),
            "no biases in blocks": (changed(block_biases=0), "layers of a block have a bias"),
            "q, k, v without bias": (changed(block_biases=6), "queries, keys and values"),
            "neither": (changed(block_biases=0, block_norms=0), "norms, and the biases"),
            "no positions": (
                lambda *a: count(*a) - ((a[0] // a[1]) ** 2 + 1) * a[4],
                "the table of positions",
            ),
            "weights alone": (weights_alone, "Biases learn too"),
            "one block": (lambda *a: count(*a[:5], 1), "that is one block"),
            "no projection": (changed(squares=8), "projects the heads' output"),
            "one channel": (changed(channels=1), "a patch of C channels"),
            "three channels": (changed(channels=3), "a patch of C channels"),
            "too many": (changed(squares=24), "too many"),
            "one less": (lambda *a: count(*a) - 1, "1 are missing"),
            "one more": (lambda *a: count(*a) + 1, "1 too many"),
        },
    ),
    Case(
        check_merge_qkv,
        right=merge,
        also={"a layer": merge_into_a_layer, "probing": merge_by_probing},
        mistakes={
            "k first": (lambda q, k, v: merge(k, q, v), "the order is k, q, v"),
            "q twice": (lambda q, k, v: merge(q, q, v), "the order is q, q, v"),
            "side by side": (weight_is(lambda *w: torch.cat(w, 1)), "expected (36, 12)"),
            "transposed": (weight_is(lambda q, k, v: torch.cat([q.T, k.T, v.T])), "transpose it"),
            "by head": (weight_is(by_head), "sorted by head"),
            "by head, biases too": (
                lambda q, k, v: (
                    by_head(q.weight, k.weight, v.weight),
                    by_head(q.bias[:, None], k.bias[:, None], v.bias[:, None])[:, 0],
                ),
                "sorted by head",
            ),
            "by two heads": (weight_is(lambda *w: by_head(*w, heads=2)), "sorted by head"),
            "taking turns": (weight_is(taking_turns), "weight: the rows of q, k and v take turns"),
            "a third is neither": (
                weight_is(lambda q, k, v: torch.cat([q, k + v, v])),
                "the second third is none",
            ),
            "no bias": (bias_is(lambda q, k, v: torch.zeros(36)), "biases lost"),
            "k and v swapped": (bias_is(lambda q, k, v: torch.cat([q, v, k])), "their own bias"),
            "q and k swapped": (
                bias_is(lambda q, k, v: torch.cat([k, q, v])),
                "bias of q where it belongs",
            ),
            "biases taking turns": (bias_is(taking_turns), "biases: they take turns"),
            "only q": (bias_is(lambda q, k, v: torch.cat([q, 0 * k, 0 * v])), "their own bias"),
            "no pair": (lambda q, k, v: merge(q, k, v)[0], "should be a pair"),
        },
        stubs=(stub, lambda q, k, v: (..., ...)),
    ),
    Case(
        check_losses,
        right=losses,
        also={"by torch": losses_by_torch, "by numpy": losses_by_numpy},
        mistakes={
            "probability": (lambda K: (1 / K, 1.0), "that is a probability"),
            "sign": (lambda K: (-math.log(K), 1.0), "which sign"),
            "bits": (lambda K: (math.log2(K), 1.0), "in bits"),
            "share of wrong ones": (lambda K: (1 - 1 / K, 1.0), "another measure"),
            "zero": (lambda K: (0.0, 0.0), "would all classes be right"),
            "another start": (lambda K: (3.0, 0.0), "which probability has the right class"),
            "no floor": (lambda K: (math.log(K), 0.0), "may probabilities"),
            "nothing known": (lambda K: (math.log(K), math.log(K)), "knows nothing"),
            "minus p": (lambda K: (math.log(K), -1.0), "minus the probability"),
            "one class more": (
                lambda K: (math.log(K), math.log(math.e + K) - 1),
                "how many wrong classes",
            ),
            "log of the sum": (lambda K: (math.log(K), math.log(math.e + K - 1)), "log of the sum"),
            "p": (lambda K: (math.log(K), math.e / (math.e + K - 1)), "its negative log"),
            "another floor": (lambda K: (math.log(K), 0.1), "feed cross_entropy"),
            "one number": (lambda K: math.log(K), "should be a pair"),
        },
        stubs=(stub, lambda K: (math.log(K), ...)),
    ),
]
