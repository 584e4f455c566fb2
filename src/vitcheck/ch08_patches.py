"""Checks of chapter 8: counting patches, cutting them, moving kernels, grey images, sizes."""

from __future__ import annotations

import torch

from vitbook.layers.patches import patchify
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
            "has every patch weights of its own? Chapter 7 asked the same of positions": [
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


def _apart(weight, C, P):
    return weight.view(-1, P, P, C)


@staged(
    "kernel",
    ok="the convolution computes what the other library's linear layer computes.",
    right=lambda weight, C, P: _apart(weight, C, P).permute(0, 3, 1, 2),
    mistakes={
        "taken apart rightly; but which axis is the channel?": _apart,
        "that cuts the row as if channels came first. How does this library lay out a patch?": (
            lambda weight, C, P: weight.view(-1, C, P, P)
        ),
        "each filter is mirrored at its diagonal: pixel row before pixel column": (
            lambda weight, C, P: _apart(weight, C, P).permute(0, 3, 2, 1)
        ),
        "why turn the kernel? What torch calls a convolution does not flip it": (
            lambda weight, C, P: _apart(weight, C, P).permute(0, 3, 1, 2).flip(-2, -1)
        ),
    },
)
def check_kernel(trial: Trial, my_kernel):
    """my_kernel(weight, C, P): weight (D, P * P * C), channels last -> kernel (D, C, P, P)."""
    D, C, P = 5, 3, 4
    weight = trial.randn(D, P * P * C)
    trial.stage("shape, and which number goes where")
    kernel = my_kernel(weight, C, P)
    otherwise = "a filter holds other numbers than its row of the weight"
    trial.compare(
        kernel, weight, C, P, part=lambda k: k.flatten(1).sort(-1).values, otherwise=otherwise
    )
    otherwise = "one pixel, three channels: does each meet its weight?"
    trial.compare(kernel, weight, C, P, otherwise=otherwise)


def _grey(weight, bias, mean, std):
    scaled = weight / std.view(3, 1, 1)
    return scaled.sum(1, keepdim=True), bias - (scaled * mean.view(3, 1, 1)).sum((1, 2, 3))


def _folded(fold):
    """A weight (D, 1, P, P) from the weight and a std for each channel."""
    return lambda weight, bias, mean, std: fold(weight, std.view(3, 1, 1))[:, None]


def _moved(move):
    """A bias from the scaled weight, the bias, the mean of each channel, and the plain weight."""
    return lambda weight, bias, mean, std: move(
        weight / std.view(3, 1, 1), bias, mean.view(3, 1, 1), weight
    )


@staged(
    "grey embedding",
    ok="one channel in, and the tokens that three normalised copies give.",
    right=_grey,
    in_part={
        0: {
            "where does the division by std go?": _folded(lambda w, std: w.sum(1)),
            "the three products are added up, not averaged; and what of std?": _folded(
                lambda w, std: w.mean(1)
            ),
            "a third of the size: are the three products averaged or added up?": _folded(
                lambda w, std: (w / std).mean(1)
            ),
            "what happens to the weights of the other two channels?": _folded(
                lambda w, std: (w / std)[:, 0]
            ),
            "the image is divided by std; what happens to the weight?": _folded(
                lambda w, std: (w * std).sum(1)
            ),
            "one std for all? Each channel has its own": _folded(
                lambda w, std: w.sum(1) / std.mean()
            ),
        },
        1: {
            "the mean is subtracted from every pixel; where does that constant go?": _moved(
                lambda scaled, bias, mean, weight: bias
            ),
            "added or subtracted? Put in a black image, and see what three copies give": _moved(
                lambda scaled, bias, mean, weight: bias + (scaled * mean).sum((1, 2, 3))
            ),
            "the mean is subtracted first, then divided by std": _moved(
                lambda scaled, bias, mean, weight: bias - (weight * mean).sum((1, 2, 3))
            ),
            "the layer had a bias of its own": _moved(
                lambda scaled, bias, mean, weight: -(scaled * mean).sum((1, 2, 3))
            ),
            "one mean for all? Each channel has its own": _moved(
                lambda scaled, bias, mean, weight: bias - mean.mean() * scaled.sum((1, 2, 3))
            ),
        },
    },
)
def check_grey(trial: Trial, my_grey):
    """my_grey(weight, bias, mean, std) -> (weight (D, 1, P, P), bias (D,)) for raw grey images."""
    D, P = 5, 4
    mean, std = torch.tensor([0.5, 0.4, 0.1]), torch.tensor([0.2, 0.5, 0.3])
    layer = trial.randn(D, 3, P, P), trial.randn(D), mean, std
    trial.stage("shapes")
    kernel, shift = trial.pair(my_grey(*layer), name="the answer")
    if isinstance(kernel, torch.Tensor):
        trial.ask(
            kernel.shape != (D, P, P), "conv2d wants an axis for the one channel that is left"
        )
    kernel = trial.tensor(kernel, (D, 1, P, P), name="the weight")
    shift = trial.tensor(shift, (D,), name="the bias")
    trial.stage("the weight")
    otherwise = "one grey value meets three weights; collect them"
    trial.compare((kernel, shift), *layer, part=0, otherwise=otherwise)
    trial.stage("the bias")
    otherwise = "the weight is right; what is left of a black image?"
    trial.compare((kernel, shift), *layer, part=1, otherwise=otherwise)


@staged("fit", ok="every pixel is kept where it was, and P divides the result.")
def check_fit(trial: Trial, my_fit):
    """my_fit(image, P): (C, H, W) -> zeros added below and at the right until P divides."""
    C, P = 3, 8
    for name, (H, W) in {
        "both sides too long": (P + trial.integer(1, 3), 3 * P - trial.integer(1, 3)),
        "nothing to do": (2 * P, 3 * P),
        "one side fits": (2 * P, P + trial.integer(2, 4)),
    }.items():
        trial.stage(name)
        image = 2 + trial.randn(C, H, W).abs()
        got = my_fit(image, P)
        high, wide = -(-H // P) * P, -(-W // P) * P
        if isinstance(got, torch.Tensor) and got.ndim == 3 and got.shape != (C, high, wide):
            h, w = got.shape[1:]
            trial.ask(
                h >= H and w >= W, f"{H} x {W} became {h} x {w}: pixels are lost at the border"
            )
            trial.ask(
                (h, w) != (high + P * (H % P == 0), wide + P * (W % P == 0)),
                "a whole row or column of empty patches: what is missing when P divides already?",
            )
            trial.ask(
                (h, w) != (H + wide - W, W + high - H),
                "height and width are swapped: which axis does F.pad begin with?",
            )
            trial.ask(h % P == 0 and w % P == 0, f"{P} does not divide {h} x {w}")
        got = trial.tensor(got, (C, high, wide))
        trial.ask(
            torch.equal(got[:, :H, :W], image),
            "the image has moved; which of the four sides should grow?",
        )
        trial.ask(
            got[:, H:].abs().sum() + got[:, :, W:].abs().sum() == 0, "the new pixels are not zero"
        )
