"""Looking at attention."""

import torch
from case import Case

from vitcheck.exercises.looking import check_reach, check_readings, check_together


def reach_by_distances(weights, columns, P):
    N = len(weights)
    place = torch.stack([torch.arange(N) // columns, torch.arange(N) % columns], dim=1).double()
    return (weights * torch.cdist(place, place) * P).sum(dim=1)


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


FOLLOWS = {
    "the map does better than chance": "yes",
    "the map agrees with it as well as a second occlusion": "cannot say",
    "the map ranks the patches better than the ink does": "no",
    "the answer would change if its darkest patch were hidden": "cannot say",
}

CASES = [
    Case(
        check_reach,
        also={"distances": reach_by_distances, "loops": reach_by_loops},
        wrong={
            "one number": (lambda w, c, P: reach_by_loops(w, c, P).mean(), "expected (6,)"),
        },
    ),
    Case(check_together, also={"loops": together}),
    Case(
        check_readings,
        also={"in words": lambda: dict(FOLLOWS)},
        wrong={
            "truth values": (
                lambda: FOLLOWS | {"the map does better than chance": True},
                '"yes", "no" or "cannot say"',
            ),
            "no answers": (dict, "lost its answer"),
        },
    ),
]
