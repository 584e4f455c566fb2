"""Objects on a canvas: where they are is known."""

import torch
from torch.testing import assert_close

from vitbook.data.canvas import place_on_canvas

N, C, H, W, SIZE = 5, 2, 4, 6, 12


def objects():
    return torch.rand(N, C, H, W, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.2


def test_without_noise_the_object_stands_where_the_mask_says_and_nothing_else_is_there():
    images, masks = place_on_canvas(objects(), SIZE, seed=3, noise=0.0)
    assert images.shape == (N, C, SIZE, SIZE)
    assert masks.shape == (N, SIZE, SIZE)
    for image, mask, thing in zip(images, masks, objects(), strict=True):
        rows, columns = mask.nonzero().T
        top, left = int(rows.min()), int(columns.min())
        assert mask.sum() == H * W
        assert torch.equal(image[:, top : top + H, left : left + W], thing)
        assert (image[:, ~mask] == 0).all()


def test_dark_pixels_of_an_object_are_not_in_the_mask():
    things = objects()
    things[:, :, 1, 2] = 0
    masks = place_on_canvas(things, SIZE, noise=0.0).masks
    assert (masks.sum(dim=(1, 2)) == H * W - 1).all()
    bright = place_on_canvas(things, SIZE, noise=0.0, threshold=1.0).masks
    assert not bright.any()


def test_the_share_of_a_patch_is_counted():
    placed = place_on_canvas(torch.ones(1, 1, SIZE, SIZE), SIZE)
    assert_close(placed.object_share(4), torch.ones(1, 9))
    placed = place_on_canvas(objects(), SIZE)
    tiles = placed.masks.unflatten(2, (3, 4)).unflatten(1, (3, 4)).float().mean(dim=(2, 4))
    assert_close(placed.object_share(4), tiles.flatten(1))


X = objects()
BAD_INPUT = [
    (lambda: place_on_canvas(X[0], SIZE), ValueError, "(n, C, h, w)"),
    (lambda: place_on_canvas(X, 5), ValueError, "size must be at least 6"),
    (lambda: place_on_canvas(X, SIZE, noise=2), ValueError, "noise must be between"),
    (lambda: place_on_canvas(X, SIZE, -1), ValueError, "seed must be at least 0"),
    (lambda: place_on_canvas(X, SIZE).object_share(5), ValueError, "must divide"),
]
