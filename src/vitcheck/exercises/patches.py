"""Checks: counting patches, cutting them, reading a table of patch sizes."""

import torch

from vitbook.layers.patches import patchify
from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _counts(H, W, C, P, D):
    return H // P * (W // P), C * P * P, C * P * P * D + D


@staged(
    "patch counts",
    ok="tokens, numbers in a patch, and parameters, whatever the sizes.",
    right=_counts,
    in_part={
        0: {
            "a class token comes later; how many patches are there?": lambda H, W, C, P, D: (
                H // P * (W // P) + 1
            ),
            "one row of a patch counted as a patch? It has two sides": (
                lambda H, W, C, P, D: H * W // P
            ),
            "right for a square; count the patches across and those below each other": [
                lambda H, W, C, P, D: (H // P) ** 2,
                lambda H, W, C, P, D: (W // P) ** 2,
            ],
        },
        1: {"each pixel holds a number for each channel": lambda H, W, C, P, D: P * P},
        2: {
            "what is added to each token after the multiplication?": lambda H, W, C, P, D: (
                C * P * P * D
            ),
            "has every patch weights of its own? The same was asked of positions": [
                lambda H, W, C, P, D: H // P * (W // P) * C * P * P * D,
                lambda H, W, C, P, D: H // P * (W // P) * (C * P * P * D + D),
                lambda H, W, C, P, D: H // P * (W // P) * C * P * P * D + D,
            ],
            "the position table is a layer of its own; only the embedding is asked for": [
                lambda H, W, C, P, D: C * P * P * D + D + H // P * (W // P) * D,
                lambda H, W, C, P, D: C * P * P * D + H // P * (W // P) * D,
            ],
        },
    },
)
def check_counts(trial: Trial, my_counts):
    """my_counts(H, W, C, P, D) -> (tokens, numbers in a patch, parameters of the embedding)."""
    for stage, sizes in {
        "a square image": (224, 224, 3, 16, 192),
        "a wide image": (8 * trial.integer(2, 4), 8 * trial.integer(5, 9), 3, 8, 20),
        "one channel": (28, 35, 1, 7, 12),
    }.items():
        trial.stage(stage)
        H, W, C, P, _ = sizes
        got = my_counts(*sizes)
        if not isinstance(got, tuple | list) or len(got) != 3:
            trial.fail("return three numbers: tokens, numbers in a patch, parameters")
        for part, what, otherwise in (
            (0, "tokens", f"how many squares of {P} x {P} are there in {H} x {W} pixels?"),
            (1, "numbers in a patch", f"how many numbers are in a patch of {C} x {P} x {P}?"),
            (2, "parameters", "a matrix from patch to token, and a bias"),
        ):
            name = f"the number of {what}"
            trial.compare(got, *sizes, part=part, otherwise=otherwise, name=name)


def _ordered(*axes):
    """Patches from the axes (B, C, rows, p, cols, q) of the grid, in this order."""

    def cut(images, P):
        B, C, H, W = images.shape
        grid = images.reshape(B, C, H // P, P, W // P, P)
        return grid.permute(*axes).reshape(B, -1, C * P * P)

    return cut


def _held(patches):
    """The numbers of each patch, whatever their order."""
    return patches.sort(dim=-1).values


@staged(
    "patchify",
    ok="the same patches in the same order, from any image that P divides.",
    right=_ordered(0, 2, 4, 1, 3, 5),
    mistakes={
        "a reshape takes numbers as they lie in memory. What follows the first P pixels there?": (
            lambda images, P: images.reshape(len(images), -1, images.shape[1] * P * P)
        ),
        "squares, but each of one channel: the channel still stands before the grid. What is "
        "merged into one row must stand side by side first": [
            _ordered(0, 1, 2, 4, 3, 5),
            _ordered(0, 1, 4, 2, 3, 5),
            _ordered(0, 1, 2, 4, 5, 3),
        ],
        "the patches run down; a page is read across": _ordered(0, 4, 2, 1, 3, 5),
        "all channels of a pixel stand together; in a convolution's weight the channel comes "
        "first": _ordered(0, 2, 4, 3, 5, 1),
        "each patch is mirrored at its diagonal: row before column": _ordered(0, 2, 4, 1, 5, 3),
    },
)
def check_patchify(trial: Trial, my_patchify):
    """my_patchify(images, P): (B, C, H, W) -> (B, N, C * P * P), row by row like a page."""
    B, C, rows, cols, P = 2, 3, 2, 5, 4
    N, width = rows * cols, C * P * P
    images = trial.randn(B, C, rows * P, cols * P)
    trial.stage("shape")
    try:
        got = my_patchify(images, P)
    except (RuntimeError, ValueError):
        square = trial.randn(B, C, rows * P, rows * P)
        if torch.equal(my_patchify(square, P), patchify(square, P)):
            trial.fail("right for a square image; how many patches are in a row, and in a column?")
        raise
    if isinstance(got, torch.Tensor):
        trial.ask(
            got.shape != (B, width, N), "one patch in each column: which axis holds the tokens?"
        )
        trial.ask(got.shape != (B, N, C, P, P), "each patch is still an image; lay it out as a row")
        trial.ask(
            got.shape not in ((B, rows, cols, width), (B, rows, cols, C, P, P)),
            "still a grid of patches; a Transformer reads a sequence",
        )
        trial.ask(got.shape != (B * N, width), "where did the batch axis go?")
    got = trial.tensor(got, (B, N, width))
    trial.stage("what is in a patch")
    trial.compare(
        got,
        images,
        P,
        part=lambda patches: _held(patches)[:, 0],
        otherwise="the first row does not hold the pixels of the upper left patch. Split height "
        "and width into (grid, inside) first; which of the four belongs to the patch?",
    )
    trial.stage("the order of the patches")
    trial.compare(got, images, P, part=_held, otherwise="which patch comes second?")
    trial.stage("the order inside a patch")
    otherwise = "channel, then pixel row, then pixel column: which comes first here?"
    trial.compare(got, images, P, otherwise=otherwise)
    trial.stage("an image that is not contiguous")
    turned = trial.randn(B, C, cols * P, rows * P).transpose(2, 3)
    trial.close(my_patchify(turned, P), patchify(turned, P), "does it rely on the memory's order?")


_STATEMENTS = {
    "in this training patches of 16 win after 300 epochs": (
        YES,
        "the difference, paired by seed, has an interval of its own. Does it hold zero?",
    ),
    "for the work of 300 epochs with 16, patches of 32 lose": (
        OPEN,
        "how many epochs with patches of 32 cost as much as 300 with patches of 16? Is that length "
        "in the table?",
    ),
    "patches of 16 need about four times the parameters": (
        NO,
        "multiplications follow the tokens; do the tokens have weights of their own?",
    ),
    "patches of 8 would be better still after 300 epochs": (
        OPEN,
        "which row of the table would tell?",
    ),
}


check_sizes = reading("what a table of patch sizes allows one to say", _STATEMENTS)
