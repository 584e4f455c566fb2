"""Chapter 17: hybrids."""

from functools import reduce

from case import Case, reads

from vitcheck.ch17_hybrids import check_equal, check_misfits, check_places, check_stack


def stack(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(norm(x))
        x = x + mlp(norm(x))
    return norm(x)


def by_branches(x, mixings, mlps, norm):
    branches = [branch for pair in zip(mixings, mlps, strict=True) for branch in pair]
    return norm(reduce(lambda x, branch: x + branch(norm(x)), branches, x))


def post_norm(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = norm(x + mix(x))
        x = norm(x + mlp(x))
    return x


def no_residual(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = mlp(norm(mix(norm(x))))
    return norm(x)


def without_last_norm(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(norm(x))
        x = x + mlp(norm(x))
    return x


def mixings_first(x, mixings, mlps, norm):
    for layer in [*mixings, *mlps]:
        x = x + layer(norm(x))
    return norm(x)


def side_by_side(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(norm(x)) + mlp(norm(x))
    return norm(x)


def raw_mixing(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(x)
        x = x + mlp(norm(x))
    return norm(x)


def raw_mlp(x, mixings, mlps, norm):
    for mix, mlp in zip(mixings, mlps, strict=True):
        x = x + mix(norm(x))
        x = x + mlp(x)
    return norm(x)


def three_blocks(x, mixings, mlps, norm):
    return stack(x, (mixings * 3)[:3], (mlps * 3)[:3], norm)


def equal(N, D):
    return 2 * D**2 / N, N / D + N**2 / (2 * D**2)


def equal_by_layers(N, D):
    width = 4 * D * D / (2 * N)
    attention = N * (4 * D * D) + 2 * (N * N * D)
    return width, attention / (D * (N * width + width * N))


def misfits(layers, positions):
    return 3 * layers.count("mixer") + (positions == "learned")


def misfits_by_shape(layers, positions):
    """From the package: two models for different grids, tensor by tensor."""
    from vitbook.models.hybrid import Hybrid

    sizes = {"patch_size": 2, "in_channels": 1, "num_classes": 2, "embed_dim": 4, "num_heads": 2}
    small, large = (
        Hybrid(image_size=side, layers=layers, positions=positions, **sizes).state_dict()
        for side in (4, 8)
    )
    return sum(small[name].shape != large[name].shape for name in small)


ANSWERS = {
    "mixing the patches helps on these images": "yes",
    "one attention layer at the beginning helps on these images": "yes",
    "one attention layer at the end helps on these images": "cannot say",
    "the beginning is a better place for it than the end": "cannot say",
    "four attention layers gain five points or more here": "no",
    "with ten times as many images the stacks come out alike": "cannot say",
}


CASES = [
    Case(
        check_stack,
        right=stack,
        also={"branches": by_branches},
        mistakes={
            "post-norm": (post_norm, "not after the sum"),
            "no residual": (no_residual, "what would it replace"),
            "no last norm": (without_last_norm, "after the last block"),
            "apart": (mixings_first, "Did all mixings come first"),
            "side by side": (side_by_side, "reads what its mixing has left"),
            "raw mixing": (raw_mixing, "before the mixing"),
            "raw MLP": (raw_mlp, "before the MLP"),
            "one mixing": (
                lambda x, mixings, *rest: stack(x, mixings[:1] * len(mixings), *rest),
                "that of the first",
            ),
            "backwards": (
                lambda x, mixings, mlps, norm: stack(x, mixings[::-1], mlps[::-1], norm),
                "in which order",
            ),
            "typed depth": (three_blocks, "typed somewhere"),
        },
    ),
    Case(
        check_equal,
        right=equal,
        also={"layers": equal_by_layers},
        mistakes={
            "three matrices": (lambda N, D: (3 * D * D / (2 * N), 0), "four matrices"),
            "one matrix": (lambda N, D: (4 * D * D / N, 0), "two matrices"),
            "the MLP": (lambda N, D: (4 * D, 0), "another layer"),
            "the paper's": (lambda N, D: (D / 2, 0), "whatever N"),
            "turned": (lambda N, D: (equal(N, D)[0], 1 / equal(N, D)[1]), "other way round"),
            "weights alone": (lambda N, D: (equal(N, D)[0], N / D), "without weights"),
            "dearer only with more patches than channels": (
                lambda N, D: (equal(N, D)[0], equal(N, D)[1] if N > D else min(1, equal(N, D)[1])),
                "three patches for four channels",
            ),
            "right only for few patches": (
                lambda N, D: (equal(N, D)[0], min(equal(N, D)[1], 1.1)),
                "more patches than channels",
            ),
            "one product": (
                lambda N, D: (equal(N, D)[0], N / D + N**2 / (4 * D**2)),
                "two such products",
            ),
            "alike": (lambda N, D: (equal(N, D)[0], 1), "each of D channels"),
            "tokens": (
                lambda N, D: (equal(N, D)[0], equal(N, D)[1] * D / N),
                "each of D channels",
            ),
            "difference": (
                lambda N, D: (equal(N, D)[0], 4 * N * D**2 + 2 * N**2 * D - 4 * D**3),
                "not by how many",
            ),
        },
        stubs=(lambda N, D: (..., ...),),
    ),
    Case(
        check_misfits,
        right=misfits,
        also={"shapes": misfits_by_shape},
        mistakes={
            "all four": (lambda ls, p: 4 * ls.count("mixer") + (p == "learned"), "do not know N"),
            "no bias": (lambda ls, p: 2 * ls.count("mixer") + (p == "learned"), "N entries"),
            "layers": (lambda ls, p: ls.count("mixer") + (p == "learned"), "count tensors"),
            "no table": (lambda ls, p: 3 * ls.count("mixer"), "a row for each place"),
            "always a table": (lambda ls, p: 3 * ls.count("mixer") + 1, "no positions here"),
            "attention too": (lambda ls, p: 3 * len(ls), "which shapes hold N"),
        },
    ),
    Case(
        check_places,
        right=reads(ANSWERS),
        mistakes={
            "no mixing": (reads(ANSWERS, _0="cannot say"), "mixes nothing"),
            "overlap": (reads(ANSWERS, _1="cannot say"), "an interval of its own"),
            "no help": (reads(ANSWERS, _2="no"), "And half a point"),
            "help": (reads(ANSWERS, _2="yes"), "hold zero"),
            "beginning": (reads(ANSWERS, _3="yes"), "which difference"),
            "five points": (reads(ANSWERS, _4="cannot say"), "the largest gain"),
            "further": (reads(ANSWERS, _5="yes"), "more images"),
        },
    ),
]
