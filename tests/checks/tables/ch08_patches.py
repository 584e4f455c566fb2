"""Chapter 8: patches."""

from functools import partial

import torch
import torch.nn.functional as F
from case import Case, stub
from einops import rearrange

from vitcheck.ch08_patches import (
    check_counts,
    check_fit,
    check_grey,
    check_kernel,
    check_patchify,
)


def counts(H, W, C, P, D, *, tokens=None, width=None, bias=1, each=1, table=0):
    N = (H // P) * (W // P)
    tokens = N if tokens is None else tokens(H, W, P)
    width = C * P * P if width is None else width(C, P)
    return tokens, width, (N if each != 1 else 1) * (width * D + bias * D) + table * N * D


def cut(images, P):
    B, C, H, W = images.shape
    grid = images.reshape(B, C, H // P, P, W // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def by_unfold(images, P):
    return F.unfold(images, P, stride=P).transpose(1, 2)


def by_loops(images, P):
    rows = [
        images[:, :, top : top + P, left : left + P].flatten(1)
        for top in range(0, images.shape[2], P)
        for left in range(0, images.shape[3], P)
    ]
    return torch.stack(rows, dim=1)


def cut_as(pattern):
    return lambda images, P: rearrange(
        images, f"b c (rows p) (cols q) -> {pattern}", p=P, q=P
    ).contiguous()


def only_contiguous(images, P):
    B, C, H, W = images.shape
    return cut(images.view(B, C, H, W).view(-1).view(B, C, H, W), P)


def kernel(weight, C, P):
    return weight.view(-1, P, P, C).permute(0, 3, 1, 2)


def grey(
    weight, bias, mean, std, *, fold=1, sign=-1, own=1, reduce=torch.sum, shifted=None, keep=True
):
    mu, sigma = mean.view(3, 1, 1), std.view(3, 1, 1)
    scaled = weight / sigma**fold
    moved = ((weight / sigma if shifted is None else shifted(weight)) * mu).sum((1, 2, 3))
    return reduce(scaled, dim=1, keepdim=keep), own * bias + sign * moved


def grey_by_probing(weight, bias, mean, std):
    black = F.conv2d(
        (torch.zeros(1, 3, *weight.shape[2:]) - mean.view(3, 1, 1)) / std.view(3, 1, 1),
        weight,
        bias,
    )
    return torch.einsum("dcpq,c->dpq", weight, 1 / std)[:, None], black.flatten()


def fit(image, P, *, more=lambda n, P: -n % P, order=(0, 1), sides="after", value=0.0):
    grow = [more(n, P) for n in image.shape[1:]]
    down, right = grow[order[0]], grow[order[1]]
    pad = (0, right, 0, down) if sides == "after" else (right, 0, down, 0)
    if sides == "both":
        pad = (right // 2, right - right // 2, down // 2, down - down // 2)
    return F.pad(image, pad, value=value)


def fit_by_copy(image, P):
    C, H, W = image.shape
    out = torch.zeros(C, -(-H // P) * P, -(-W // P) * P)
    out[:, :H, :W] = image
    return out


def cut_squares(images, P):
    """Right for as many columns as rows."""
    B, C, H, _ = images.shape
    grid = images.reshape(B, C, H // P, P, H // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def by_tensor_unfold(images, P):
    squares = images.unfold(2, P, P).unfold(3, P, P)  # (B, C, rows, cols, p, q)
    return squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def kernel_by_loops(weight, C, P):
    kernel = torch.empty(len(weight), C, P, P, dtype=weight.dtype)
    for p in range(P):
        for q in range(P):
            for c in range(C):
                kernel[:, c, p, q] = weight[:, (p * P + q) * C + c]
    return kernel


CASES = [
    Case(
        check_counts,
        right=counts,
        also={"a list of floats": lambda *sizes: [float(n) for n in counts(*sizes)]},
        wrong={
            "one side": (partial(counts, tokens=lambda H, W, P: H * W // P), "It has two sides"),
            "square": (partial(counts, tokens=lambda H, W, P: (H // P) ** 2), "below each other"),
            "wide square": (
                partial(counts, tokens=lambda H, W, P: (W // P) ** 2),
                "right for a square",
            ),
            "class token": (
                partial(counts, tokens=lambda H, W, P: H // P * (W // P) + 1),
                "class token",
            ),
            "tokens": (partial(counts, tokens=lambda H, W, P: H // P + W // P), "how many squares"),
            "no channels": (partial(counts, width=lambda C, P: P * P), "for each channel"),
            "one row": (partial(counts, width=lambda C, P: C * P), "numbers are in a patch of"),
            "no bias": (partial(counts, bias=0), "added to each token"),
            "not shared": (partial(counts, each=2), "weights of its own"),
            "with table": (partial(counts, table=1), "a layer of its own"),
            "two biases": (partial(counts, bias=2), "and a bias"),
            "pair": (lambda *sizes: (1, 2), "three numbers"),
            "words": (lambda *sizes: ("1", 2, 3), "should be one number"),
        },
        stubs=(stub, lambda *sizes: (..., ..., ...)),
    ),
    Case(
        check_patchify,
        right=cut,
        also={"unfold": by_unfold, "Tensor.unfold": by_tensor_unfold, "loops": by_loops},
        wrong={
            "reshape": (
                lambda x, P: x.reshape(len(x), -1, x.shape[1] * P * P),
                "as they lie in memory",
            ),
            "columns": (lambda x, P: F.unfold(x, P, stride=P), "one patch in each column"),
            "not flat": (cut_as("b (rows cols) c p q"), "still an image"),
            "grid": (cut_as("b rows cols (c p q)"), "still a grid"),
            "no batch": (cut_as("(b rows cols) (c p q)"), "the batch axis"),
            "down": (cut_as("b (cols rows) (c p q)"), "a page is read across"),
            "down, mirrored": (cut_as("b (cols rows) (q p c)"), "a page is read across"),
            "backwards": (lambda x, P: cut(x, P).flip(1), "upper left patch"),
            "second": (lambda x, P: cut(x, P)[:, [0, 2, 1, *range(3, 10)]], "comes second"),
            "comb": (
                lambda x, P: rearrange(
                    x, "b c (p rows) (q cols) -> b (rows cols) (c p q)", p=P, q=P
                ),
                "belongs to the patch",
            ),
            "channel first": (
                lambda x, P: cut_as("b (c rows cols) (p q)")(x, P).reshape(
                    len(x), -1, x.shape[1] * P * P
                ),
                "before the grid",
            ),
            "channels last": (cut_as("b (rows cols) (p q c)"), "the channel comes first"),
            "mirrored": (cut_as("b (rows cols) (c q p)"), "row before column"),
            "inside": (cut_as("b (rows cols) (q c p)"), "which comes first here"),
            "contiguous": (only_contiguous, "RuntimeError"),
            "right for a square": (cut_squares, "right for a square image"),
        },
    ),
    Case(
        check_kernel,
        right=kernel,
        also={
            "einops": lambda w, C, P: rearrange(w, "d (p q c) -> d c p q", c=C, p=P),
            "loops": kernel_by_loops,
        },
        wrong={
            "cut as if first": (lambda w, C, P: w.view(-1, C, P, P), "as if channels came"),
            "channel axis": (lambda w, C, P: w.view(-1, P, P, C), "which axis"),
            "mirrored kernel": (
                lambda w, C, P: kernel(w, C, P).transpose(2, 3),
                "row before pixel column",
            ),
            "flipped kernel": (lambda w, C, P: kernel(w, C, P).flip(-2, -1), "does not flip"),
            "scaled": (lambda w, C, P: kernel(w, C, P) / C, "other numbers"),
            "bgr": (lambda w, C, P: kernel(w, C, P).flip(1), "meet its weight"),
        },
    ),
    Case(
        check_grey,
        right=grey,
        also={"a black image": grey_by_probing},
        wrong={
            "no std": (partial(grey, fold=0), "division by std"),
            "mean of kernels": (partial(grey, fold=0, reduce=torch.mean), "not averaged"),
            "mean, scaled": (partial(grey, reduce=torch.mean), "a third of the size"),
            "times std": (partial(grey, fold=-1), "divided by std; what happens"),
            "one std": (
                lambda w, b, m, s: (w.sum(1, keepdim=True) / s.mean(), b),
                "one std for all",
            ),
            "one channel": (
                lambda w, b, m, s: ((w / s.view(3, 1, 1))[:, :1], b),
                "the other two channels",
            ),
            "no axis": (partial(grey, keep=False), "one channel that is left"),
            "no mean": (partial(grey, sign=0), "where does that constant go"),
            "wrong sign": (partial(grey, sign=1), "a black image"),
            "mean not divided": (partial(grey, shifted=lambda w: w), "then divided by std"),
            "own bias lost": (partial(grey, own=0), "a bias of its own"),
            "bias doubled": (partial(grey, own=2), "left of a black image"),
            "other kernel": (lambda w, b, m, s: (0 * w[:, :1], b), "meets three weights"),
            "one mean": (
                lambda w, b, m, s: (
                    grey(w, b, m, s)[0],
                    b - m.mean() * (w / s.view(3, 1, 1)).sum((1, 2, 3)),
                ),
                "one mean for all",
            ),
        },
        stubs=(stub, lambda *inputs: (..., ...)),
    ),
    Case(
        check_fit,
        right=fit,
        also={"copying": fit_by_copy},
        wrong={
            "crop": (
                lambda x, P: x[:, : x.shape[1] // P * P, : x.shape[2] // P * P],
                "pixels are lost",
            ),
            "always more": (partial(fit, more=lambda n, P: P - n % P), "a whole row or column"),
            "a whole patch": (partial(fit, more=lambda n, P: P), "does not divide"),
            "axes": (partial(fit, order=(1, 0)), "F.pad begin with"),
            "before": (partial(fit, sides="before"), "which of the four sides"),
            "both sides": (partial(fit, sides="both"), "which of the four sides"),
            "ones": (partial(fit, value=1.0), "not zero"),
            "nothing": (lambda x, P: x.clone(), "does not divide"),
            "resized": (
                lambda x, P: F.interpolate(x[None], fit_by_copy(x, P).shape[1:])[0],
                "has moved",
            ),
        },
    ),
]
