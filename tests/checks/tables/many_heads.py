"""Many heads."""

from case import Case

from vitcheck.exercises.many_heads import check_split_heads, check_without_head


def split(x, h):
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def less_its_contribution(layer, x, head):
    q, k, v = layer.project(x)
    d = layer.head_dim
    weights = (q @ k.transpose(-2, -1) / d**0.5).softmax(-1)
    own = slice(head * d, (head + 1) * d)
    return layer(x) - (weights @ v)[:, head] @ layer.proj.weight[:, own].T


CASES = [
    Case(
        check_split_heads,
        wrong={
            "heads turned round": (
                lambda x, h: split(x, h).flip(1),
                "head 0 should hold the columns 0 to 3",
            ),
            "sizes typed": (lambda x, h: x.reshape(2, 5, 3, 4).transpose(1, 2), "other sizes"),
        },
    ),
    Case(
        check_without_head,
        also={"less its contribution": less_its_contribution},
        wrong={
            "another scale": (
                lambda layer, x, head: 2 * less_its_contribution(layer, x, head),
                "in a copy: is it the same",
            )
        },
    ),
]
