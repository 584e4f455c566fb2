"""Looking at attention."""

import torch
from case import Case

from vitcheck.exercises.looking import check_reach, check_together


def reach_by_loops(weights, columns, P):
    result = []
    for q, row in enumerate(weights.tolist()):
        total = 0.0
        for k, weight in enumerate(row):
            down, right = q // columns - k // columns, q % columns - k % columns
            total += weight * P * (down**2 + right**2) ** 0.5
        result.append(total)
    return torch.tensor(result)


def together(model, images, first, second, P):
    def lead(*patches):
        hidden = images.clone()
        for patch in patches:
            row, column = patch // (images.shape[-1] // P), patch % (images.shape[-1] // P)
            for i in range(P):
                for j in range(P):
                    mean = images.mean(dim=(1, 2, 3))[:, None]
                    hidden[:, :, P * row + i, P * column + j] = mean
        with torch.no_grad():
            return model(hidden).log_softmax(dim=1)

    answer = lead().argmax(dim=1, keepdim=True)
    rest = lead(first) + lead(second) - lead() - lead(first, second)
    return rest.gather(1, answer)[:, 0]


CASES = [
    Case(
        check_reach,
        also={"loops": reach_by_loops},
        wrong={"one number": (lambda w, c, P: reach_by_loops(w, c, P).mean(), "expected (6,)")},
    ),
    Case(check_together, also={"loops": together}),
]
