"""Their ViT, your own pictures."""

import hashlib

import torch
from case import Case

from vitcheck.exercises.your_own_pictures import check_loss, check_parts, check_rates


def by_sorted_bytes(places):
    def number(scene):
        return hashlib.md5(scene.encode()).digest()[0]

    return tuple("test" if number(place.partition("/")[0]) < 51 else "train" for place in places)


def by_order(places):
    """Whole scenes, but which ones depends on all that are there."""
    scenes = sorted({place.split("/")[0] for place in places})
    tested = set(scenes[::5])
    return ["test" if place.split("/")[0] in tested else "train" for place in places]


def weighted(losses, sizes):
    shares = torch.tensor(sizes) / sum(sizes)
    return (torch.stack(losses) * shares).sum()


ANSWERS = {
    "from 64 to 1,024 the linear rule's rate is too large": "yes",
    "from 64 to 1,024 the root rule loses nothing": "no",
    "after as many images, 1,024 is worse than 16": "yes",
    "1,024 is worse because large batches find worse minima": "cannot say",
    "with SGD the linear rule fails, too": "cannot say",
}

CASES = [
    Case(
        check_parts,
        also={"bytes": by_sorted_bytes},
        wrong={
            "all to learn from": (lambda places: ["train"] * len(places), "about a fifth"),
            "other words": (lambda places: ["val"] * len(places), '"train" or "test"'),
            "too few": (lambda places: ["train"], "400"),
            "sorted scenes": (by_order, "others changed their part"),
        },
    ),
    Case(
        check_loss,
        also={"shares": weighted},
        wrong={"the largest": (lambda losses, sizes: max(losses), "share of the images")},
    ),
    Case(check_rates, also={"in words": lambda: ANSWERS}),
]
