"""The classifier."""

import torch
from case import Case

from vitcheck.exercises.classifier import check_in_line, check_readout, check_vit_parameters


def readout_by_loops(features, pool):
    rows = []
    for tokens in features:
        patches = [token for i, token in enumerate(tokens) if i > 0]
        rows.append(tokens[0] if pool == "cls" else sum(patches) / len(patches))
    return torch.stack(rows)


def mean_is(mean):
    """The class token is right, and for "mean" this is returned."""
    return lambda f, pool: f[:, 0] if pool == "cls" else mean(f)


def joined(cls, patches):
    return torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)


def count(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    D, tokens = embed_dim, (image_size // patch_size) ** 2 + 1
    patches = patch_size**2 * in_channels * D + D + D + tokens * D  # and class token, positions
    return patches + depth * (12 * D * D + 13 * D) + 2 * D + (D + 1) * num_classes


CASES = [
    Case(
        check_readout,
        wrong={
            "first patch": (
                lambda f, pool: readout_by_loops(f[:, 1:], pool),
                "which row of an image",
            ),
            "median": (mean_is(lambda f: f[:, 1:].median(1).values), "what is the mean"),
        },
    ),
    Case(
        check_in_line,
        wrong={
            "reversed": (lambda c, p, t: joined(c, p + t.flip(0)), "is row n of the table"),
            "twice the token": (lambda c, p, t: joined(2 * c, p + t), "before any block"),
        },
    ),
    Case(
        check_vit_parameters,
        also={"a tensor": lambda *a: torch.tensor(count(*a))},
        wrong={
            "too many": (lambda *a: 2 * count(*a), "too many"),
            "one more": (lambda *a: count(*a) + 1, "1 too many"),
        },
    ),
]
