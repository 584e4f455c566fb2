"""Chapter 0: the preview."""

import torch
from case import Case, stub

from vitcheck.ch00_preview import (
    check_hide_patch,
    check_rollout,
    check_strongest_patch,
    check_token_count,
)

COUNTS = {
    "8 x 8, patch 2": 17,
    "224 x 224, patch 16": 197,
    "32 x 48, patch 8": 25,
    "224 x 224, patch 32": 50,
}


def strongest_by_loops(weights, columns):
    best = max(range(1, len(weights)), key=lambda token: weights[0, token])
    return [(best - 1) // columns, (best - 1) % columns]


def hide(images, patch, P, columns=None, value=None):
    row, column = divmod(patch, columns or images.shape[3] // P)
    hidden = images.clone()
    mean = images.mean((1, 2, 3), keepdim=True) if value is None else value
    hidden[:, :, P * row : P * row + P, P * column : P * column + P] = mean
    return hidden


def hide_by_loops(images, patch, P):
    hidden = images.clone()
    per_row = images.shape[3] // P
    for image in hidden:
        mean = image.mean()
        for i in range(P):
            for j in range(P):
                image[:, P * (patch // per_row) + i, P * (patch % per_row) + j] = mean
    return hidden


def hide_in_place(images, patch, P):
    images.copy_(hide(images, patch, P))
    return images


def rollout_by_einsum(maps):
    result = torch.eye(maps.shape[-1])
    for layer in maps:
        mixed = (torch.einsum("hij->ij", layer) / len(layer) + torch.eye(layer.shape[-1])) / 2
        result = torch.einsum("ij,jk->ik", mixed, result)
    return result


CASES = [
    Case(
        check_token_count,
        also={"in numbers": lambda: COUNTS},
        wrong={
            "patches only, once": (lambda: COUNTS | {"8 x 8, patch 2": 16}, "not a patch"),
            "added, once": (lambda: COUNTS | {"32 x 48, patch 8": 11}, "added or multiplied"),
            "off": (lambda: COUNTS | {"224 x 224, patch 32": 65}, "fit into a row"),
            "no answers": (lambda: {}, "lost its answer"),
            "one deleted": (lambda: dict(list(COUNTS.items())[:3]), "lost its answer"),
            "another question": (
                lambda: COUNTS | {"9 x 9, patch 3": 10},
                "not one of the questions",
            ),
        },
        stubs=(stub, lambda: COUNTS | {"8 x 8, patch 2": ...}),
    ),
    Case(
        check_strongest_patch,
        also={"loops": strongest_by_loops},
        wrong={"one number": (lambda w, c: int(w[0, 1:].argmax()), "a pair")},
    ),
    Case(
        check_hide_patch,
        also={"loops": hide_by_loops},
        wrong={
            "nothing": (lambda x, p, P: x, "nothing has changed"),
            "in place": (hide_in_place, "in place"),
            "another place": (lambda x, p, P: hide(x, p, P, columns=4), "outside the patch"),
            "zero": (lambda x, p, P: hide(x, p, P, value=0.0), "filled with"),
        },
    ),
    Case(
        check_rollout,
        also={"einsum": rollout_by_einsum},
        wrong={"one layer": (lambda m: m.mean(1), "expected (5, 5)")},
    ),
]
