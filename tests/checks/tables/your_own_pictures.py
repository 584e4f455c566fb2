"""Their ViT, your own pictures."""

import hashlib

import torch
from case import Case

from vitcheck.exercises.your_own_pictures import check_loss, check_parts


def by_sorted_bytes(places):
    def number(scene):
        return hashlib.md5(scene.encode()).digest()[0]

    return tuple("test" if number(place.partition("/")[0]) < 51 else "train" for place in places)


def weighted(losses, sizes):
    shares = torch.tensor(sizes) / sum(sizes)
    return (torch.stack(losses) * shares).sum()


CASES = [
    Case(
        check_parts,
        also={"bytes": by_sorted_bytes},
        wrong={
            "all to learn from": (lambda places: ["train"] * len(places), "about a fifth"),
            "other words": (lambda places: ["val"] * len(places), '"train" or "test"'),
            "too few": (lambda places: ["train"], "400"),
        },
    ),
    Case(
        check_loss,
        also={"shares": weighted},
        wrong={"the largest": (lambda losses, sizes: max(losses), "share of the images")},
    ),
]
