"""Looking at attention."""

import torch
from case import Case

from vitcheck.exercises.looking import check_reach


def reach_by_loops(weights, columns, P):
    result = []
    for q, row in enumerate(weights.tolist()):
        total = 0.0
        for k, weight in enumerate(row):
            down, right = q // columns - k // columns, q % columns - k % columns
            total += weight * P * (down**2 + right**2) ** 0.5
        result.append(total)
    return torch.tensor(result)


CASES = [
    Case(
        check_reach,
        wrong={"one number": (lambda w, c, P: reach_by_loops(w, c, P).mean(), "expected (6,)")},
    ),
]
