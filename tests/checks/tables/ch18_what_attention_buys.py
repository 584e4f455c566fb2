"""Chapter 18: what attention buys."""

from case import Case

from vitcheck.ch18_what_attention_buys import check_budget, check_ceiling, check_comparison


def budget(sizes, whole):
    parameters, multiplies, steps = whole
    width = min(sizes, key=lambda w: abs(sizes[w][0] - parameters))
    return width, round(steps * multiplies / sizes[width][1])


def by_loop(sizes, whole):
    best = None
    for width, (count, own) in sizes.items():
        if best is None or abs(count - whole[0]) < best[0]:
            best = abs(count - whole[0]), width, own
    return best[1], whole[2] * whole[1] // best[2]


def upside_down(sizes, whole):
    width = budget(sizes, whole)[0]
    return width, round(whole[2] * sizes[width][1] / whole[1])


def by_counting(K):
    best = 0
    for a in range(K + 1):
        same, different = a, K * (K - 1) - a * (a - 1) // 2
        best = max(best, (same / K + different / (K * (K - 1))) / 2)
    return best


ANSWERS = {
    "on task 1, A is better than B at this budget": "yes",
    "on task 1, B cannot learn what A learns": "cannot say",
    "on task 2, 70 % need attention": "no",
    "on task 2, A and B are equally good": "cannot say",
    "A is better than B on task 1 because it attends": "cannot say",
    "C learned something on task 1": "cannot say",
}

CASES = [
    Case(
        check_budget,
        also={"rounded": budget, "loop": by_loop},
        wrong={
            "upside down": (upside_down, "fewer steps, not more"),
            "equal steps": (lambda s, w: (budget(s, w)[0], w[2]), "equal images"),
            "no steps": (lambda s, w: (budget(s, w)[0], 1), "the same number for both"),
        },
        stubs=(lambda sizes, whole: (..., ...),),
    ),
    Case(
        check_ceiling,
        also={"counting": by_counting},
        wrong={
            "a guess": (lambda K: 0.6, "for each a from 0 to K"),
        },
    ),
    Case(check_comparison, also={"in words": lambda: ANSWERS}),
]
