"""The preview."""

from case import Case

from vitcheck.exercises.preview import check_hide_patch, check_strongest_patch


def hide(images, patch, P, columns=None, value=None):
    row, column = divmod(patch, columns or images.shape[3] // P)
    hidden = images.clone()
    mean = images.mean((1, 2, 3), keepdim=True) if value is None else value
    hidden[:, :, P * row : P * row + P, P * column : P * column + P] = mean
    return hidden


def hide_in_place(images, patch, P):
    images.copy_(hide(images, patch, P))
    return images


CASES = [
    Case(
        check_strongest_patch,
        wrong={"one number": (lambda w, c: int(w[0, 1:].argmax()), "a pair")},
    ),
    Case(
        check_hide_patch,
        wrong={
            "nothing": (lambda x, p, P: x, "nothing has changed"),
            "in place": (hide_in_place, "in place"),
            "another place": (lambda x, p, P: hide(x, p, P, columns=4), "outside the patch"),
            "zero": (lambda x, p, P: hide(x, p, P, value=0.0), "filled with"),
        },
    ),
]
