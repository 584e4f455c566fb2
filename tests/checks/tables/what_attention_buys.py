"""What attention buys."""

from case import Case

from vitcheck.exercises.what_attention_buys import check_budget, check_factor


def budget(sizes, whole):
    parameters, multiplies, steps = whole
    width = min(sizes, key=lambda w: abs(sizes[w][0] - parameters))
    return width, round(steps * multiplies / sizes[width][1])


def upside_down(sizes, whole):
    width = budget(sizes, whole)[0]
    return width, round(whole[2] * sizes[width][1] / whole[1])


def by_listing(model, reference):
    found = [
        model[0] * here / (reference[0] * there) for here in model[1] for there in reference[1]
    ]
    return min(found), max(found)


def from_the_first_looks(model, reference):
    factor = model[0] * model[1][1] / (reference[0] * reference[1][1])
    return factor, factor


def finite(model, reference):
    least, most = by_listing(model, reference)
    return least, most if most < float("inf") else least


CASES = [
    Case(
        check_budget,
        wrong={
            "upside down": (upside_down, "fewer steps, not more"),
            "equal steps": (lambda s, w: (budget(s, w)[0], w[2]), "equal images"),
            "no steps": (lambda s, w: (budget(s, w)[0], 1), "the same number for both"),
        },
        stubs=(lambda sizes, whole: (..., ...),),
    ),
    Case(
        check_factor,
        wrong={
            "first looks": (from_the_first_looks, "Which looks bound it"),
            "no infinity": (finite, "has no largest factor"),
        },
        stubs=(lambda model, reference: (..., ...),),
    ),
]
