"""Checks: from blocks to a class."""

from functools import lru_cache

import torch
import torch.nn.functional as F

from vitbook.models.vit import VisionTransformer
from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _mean_is(mean):
    """The class token is right, and this is returned for "mean"."""
    return lambda features, pool: features[:, 0] if pool == "cls" else mean(features)


@staged(
    "read-out",
    ok="one vector an image, from the token or from the patches alone.",
    right=_mean_is(lambda features: features[:, 1:].mean(1)),
    mistakes={
        "that is the last token; where does the class token stand?": lambda features, pool: (
            features[:, -1] if pool == "cls" else features[:, :-1].mean(1)
        ),
        "that is a mean; is pool looked at?": [
            lambda features, pool: features.mean(1),
            lambda features, pool: features[:, 1:].mean(1),
        ],
        "the class token is no patch; is it in your mean?": _mean_is(
            lambda features: features.mean(1)
        ),
        "the class token is no patch; is it in the number you divide by?": _mean_is(
            lambda features: features[:, 1:].sum(1) / features.shape[1]
        ),
        "that is a sum; does it grow with the image?": _mean_is(
            lambda features: features[:, 1:].sum(1)
        ),
        "that is the class token again; is pool looked at?": lambda features, pool: features[:, 0],
        "you left out the last patch; which one is to be left out?": _mean_is(
            lambda features: features[:, :-1].mean(1)
        ),
        "that is a single patch; may the order of the patches change the mean?": [
            _mean_is(lambda features, n=n: features[:, n]) for n in range(1, 7)
        ],
    },
)
def check_readout(trial: Trial, my_readout):
    """my_readout(features, pool): (B, N + 1, D), class token first; "cls" or "mean" -> (B, D)."""
    features = trial.randn(2, 7, 5)
    for pool, otherwise in (
        ("cls", "which row of an image is the class token's?"),
        ("mean", "what is the mean over the patches, for each of the D numbers?"),
    ):
        trial.stage(pool)
        trial.compare(my_readout, features, pool, otherwise=otherwise)


def _joined(cls, patches):
    return torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)


def _at_the_end(cls, patches):
    return torch.cat([patches, cls.expand(len(patches), -1, -1)], dim=1)


@staged(
    "positions in line",
    ok="every patch has its own row, and the class token has none.",
    right=lambda cls, patches, table: _joined(cls, patches + table),
    mistakes={
        "it stands at the end; the head will read token 0": [
            lambda cls, patches, table: _at_the_end(cls, patches),
            lambda cls, patches, table: _at_the_end(cls, patches + table),
        ],
        "it took the row of the first patch; who has taken whose row then?": (
            lambda cls, patches, table: _joined(cls, patches) + F.pad(table, (0, 0, 0, 1))
        ),
        "no patch was told its place": lambda cls, patches, table: _joined(cls, patches),
        "each patch has the row of the next one, the last has none: where did the table start?": (
            lambda cls, patches, table: _joined(cls, patches + F.pad(table[1:], (0, 0, 0, 1)))
        ),
        "each patch has the row of the one before, the first has none: where did it start?": (
            lambda cls, patches, table: _joined(cls, patches + F.pad(table[:-1], (0, 0, 1, 0)))
        ),
    },
)
def check_in_line(trial: Trial, my_tokens):
    """my_tokens(cls, patches, table): (1, 1, D), (B, N, D), (N, D) -> (B, N + 1, D)."""
    B, N, D = 2, 6, 5
    given = trial.randn(1, 1, D), trial.randn(B, N, D), trial.randn(N, D)
    trial.stage("shape")
    got = trial.tensor(my_tokens(*given), (B, N + 1, D))
    trial.stage("class token")
    otherwise = "what is the class token, before any block?"
    trial.compare(got, *given, part=lambda tokens: tokens[:, 0], otherwise=otherwise)
    trial.stage("patches")
    trial.compare(got, *given, otherwise="is row n of the table added to patch n?")


@lru_cache
def _model(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    with torch.device("meta"):  # shapes, no numbers
        return VisionTransformer(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            num_classes=num_classes,
            embed_dim=embed_dim,
            depth=depth,
            num_heads=1,
        )


def _count(*sizes):
    return sum(p.numel() for p in _model(*sizes).parameters())


def _biases(*sizes):
    return sum(p.numel() for name, p in _model(*sizes).named_parameters() if name.endswith("bias"))


def _without(missing):
    """A count without these: a function of image_size, patch_size, C, K, D, L."""
    return lambda *sizes: _count(*sizes) - missing(*sizes)


@staged(
    "parameters",
    ok="your count is that of the package, on three models.",
    right=_count,
    mistakes={
        "K numbers are missing: has the head a bias?": _without(lambda size, P, C, K, D, L: K),
        "D numbers are missing: the class token, its row of the table, or a bias?": _without(
            lambda size, P, C, K, D, L: D
        ),
        "2 D are missing: the last norm, or the class token and its row?": _without(
            lambda size, P, C, K, D, L: 2 * D
        ),
        "3 D a block are missing: have queries, keys and values a bias?": _without(
            lambda size, P, C, K, D, L: 3 * D * L
        ),
        "4 D a block are missing: how many norms has a block, of how many numbers?": _without(
            lambda size, P, C, K, D, L: 4 * D * L
        ),
        "9 D a block are missing: which linear layers of a block have a bias?": _without(
            lambda size, P, C, K, D, L: 9 * D * L
        ),
        "13 D a block are missing: norms, and the biases of the linear layers?": _without(
            lambda size, P, C, K, D, L: 13 * D * L
        ),
        "are those the weights alone? Biases learn too": _without(_biases),
        "where is the table of positions?": _without(
            lambda size, P, C, K, D, L: ((size // P) ** 2 + 1) * D
        ),
        "that is one block; how many are there?": _without(
            lambda size, P, C, K, D, L: (L - 1) * (12 * D * D + 13 * D)
        ),
        "4 D squared a block are missing: who projects the heads' output?": _without(
            lambda size, P, C, K, D, L: L * 4 * D * D
        ),
        "how many numbers has a patch of C channels?": [
            _without(lambda size, P, C, K, D, L, own=own: (C - own) * P * P * D) for own in (1, 3)
        ],
    },
)
def check_vit_parameters(trial: Trial, my_count):
    """my_count(image_size, patch_size, in_channels, num_classes, embed_dim, depth) -> number."""
    for image_size, P, C, K in ((28, 7, 1, 10), (32, 4, 3, 7), (48, 8, 3, 100)):
        D, L = 8 * trial.integer(3, 9), trial.integer(2, 5)
        sizes = image_size, P, C, K, D, L
        trial.stage(f"images of {image_size}, D = {D}, L = {L}")
        got, want = trial.number(my_count(*sizes)), _count(*sizes)
        otherwise = (
            f"{got - want:.0f} too many; is anything counted for each head or for each token?"
            if got > want
            else f"{want - got:.0f} are missing; count the parts one by one"
        )
        trial.compare(got, *sizes, otherwise=otherwise)


_PARITY = {
    "row 1 alone speaks for the right number of heads": (
        NO,
        "by how much does the planted mistake in the heads move a logit there?",
    ),
    "row 2 alone speaks for the right number of heads": (
        YES,
        "a wrong number of heads moves a logit by 0.6 there; could the two have missed that?",
    ),
    "row 2 alone speaks for the right eps": (
        NO,
        "is what a wrong eps moves there above the tolerance?",
    ),
    "rows 1 to 3 together speak for the right eps": (
        YES,
        "in which row would a wrong eps have been noticed, and was anything noticed there?",
    ),
    "both models drop the same share of values in training": (
        OPEN,
        "what does dropout do in evaluation mode?",
    ),
}


check_parity = reading(
    "a row speaks for a setting if a mistake there would have been noticed.",
    _PARITY,
    what="what the test shows",
)
