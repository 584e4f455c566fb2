"""Checks: the preview."""

from functools import partial

import torch

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


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
    for patch in (0, 2, 4):
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


_CONCLUSIONS = {
    "the answers depend on the dots": (YES, "what happens when a dot is painted over?"),
    "painting over just anything ruins the answers": (
        NO,
        "which row is the control of the painted dot?",
    ),
    "without that head's look at the dots the models guess": (
        NO,
        "how many answers are right without it?",
    ),
    "looking at the dots is needed somewhere": (YES, "what is left when no head may?"),
    "a hit of 98 % takes learning": (NO, "how often does the rule hit, and what has it learned?"),
    "a model without attention would fail at this task": (
        OPEN,
        "was a model without attention trained?",
    ),
}


check_conclusions = reading(
    "what hiding, cutting and a control allow one to say", _CONCLUSIONS, what="my_conclusions"
)
