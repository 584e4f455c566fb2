"""Each check of chapter 8 passes right answers, however written, and names planted mistakes."""

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange

from vitcheck import CheckFailed
from vitcheck.ch08_patches import (
    check_counts,
    check_fit,
    check_grey,
    check_kernel,
    check_patchify,
)

CHECKS = [check_counts, check_patchify, check_kernel, check_grey, check_fit]


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


RIGHT = [
    ("counts", check_counts, counts),
    ("view and permute", check_patchify, cut),
    ("unfold", check_patchify, by_unfold),
    ("loops", check_patchify, by_loops),
    ("kernel", check_kernel, kernel),
    (
        "kernel with einops",
        check_kernel,
        lambda w, C, P: rearrange(w, "d (p q c) -> d c p q", c=C, p=P),
    ),
    ("grey", check_grey, grey),
    ("grey by probing", check_grey, grey_by_probing),
    ("fit", check_fit, fit),
    ("fit by copying", check_fit, fit_by_copy),
]


@pytest.mark.parametrize(("check", "answer"), [r[1:] for r in RIGHT], ids=[r[0] for r in RIGHT])
def test_a_right_answer_passes_with_one_line(check, answer, capsys):
    for _ in range(5):  # other inputs each time
        check(answer)
        printed = capsys.readouterr().out
        assert printed.startswith("ok:")
        assert printed.count("\n") == 1


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_unanswered_stub_passes_on(check, capsys):
    check(lambda *inputs: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_a_stub_of_three_or_of_a_pair_is_not_answered(capsys):
    check_counts(lambda *sizes: (..., ..., ...))
    check_grey(lambda *inputs: (..., ...))
    printed = capsys.readouterr().out.splitlines()
    assert [line.startswith("not answered yet") for line in printed] == [True, True]


MISTAKES = [
    ("one side", check_counts, {"tokens": lambda H, W, P: H * W // P}, "It has two sides"),
    ("square", check_counts, {"tokens": lambda H, W, P: (H // P) ** 2}, "below each other"),
    ("wide square", check_counts, {"tokens": lambda H, W, P: (W // P) ** 2}, "right for a square"),
    ("class token", check_counts, {"tokens": lambda H, W, P: H // P * (W // P) + 1}, "class token"),
    ("tokens", check_counts, {"tokens": lambda H, W, P: H // P + W // P}, "tokens from"),
    ("no channels", check_counts, {"width": lambda C, P: P * P}, "for each channel"),
    ("one row", check_counts, {"width": lambda C, P: C * P}, "numbers in a patch of"),
    ("no bias", check_counts, {"bias": 0}, "added to each token"),
    ("not shared", check_counts, {"each": 2}, "weights of its own"),
    ("with table", check_counts, {"table": 1}, "a layer of its own"),
    ("two biases", check_counts, {"bias": 2}, "and a bias"),
    ("pair", check_counts, lambda *sizes: (1, 2), "three numbers"),
    ("words", check_counts, lambda *sizes: ("1", 2, 3), "should be one number"),
    (
        "reshape",
        check_patchify,
        lambda x, P: x.reshape(len(x), -1, x.shape[1] * P * P),
        "as they lie in memory",
    ),
    ("columns", check_patchify, lambda x, P: F.unfold(x, P, stride=P), "one patch in each column"),
    ("not flat", check_patchify, cut_as("b (rows cols) c p q"), "still an image"),
    ("grid", check_patchify, cut_as("b rows cols (c p q)"), "still a grid"),
    ("no batch", check_patchify, cut_as("(b rows cols) (c p q)"), "the batch axis"),
    ("down", check_patchify, cut_as("b (cols rows) (c p q)"), "a page is read across"),
    ("down, mirrored", check_patchify, cut_as("b (cols rows) (q p c)"), "a page is read across"),
    ("backwards", check_patchify, lambda x, P: cut(x, P).flip(1), "upper left patch"),
    (
        "second",
        check_patchify,
        lambda x, P: cut(x, P)[:, [0, 2, 1, *range(3, 10)]],
        "comes second",
    ),
    (
        "comb",
        check_patchify,
        lambda x, P: rearrange(x, "b c (p rows) (q cols) -> b (rows cols) (c p q)", p=P, q=P),
        "belongs to the patch",
    ),
    (
        "channel first",
        check_patchify,
        lambda x, P: cut_as("b (c rows cols) (p q)")(x, P).reshape(len(x), -1, x.shape[1] * P * P),
        "before the grid",
    ),
    ("channels last", check_patchify, cut_as("b (rows cols) (p q c)"), "the channel comes first"),
    ("mirrored", check_patchify, cut_as("b (rows cols) (c q p)"), "row before column"),
    ("inside", check_patchify, cut_as("b (rows cols) (q c p)"), "which comes first here"),
    ("contiguous", check_patchify, only_contiguous, "RuntimeError"),
    ("cut as if first", check_kernel, lambda w, C, P: w.view(-1, C, P, P), "as if channels came"),
    ("channel axis", check_kernel, lambda w, C, P: w.view(-1, P, P, C), "which axis"),
    (
        "mirrored kernel",
        check_kernel,
        lambda w, C, P: kernel(w, C, P).transpose(2, 3),
        "row before pixel column",
    ),
    (
        "flipped kernel",
        check_kernel,
        lambda w, C, P: kernel(w, C, P).flip(-2, -1),
        "does not flip",
    ),
    ("scaled", check_kernel, lambda w, C, P: kernel(w, C, P) / C, "other numbers"),
    ("bgr", check_kernel, lambda w, C, P: kernel(w, C, P).flip(1), "meet its weight"),
    ("no std", check_grey, {"fold": 0}, "division by std"),
    ("mean of kernels", check_grey, {"fold": 0, "reduce": torch.mean}, "not averaged"),
    ("mean, scaled", check_grey, {"reduce": torch.mean}, "a third of the size"),
    ("times std", check_grey, {"fold": -1}, "divided by std; what happens"),
    (
        "one std",
        check_grey,
        lambda w, b, m, s: (w.sum(1, keepdim=True) / s.mean(), b),
        "one std for all",
    ),
    (
        "one channel",
        check_grey,
        lambda w, b, m, s: ((w / s.view(3, 1, 1))[:, :1], b),
        "the other two channels",
    ),
    ("no axis", check_grey, {"keep": False}, "one channel that is left"),
    ("no mean", check_grey, {"sign": 0}, "where does that constant go"),
    ("wrong sign", check_grey, {"sign": 1}, "a black image"),
    ("mean not divided", check_grey, {"shifted": lambda w: w}, "then divided by std"),
    ("own bias lost", check_grey, {"own": 0}, "a bias of its own"),
    ("bias doubled", check_grey, {"own": 2}, "left of a black image"),
    ("other kernel", check_grey, lambda w, b, m, s: (0 * w[:, :1], b), "meets three weights"),
    (
        "one mean",
        check_grey,
        lambda w, b, m, s: (
            grey(w, b, m, s)[0],
            b - m.mean() * (w / s.view(3, 1, 1)).sum((1, 2, 3)),
        ),
        "one mean for all",
    ),
    (
        "crop",
        check_fit,
        lambda x, P: x[:, : x.shape[1] // P * P, : x.shape[2] // P * P],
        "pixels are lost",
    ),
    ("always more", check_fit, {"more": lambda n, P: P - n % P}, "a whole row or column"),
    ("a whole patch", check_fit, {"more": lambda n, P: P}, "does not divide"),
    ("axes", check_fit, {"order": (1, 0)}, "F.pad begin with"),
    ("before", check_fit, {"sides": "before"}, "which of the four sides"),
    ("both sides", check_fit, {"sides": "both"}, "which of the four sides"),
    ("ones", check_fit, {"value": 1.0}, "not zero"),
    ("nothing", check_fit, lambda x, P: x.clone(), "does not divide"),
    (
        "resized",
        check_fit,
        lambda x, P: F.interpolate(x[None], fit_by_copy(x, P).shape[1:])[0],
        "has moved",
    ),
]
RIGHT_OF = {check_counts: counts, check_grey: grey, check_fit: fit}


@pytest.mark.parametrize(
    ("check", "mistake", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_planted_mistake_is_named(check, mistake, words):
    right = RIGHT_OF.get(check)
    answer = mistake if callable(mistake) else lambda *inputs: right(*inputs, **mistake)
    with pytest.raises(CheckFailed) as failure:
        check(answer)
    assert words in str(failure.value)
