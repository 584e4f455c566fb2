"""Checks of chapter 16: a depthwise convolution, how deep is deep enough, its bill, a curve."""

import torch.nn.functional as F
from torch import Tensor

from vitcheck.reading import NO, OPEN, YES, judge
from vitcheck.trial import Trial, staged


@staged("my_depthwise", ok="each channel with its own kernel, zeros beyond the edge")
def check_depthwise(trial: Trial, my_depthwise):
    """my_depthwise(x, weight): x (D, H, W), weight (D, k, k), k odd -> (D, H, W)."""
    D, H, W, k = 4, 5, 5, 3
    x, weight = trial.randn(D, H, W), trial.randn(D, k, k)

    def conv(x: Tensor, weight: Tensor, groups: int = D, pad: str = "constant") -> Tensor:
        p = weight.shape[-1] // 2
        return F.conv2d(F.pad(x[None], [p] * 4, mode=pad), weight, groups=groups)[0]

    own = weight[:, None]
    trial.stage("one result for each place and channel")
    trial.match(
        my_depthwise(x, weight),
        conv(x, own),
        {
            "the kernel is turned round: which of its corners meets the upper left neighbour?": (
                conv(x, own.flip(-1, -2))
            ),
            "rows and columns of the kernel are exchanged": conv(x, own.mT),
            "all channels went into each result. Which one belongs to this kernel?": conv(
                x, weight[:, None].expand(D, D, k, k), groups=1
            ),
            "every channel has the kernel of the first": conv(x, own[:1].expand_as(own)),
            "what lies beyond the edge: zeros, or the other side?": conv(x, own, pad="circular"),
            "what lies beyond the edge: zeros, or the image once more?": [
                conv(x, own, pad=pad) for pad in ("reflect", "replicate")
            ],
        },
        otherwise="take one place of one channel: the products of its k x k neighbours, added up",
        tolerance=1e-4,
    )
    trial.stage("another kernel size")
    x, weight = trial.randn(2, 4, 6), trial.randn(2, 5, 5)
    trial.close(
        my_depthwise(x, weight),
        conv(x, weight[:, None], groups=2),
        "is a size typed somewhere?",
        tolerance=1e-4,
    )


@staged("my_depth", ok="two patches meet in a token as soon as the field spans both")
def check_depth(trial: Trial, my_depth):
    """my_depth(distance, k): least number of blocks after which some token has seen both."""
    trial.stage("kernels of 3")
    for distance in (4, 7, 11, 2):
        right = -(-distance // 2)
        trial.match(
            my_depth(distance, 3),
            right,
            {
                "does the token have to stand on one of the two patches, or may it be between "
                "them?": distance,
                "one block adds two patches to the field. Does it add two on each side?": [
                    -(-distance // 4)
                ],
                "half a block does not exist: is the last patch in the field?": distance // 2,
                "count the patch in the middle once: 1 + m (k - 1)": distance // 2 + 1,
            },
            otherwise=f"two patches {distance} apart: how wide is the field that holds both?",
            tolerance=0,
            name=f"depth for distance {distance}",
        )
    trial.stage("any kernel")
    for distance, k in ((7, 5), (8, 5), (9, 5), (6, 7), (20, 9)):
        trial.match(
            my_depth(distance, k),
            -(-distance // (k - 1)),
            {
                "is the kernel's size 3 in your answer?": -(-distance // 2),
                "a kernel of k patches reaches (k - 1) / 2 to each side, not k": -(-distance // k),
                "does the token have to stand on one of the two?": -(-2 * distance // (k - 1)),
            },
            otherwise="the field has 1 + m (k - 1) patches; how many have to fit in?",
            tolerance=0,
            name=f"depth for distance {distance}, kernel {k}",
        )


@staged("my_bill", ok="each weight is used once for each patch")
def check_conv_bill(trial: Trial, my_bill):
    """my_bill(N, D, k): multiplications and weights (no biases, no norms) of one block."""
    N, D, k = trial.integer(50, 90), trial.integer(20, 40), 2 * trial.integer(1, 4) + 1
    weights = D * k * k + D * D
    given = trial.pair(my_bill(N, D, k))
    trial.stage("weights")
    trial.match(
        trial.number(given[1], name="weights"),
        weights,
        {
            "a depthwise kernel sees one channel, not D of them": D * D * k * k + D * D,
            "does every channel have a kernel of its own?": k * k + D * D,
            "where are the channels mixed?": D * k * k,
            "the kernel has two sides": D * k + D * D,
            "the pointwise part has one layer here, without a wider one": D * k * k + 8 * D * D,
        },
        otherwise="one k x k kernel for each channel, and one D x D matrix",
        tolerance=1e-9,
        name="weights",
    )
    trial.stage("multiplications")
    trial.match(
        trial.number(given[0], name="multiplications"),
        N * weights,
        {
            "how many patches are there?": weights,
            "does a convolution compare all pairs of patches?": [
                N * N * weights,
                N * N * D + N * D * D,
            ],
        },
        otherwise="how often is each weight used?",
        tolerance=1e-9,
        name="multiplications",
    )


_STATEMENTS = {
    "model A has the reach of 4 blocks with kernels of 3": (
        YES,
        "1 + 4 * 2 patches: between which distances should it fall?",
    ),
    "A has seen both glyphs at distance 9, but cannot compare them": (
        NO,
        "which token could have seen both?",
    ),
    "longer training would make A right at distance 9": (
        NO,
        "can training change which tokens a token hears?",
    ),
    "B mixes no tokens": (
        OPEN,
        "a model that mixes and has not learned would give the same row",
    ),
    "C has a reach of 11 at least": (YES, "is it right where only such a reach would do?"),
    "C has attention": (OPEN, "which other models of this chapter have such a row?"),
}


@staged("my_reading", ok="what a curve over the distance shows, and what it does not")
def check_distances(trial: Trial, my_reading):
    """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_reading(), _STATEMENTS)
