"""Their ViT, your own pictures."""

from case import Case

from vitcheck.exercises.your_own_pictures import check_loss, check_parts

CASES = [
    Case(
        check_parts,
        wrong={
            "all to learn from": (lambda places: ["train"] * len(places), "about a fifth"),
            "other words": (lambda places: ["val"] * len(places), '"train" or "test"'),
            "too few": (lambda places: ["train"], "400"),
        },
    ),
    Case(
        check_loss,
        wrong={"the largest": (lambda losses, sizes: max(losses), "share of the images")},
    ),
]
