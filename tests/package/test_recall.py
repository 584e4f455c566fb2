"""Recall: the images of `what_attention_buys` in which every patch asks another one."""

import pytest
import torch

from vitbook.data.recall import COLORS, recall


def patches(images, side):
    return images.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)


@pytest.mark.parametrize("side", [2, 4, 8])
def test_the_colour_and_the_dot_of_every_patch_are_what_the_labels_say(side):
    data, N = recall(20, seed=3, side=side, noise=0.0), side**2
    cells = patches(data.images, side)  # (n, N, 3, 8, 8)
    white = (cells == 1).all(dim=2)  # (n, N, 8, 8)
    assert (white.sum(dim=(2, 3)) == (8 // side) ** 2).all()
    thumbnail = white[:, :, :: 8 // side, :: 8 // side].flatten(2)  # (n, N, N): a pixel a patch
    assert (thumbnail.float().argmax(dim=2) == data.targets).all()
    assert (data.targets != torch.arange(N)).all()
    corner = cells[..., -1, -1].where(~white[..., -1, -1][..., None], cells[..., 0, 0])
    assert torch.allclose(corner, COLORS[data.colors])
    assert torch.equal(data.labels, data.colors.gather(1, data.targets))
    counts = torch.nn.functional.one_hot(data.colors, 4).sum(dim=1)
    assert (counts == N // 4).all()


def test_the_neighbour_on_the_right_is_asked_on_the_same_images_and_at_the_edge_oneself():
    named, right = (recall(10, seed=4, partner=partner) for partner in ("named", "right"))
    assert torch.equal(named.images, right.images)
    grid, labels = right.colors.view(-1, 4, 4), right.labels.view(-1, 4, 4)
    assert torch.equal(labels[:, :, :3], grid[:, :, 1:])
    assert torch.equal(labels[:, :, 3], grid[:, :, 3])


@pytest.mark.parametrize("side", [2, 4, 8])
def test_a_labelled_partner_carries_the_black_dot_that_the_white_dot_names(side):
    data, N, step = recall(20, seed=3, side=side, partner="labelled", noise=0.0), side**2, 8 // side
    cells = patches(data.images, side)  # (n, N, 3, 8, 8)
    white, black = ((cells == shade).all(dim=2) for shade in (1, 0))  # (n, N, 8, 8)
    asked, names = (
        dots[:, :, ::step, ::step].flatten(2).float().argmax(dim=2) for dots in (white, black)
    )
    for dots in (white, black):
        assert (dots.sum(dim=(2, 3)) == step**2).all()
    assert torch.equal(names, data.names)
    assert (names.sort(dim=1).values == torch.arange(N)).all()  # every label once
    found = (names[:, None] == asked[:, :, None]).float().argmax(dim=2)  # (n, N)
    assert torch.equal(found, data.targets)
    assert torch.equal(data.labels, data.colors.gather(1, found))
    assert (data.targets != torch.arange(N)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"side": 3}, "side"),
        ({"partner": "left"}, "partner must be one of .named., .right., .labelled."),
    ],
)
def test_what_is_not_offered_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        recall(2, **wrong)
