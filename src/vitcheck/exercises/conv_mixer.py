"""Checks: a depthwise convolution, how deep is deep enough, a curve."""

from functools import partial

import torch.nn.functional as F
from torch import Tensor

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _depthwise(x: Tensor, weight: Tensor, pad: str = "constant") -> Tensor:
    padded = F.pad(x[None], [weight.shape[-1] // 2] * 4, mode=pad)
    return F.conv2d(padded, weight[:, None], groups=len(x))[0]


@staged(
    "my_depthwise",
    ok="each channel with its own kernel, zeros beyond the edge",
    right=_depthwise,
    mistakes={
        "the kernel is turned round: which of its corners meets the upper left neighbour?": (
            lambda x, weight: _depthwise(x, weight.flip(-1, -2))
        ),
        "rows and columns of the kernel are exchanged": lambda x, weight: _depthwise(x, weight.mT),
        "all channels went into each result. Which one belongs to this kernel?": lambda x, weight: (
            _depthwise(x.sum(0, keepdim=True).expand_as(x), weight)
        ),
        "every channel has the kernel of the first": lambda x, weight: _depthwise(
            x, weight[:1].expand_as(weight)
        ),
        "what lies beyond the edge: zeros, or the other side?": partial(_depthwise, pad="circular"),
        "what lies beyond the edge: zeros, or the image once more?": [
            partial(_depthwise, pad="reflect"),
            partial(_depthwise, pad="replicate"),
        ],
    },
)
def check_depthwise(trial: Trial, my_depthwise):
    """my_depthwise(x, weight): x (D, H, W), weight (D, k, k), k odd -> (D, H, W)."""
    x, weight = trial.randn(4, 5, 5), trial.randn(4, 3, 3)
    trial.stage("one result for each place and channel")
    otherwise = "take one place of one channel: the products of its k x k neighbours, added up"
    trial.compare(my_depthwise, x, weight, otherwise=otherwise, tolerance=1e-4)
    trial.stage("another kernel size")
    x, weight = trial.randn(2, 4, 6), trial.randn(2, 5, 5)
    question = "is a size typed somewhere?"
    trial.close(my_depthwise(x, weight), _depthwise(x, weight), question, tolerance=1e-4)


def _depth(distance, k):
    return -(-distance // (k - 1))


def _right_for_3(wrong):
    """A mistake that shows with other kernels only."""
    return lambda distance, k: _depth(distance, k) if k == 3 else wrong(distance, k)


@staged(
    "my_depth",
    ok="two patches meet in a token as soon as the field spans both",
    right=_depth,
    mistakes={
        "does the token have to stand on one of the two patches, or may it be between them?": (
            lambda distance, k: _depth(2 * distance, k)
        ),
        "one block adds two patches to the field. Does it add two on each side?": (
            lambda distance, k: -(-distance // (2 * (k - 1)))
        ),
        "half a block does not exist: is the last patch in the field?": lambda distance, k: (
            distance // (k - 1)
        ),
        "count the patch in the middle once: 1 + m (k - 1)": lambda distance, k: (
            distance // (k - 1) + 1
        ),
        "is the kernel's size 3 in your answer?": lambda distance, k: _depth(distance, 3),
        "a kernel of k patches reaches (k - 1) / 2 to each side, not k": [
            lambda distance, k: -(-distance // k),
            _right_for_3(lambda distance, k: -(-distance // k)),
        ],
        "does the token have to stand on one of the two?": _right_for_3(
            lambda distance, k: _depth(2 * distance, k)
        ),
    },
)
def check_depth(trial: Trial, my_depth):
    """my_depth(distance, k): least number of blocks after which some token has heard both."""
    trial.stage("kernels of 3")
    for distance in (10, 4, 7, 11, 2):  # first one for which no two mistakes give the same
        trial.compare(
            my_depth,
            distance,
            3,
            otherwise=f"two patches {distance} apart: how wide is the field that holds both?",
            name=f"depth for distance {distance}",
        )
    trial.stage("any kernel")
    for distance, k in ((20, 9), (7, 5), (8, 5), (9, 5), (6, 7)):
        trial.compare(
            my_depth,
            distance,
            k,
            otherwise="the field has 1 + m (k - 1) patches; how many have to fit in?",
            name=f"depth for distance {distance}, kernel {k}",
        )


_STATEMENTS = {
    "model A has the reach of 4 blocks with kernels of 3": (
        YES,
        "1 + 4 * 2 patches: between which distances should it fall?",
    ),
    "A has heard both at distance 9, but cannot compare": (
        NO,
        "which token could have heard both?",
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


check_distances = reading("what a curve over the distance shows, and what it does not", _STATEMENTS)
