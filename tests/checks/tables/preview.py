"""The preview."""

from case import Case

from vitcheck.exercises.preview import check_hide_patch, check_strongest_patch


def strongest_by_loops(weights, columns):
    best = max(range(1, len(weights)), key=lambda token: weights[0, token])
    return [(best - 1) // columns, (best - 1) % columns]


def hide(images, patch, P, columns=None, value=None):
    row, column = divmod(patch, columns or images.shape[3] // P)
    hidden = images.clone()
    mean = images.mean((1, 2, 3), keepdim=True) if value is None else value
    hidden[:, :, P * row : P * row + P, P * column : P * column + P] = mean
    return hidden


def hide_by_loops(images, patch, P):
    hidden = images.clone()
    per_row = images.shape[3] // P
    for image in hidden:
        mean = image.mean()
        for i in range(P):
            for j in range(P):
                image[:, P * (patch // per_row) + i, P * (patch % per_row) + j] = mean
    return hidden


def hide_in_place(images, patch, P):
    images.copy_(hide(images, patch, P))
    return images


CASES = [
    Case(
        check_strongest_patch,
        also={"loops": strongest_by_loops},
        wrong={"one number": (lambda w, c: int(w[0, 1:].argmax()), "a pair")},
    ),
    Case(
        check_hide_patch,
        also={"loops": hide_by_loops},
        wrong={
            "nothing": (lambda x, p, P: x, "nothing has changed"),
            "in place": (hide_in_place, "in place"),
            "another place": (lambda x, p, P: hide(x, p, P, columns=4), "outside the patch"),
            "zero": (lambda x, p, P: hide(x, p, P, value=0.0), "filled with"),
        },
    ),
]
