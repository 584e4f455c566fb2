"""Chapter 18: what attention buys."""

from case import Case, reads

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


def at_most(sizes, whole):
    width = max(w for w in sizes if sizes[w][0] <= whole[0])
    return width, budget(sizes, whole)[1]


def at_least(sizes, whole):
    width = min(w for w in sizes if sizes[w][0] >= whole[0])
    return width, budget(sizes, whole)[1]


def by_multiplications(sizes, whole):
    return min(sizes, key=lambda w: abs(sizes[w][1] - whole[1])), 1


def upside_down(sizes, whole):
    width = budget(sizes, whole)[0]
    return width, round(whole[2] * sizes[width][1] / whole[1])


def right(K, a, wrong=0.5):
    return a / (2 * K) + (1 - wrong * a * (a - 1) / (K * (K - 1))) / 2


def ceiling(K):
    return max(right(K, a) for a in range(K + 1))


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
        right=budget,
        also={"loop": by_loop},
        wrong={
            "at most": (at_most, "may be nearer than far too few"),
            "at least": (at_least, "may be nearer than far too many"),
            "largest": (lambda s, w: (max(s), 1), "the largest is not wanted"),
            "upside down": (upside_down, "fewer steps, not more"),
            "equal steps": (lambda s, w: (budget(s, w)[0], w[2]), "equal images"),
            "no steps": (lambda s, w: (budget(s, w)[0], 1), "the same number for both"),
        },
        stubs=(lambda sizes, whole: (..., ...),),
    ),
    Case(
        check_ceiling,
        right=ceiling,
        also={"counting": by_counting},
        wrong={
            "one a": (lambda K: right(K, K // 4), "which a is the best"),
            "both orders": (lambda K: max(right(K, a, 1) for a in range(K + 1)), "not both"),
            "free": (lambda K: 1.0, "Two kinds called the same"),
            "double": (lambda K: 2 * ceiling(K), "half of the images"),
            "a guess": (lambda K: 0.6, "for each a from 0 to K"),
        },
    ),
    Case(
        check_comparison,
        right=reads(ANSWERS),
        wrong={
            "no difference": (reads(ANSWERS, _0="cannot say"), "hold zero"),
            "cannot": (reads(ANSWERS, _1="yes"), "four times the compute"),
            "needed": (reads(ANSWERS, _2="yes"), "without attention is as good"),
            "equal": (reads(ANSWERS, _3="yes"), "Is zero all"),
            "cause": (reads(ANSWERS, _4="yes"), "Which control"),
            "learned": (reads(ANSWERS, _5="yes"), "Only that"),
            "learned nothing": (reads(ANSWERS, _5="no"), "Only that"),
        },
    ),
]
