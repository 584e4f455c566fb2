"""Checks of chapter 0, the preview."""

import re
from functools import partial

import torch

from vitcheck.trial import Trial, staged

_IMAGES = ("8 x 8, patch 2", "224 x 224, patch 16", "32 x 48, patch 8", "224 x 224, patch 32")


def _each(count):
    """The answer that counts the tokens of each image like this."""
    return lambda: {image: count(*map(int, re.findall(r"\d+", image))) for image in _IMAGES}


@staged(
    "number of tokens",
    ok="every count is right, class tokens included.",
    right=_each(lambda H, W, P: H * W // P**2 + 1),
    mistakes={
        "these are the patches; which token is not a patch?": _each(lambda H, W, P: H * W // P**2),
        "a patch is P pixels wide and P pixels high": _each(lambda H, W, P: H * W // P + 1),
        "rows and columns of patches: added or multiplied?": _each(
            lambda H, W, P: H // P + W // P + 1
        ),
    },
)
def check_token_count(trial: Trial, my_counts):
    """The answers {"32 x 48, patch 8": count, ...} for ViTs with a class token."""
    given = trial.answers(my_counts(), _IMAGES)
    for image in _IMAGES:
        trial.stage(image)
        otherwise = "how many patches fit into a row, and how many rows?"
        trial.compare(given, part=image, otherwise=otherwise)


def _strongest(weights, columns):
    return divmod(int(weights[0, 1:].argmax()), columns)


@staged(
    "strongest patch",
    ok="it finds the patch, and the class token itself does not count.",
    right=_strongest,
    mistakes={
        "is the class token a patch? Column 0 of the matrix is the class token itself.": [
            lambda weights, columns: divmod(int(weights[0].argmax()), columns),
            lambda weights, columns: divmod(int(weights[0, 1:].argmax()) + 1, columns),
        ],
        "you asked who looks at the class token; whom does it look at?": lambda weights, columns: (
            divmod(int(weights[1:, 0].argmax()), columns)
        ),
        "which one is the row?": lambda weights, columns: _strongest(weights, columns)[::-1],
        "how many patches make a row: as many as there are rows, or columns?": (
            lambda weights, columns: _strongest(weights, (len(weights) - 1) // columns)
        ),
    },
)
def check_strongest_patch(trial: Trial, strongest):
    """(row, column) of the patch that the class token looks at most."""
    rows, columns = 3, 5
    N = rows * columns
    for patch in (11, 4, 13, 9):  # places that no mistake confuses with another
        weights = trial.randn(N + 1, N + 1).softmax(-1)
        weights[0, 0] = 2.0  # the class token looks at itself most
        weights[0, 1 + patch] = weights[1 + (patch + 3) % N, 0] = 1.5
        trial.stage("a pair")
        pair = trial.pair(strongest(weights.clone(), columns))
        trial.stage("which patch")
        trial.compare(pair, weights, columns, otherwise="the strongest patch is another one")


def _hide(images, patch, P, mean=lambda images: images.mean((1, 2, 3), keepdim=True)):
    row, column = divmod(patch, images.shape[3] // P)
    hidden = images.clone()
    hidden[:, :, P * row : P * row + P, P * column : P * column + P] = mean(images)
    return hidden


@staged(
    "hide_patch",
    ok="that patch is gone, everything else is as it was.",
    right=_hide,
    mistakes={
        "that is the mean of the whole batch; each image has its own": partial(
            _hide, mean=lambda images: images.mean()
        ),
        "that is one mean for each channel; one for each image is asked for": partial(
            _hide, mean=lambda images: images.mean((2, 3), keepdim=True)
        ),
    },
)
def check_hide_patch(trial: Trial, hide):
    """Images (B, C, H, W) with one patch filled with the image's mean."""
    P, rows, columns = 4, 2, 3
    images = trial.randn(2, 3, rows * P, columns * P)
    for patch in (0, 4, 2):
        trial.stage(f"patch {patch}")
        hidden = trial.tensor(hide(images, patch, P), images.shape)
        top, left = P * (patch // columns), P * (patch % columns)
        inside = torch.zeros(rows * P, columns * P, dtype=torch.bool)
        inside[top : top + P, left : left + P] = True
        changed = (hidden != images).any(dim=1).any(dim=0)
        trial.ask(changed.any(), "nothing has changed; do you return the new images?")
        trial.ask(
            ~changed[~inside],
            "pixels outside the patch have changed; where does patch "
            f"{patch} begin when a row has {columns} patches?",
        )
        trial.stage(f"filling of patch {patch}")
        trial.compare(
            hidden,
            images,
            patch,
            P,
            otherwise="what is it filled with? The mean over all pixels and channels of that image "
            "is asked.",
        )


def _rollout(maps, residual=0.5, attention=0.5, heads=torch.mean, upwards=True):
    result = eye = torch.eye(maps.shape[-1])
    for layer in heads(maps, 1):
        mixed = attention * layer + residual * eye
        result = mixed @ result if upwards else result @ mixed
    return result


@staged(
    "rollout",
    ok="shares are right and sum to one.",
    right=_rollout,
    mistakes={
        "the rows sum to more than one; is it half and half?": partial(
            _rollout, residual=1.0, attention=1.0
        ),
        "the rows sum to more than one; were the heads averaged or added?": [
            partial(_rollout, residual=0.0, attention=1.0, heads=torch.sum),
            partial(_rollout, heads=torch.sum),
        ],
        "where is the residual connection?": partial(_rollout, residual=0.0, attention=1.0),
        "the order is turned round: which layer acts last on the tokens?": partial(
            _rollout, upwards=False
        ),
    },
)
def check_rollout(trial: Trial, rollout):
    """Rollout of maps (L, h, N, N), heads averaged, half residual, later layers from the left."""
    L, h, N = 3, 4, 5  # with 2 or 3 heads, two mistakes would have the same sums
    maps = trial.randn(L, h, N, N).mul(2).softmax(-1)
    trial.stage("shape")
    got = trial.tensor(rollout(maps), (N, N))
    trial.stage("rows")
    trial.compare(
        got,
        maps,
        part=lambda table: table.sum(-1),
        otherwise="each row is a list of shares; it should sum to one",
        tolerance=1e-4,
    )
    trial.stage("values")
    trial.compare(got, maps, otherwise="follow a weight from the last layer down")
