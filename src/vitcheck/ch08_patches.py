"""Checks of chapter 8: counting patches, cutting them, moving kernels, grey images, sizes."""

from __future__ import annotations

import torch

from vitbook.layers.patches import patchify
from vitcheck.trial import Trial, staged


@staged("patch counts", ok="tokens, numbers in a patch, and parameters, whatever the sizes.")
def check_counts(trial: Trial, my_counts):
    """my_counts(H, W, C, P, D) -> (tokens, numbers in a patch, parameters of the embedding)."""
    for name, (H, W, C, P, D) in {
        "a square image": (224, 224, 3, 16, 192),
        "a wide image": (8 * trial.integer(2, 4), 8 * trial.integer(5, 9), 3, 8, 20),
        "one channel": (28, 35, 1, 7, 12),
    }.items():
        trial.stage(name)
        got = my_counts(H, W, C, P, D)
        if isinstance(got, tuple | list) and any(value is ... for value in got):
            raise NotImplementedError
        if not isinstance(got, tuple | list) or len(got) != 3:
            trial.fail("return three numbers: tokens, numbers in a patch, parameters")
        tokens, width, parameters = got
        N, numbers = H // P * (W // P), C * P * P
        trial.match(
            tokens,
            N,
            {
                "a class token comes later; how many patches are there?": N + 1,
                "one row of a patch counted as a patch? It has two sides": H * W // P,
                "right for a square; count the patches across and those below each other": [
                    (H // P) ** 2,
                    (W // P) ** 2,
                ],
            },
            otherwise=f"how many squares of {P} x {P} are there in {H} x {W} pixels?",
            name="the number of tokens",
        )
        trial.match(
            width,
            numbers,
            {"each pixel holds a number for each channel": P * P},
            otherwise=f"how many numbers are in a patch of {C} x {P} x {P}?",
            name="the number of numbers in a patch",
        )
        one = numbers * D  # the matrix
        trial.match(
            parameters,
            one + D,
            {
                "what is added to each token after the multiplication?": one,
                "has every patch weights of its own? Chapter 7 asked the same of positions": [
                    N * one,
                    N * (one + D),
                    N * one + D,
                ],
                "the position table is a layer of its own; only the embedding is asked for": [
                    one + D + N * D,
                    one + N * D,
                ],
            },
            otherwise="a matrix from patch to token, and a bias",
            name="the number of parameters",
        )


@staged("patchify", ok="the same patches in the same order, from any image that P divides.")
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
    want = patchify(images, P)
    grid = images.view(B, C, rows, P, cols, P)  # (B, C, rows, p, cols, q)

    def order(*axes):
        return grid.permute(*axes).reshape(B, N, width)

    def held(patches):
        """The numbers of each patch, whatever their order."""
        return patches.sort(dim=-1).values

    one_channel = [order(0, 1, *rest) for rest in ((2, 4, 3, 5), (4, 2, 3, 5), (2, 4, 5, 3))]
    trial.stage("what is in a patch")
    trial.match(
        held(got)[:, 0],
        held(want)[:, 0],
        {
            "a reshape takes numbers as they lie in memory. What follows the first P pixels "
            "there?": held(images.reshape(B, N, width))[:, 0],
            "squares, but each of one channel: the channel still stands before the grid. What is "
            "merged into one row must stand side by side first": [
                held(mistake)[:, 0] for mistake in one_channel
            ],
        },
        otherwise="the first row does not hold the pixels of the upper left patch. Split height "
        "and width into (grid, inside) first; which of the four belongs to the patch?",
    )
    trial.stage("the order of the patches")
    trial.match(
        held(got),
        held(want),
        {"the patches run down; a page is read across": held(order(0, 4, 2, 1, 3, 5))},
        otherwise="which patch comes second?",
    )
    trial.stage("the order inside a patch")
    trial.match(
        got,
        want,
        {
            "all channels of a pixel stand together; in a convolution's weight the channel comes "
            "first": order(0, 2, 4, 3, 5, 1),
            "each patch is mirrored at its diagonal: row before column": order(0, 2, 4, 1, 5, 3),
        },
        otherwise="channel, then pixel row, then pixel column: which comes first here?",
    )
    trial.stage("an image that is not contiguous")
    turned = trial.randn(B, C, cols * P, rows * P).transpose(2, 3)
    trial.close(my_patchify(turned, P), patchify(turned, P), "does it rely on the memory's order?")


@staged("kernel", ok="the convolution computes what the other library's linear layer computes.")
def check_kernel(trial: Trial, my_kernel):
    """my_kernel(weight, C, P): weight (D, P * P * C), channels last -> kernel (D, C, P, P)."""
    D, C, P = 5, 3, 4
    weight = trial.randn(D, P * P * C)
    trial.stage("shape")
    kernel = my_kernel(weight, C, P)
    if isinstance(kernel, torch.Tensor):
        trial.ask(
            kernel.shape != (D, P, P, C), "taken apart rightly; but which axis is the channel?"
        )
    kernel = trial.tensor(kernel, (D, C, P, P))
    trial.stage("which number goes where")
    apart = weight.view(D, P, P, C)
    moved = torch.equal(kernel.flatten(1).sort(-1).values, weight.sort(-1).values)
    trial.match(
        kernel,
        apart.permute(0, 3, 1, 2),
        {
            "that cuts the row as if channels came first. How does this library lay out a "
            "patch?": weight.view(D, C, P, P),
            "each filter is mirrored at its diagonal: pixel row before pixel column": apart.permute(
                0, 3, 2, 1
            ),
            "why turn the kernel? What torch calls a convolution does not flip it": apart.permute(
                0, 3, 1, 2
            ).flip(-2, -1),
        },
        otherwise="one pixel, three channels: does each meet its weight?"
        if moved
        else "a filter holds other numbers than its row of the weight",
    )


@staged("grey embedding", ok="one channel in, and the tokens that three normalised copies give.")
def check_grey(trial: Trial, my_grey):
    """my_grey(weight, bias, mean, std) -> (weight (D, 1, P, P), bias (D,)) for raw grey images."""
    D, P = 5, 4
    weight, bias = trial.randn(D, 3, P, P), trial.randn(D)
    mean, std = torch.tensor([0.5, 0.4, 0.1]), torch.tensor([0.2, 0.5, 0.3])
    mu, sigma = mean.view(3, 1, 1), std.view(3, 1, 1)
    trial.stage("shapes")
    kernel, shift = trial.pair(my_grey(weight, bias, mean, std), name="the answer")
    if isinstance(kernel, torch.Tensor):
        trial.ask(
            kernel.shape != (D, P, P), "conv2d wants an axis for the one channel that is left"
        )
    kernel = trial.tensor(kernel, (D, 1, P, P), name="the weight")
    shift = trial.tensor(shift, (D,), name="the bias")
    scaled = weight / sigma
    trial.stage("the weight")
    trial.match(
        kernel[:, 0],
        scaled.sum(1),
        {
            "where does the division by std go?": weight.sum(1),
            "the three products are added up, not averaged; and what of std?": weight.mean(1),
            "a third of the size: are the three products averaged or added up?": scaled.mean(1),
            "what happens to the weights of the other two channels?": scaled[:, 0],
            "the image is divided by std; what happens to the weight?": (weight * sigma).sum(1),
            "one std for all? Each channel has its own": weight.sum(1) / std.mean(),
        },
        otherwise="one grey value meets three weights; collect them",
    )
    trial.stage("the bias")
    moved = (scaled * mu).sum((1, 2, 3))
    trial.match(
        shift,
        bias - moved,
        {
            "the mean is subtracted from every pixel; where does that constant go?": bias,
            "added or subtracted? Put in a black image, and see what three copies give": bias
            + moved,
            "the mean is subtracted first, then divided by std": bias
            - (weight * mu).sum((1, 2, 3)),
            "the layer had a bias of its own": -moved,
            "one mean for all? Each channel has its own": bias
            - mean.mean() * scaled.sum((1, 2, 3)),
        },
        otherwise="the weight is right; what is left of a black image?",
    )


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
