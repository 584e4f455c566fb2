"""What "a query among its keys" reads: the dictionary of the kitten, and its query."""

from .pack import packed

ANIMALS, PLACES = ("cat", "fish", "bear"), ("house", "pond", "forest")
VALUES = [[1.0, 4.0], [0.0, 0.0], [6.0, 1.0]]
KITTEN = [0.4, 1.8]


def data() -> dict:
    """Three keys on a circle and their values; made as the page makes them."""
    import torch

    angles = torch.tensor([90.0, 210.0, 330.0]).deg2rad()
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    arrays = {"keys": keys.numpy(), "values": VALUES, "kitten": KITTEN}
    return {
        "animals": ANIMALS,
        "places": PLACES,
        "arrays": {name: packed(array, "f32") for name, array in arrays.items()},
    }
