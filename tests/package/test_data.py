"""The data that needs no download: digits, generated sets, splits, augmentation."""

import zlib

import pytest
import torch
from torch.testing import assert_close

from vitbook.data import (
    STATISTICS,
    augmentation,
    load_digits,
    matching_pairs,
    normalize,
    pointer,
    random_flip,
    random_shift,
    stratified_split,
)
from vitbook.data.canvas import place_on_canvas
from vitbook.data.glyphs import covered_patches, glyphs
from vitbook.data.recall import COLORS, recall


def crc32(*tensors):
    crc = 0
    for tensor in tensors:
        crc = zlib.crc32(tensor.contiguous().numpy(), crc)
    return f"{crc:08x}"


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- digits


DIGITS = [
    ("trainval", 1438, "09311844"),
    ("test", 359, "b7dc09d5"),
    ("train", 1151, "7d9946cb"),
    ("validation", 287, "040f75af"),
]


@pytest.mark.parametrize(("part", "count", "expected"), DIGITS)
def test_digits_are_divided_in_the_same_way_forever(part, count, expected):
    images, labels = load_digits(part)
    assert images.shape == (count, 1, 8, 8)
    assert labels.shape == (count,)
    assert crc32(images, labels) == expected


# --- splits


def test_a_split_holds_every_index_once_and_another_seed_gives_another_split():
    labels = torch.tensor([0] * 10 + [1] * 30 + [2] * 5)
    first, second = stratified_split(labels, 0.2, seed=3)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(45))
    assert labels[second].bincount().tolist() == [2, 6, 1]
    assert first.tolist() == sorted(first.tolist())
    assert stratified_split(labels, 0.2, seed=4)[1].tolist() != second.tolist()


def test_a_split_depends_on_no_random_generator():
    torch.manual_seed(1)
    first = stratified_split(torch.arange(40) % 4, 0.25, seed=0)[1]
    torch.manual_seed(2)
    assert stratified_split(torch.arange(40) % 4, 0.25, seed=0)[1].tolist() == first.tolist()
    assert first.tolist() == [3, 18, 23, 24, 26, 29, 32, 37]


# --- matching pairs


def test_boxes_show_where_the_glyphs_are():
    data = matching_pairs(50, seed=2, noise=0.0, jitter=3)
    for image, kinds, boxes in zip(data.images, data.kinds, data.boxes, strict=True):
        for kind, (top, left, bottom, right) in zip(kinds, boxes.tolist(), strict=True):
            ink = image[0, top:bottom, left:right].clone()
            torch.testing.assert_close(ink, glyphs()[kind])
            image[0, top:bottom, left:right] = 0
        assert image.max() == 0  # and nowhere else


@pytest.mark.parametrize(
    ("jitter", "starts"), [(0, [1]), (1, [1, 2]), (2, [0, 1, 2]), (3, [0, 1, 2, 3])]
)
def test_jitter_says_where_in_its_cell_a_glyph_may_stand(jitter, starts):
    corners = matching_pairs(300, seed=1, jitter=jitter).boxes[..., :2] % 8
    assert corners.unique().tolist() == starts


def test_covered_patches_of_a_box_that_crosses_a_border():
    boxes = torch.tensor([[2, 6, 7, 11]])  # rows 2-6, columns 6-10
    touched = covered_patches(boxes, image_size=16, patch_size=4).view(4, 4)
    assert touched.nonzero().tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]


# --- pointer


@pytest.mark.parametrize("side", [2, 3, 4])
def test_the_glyph_in_the_named_cell_is_the_class(side):
    data = pointer(300, seed=4, cells_per_side=side, num_classes=5)
    assert data.images.shape == (300, 1, 8 * side, 8 * side)
    rows = torch.arange(300)
    assert torch.equal(data.kinds[rows, data.targets], data.labels)
    assert torch.equal(data.kinds[:, 0] + 1, data.targets)
    assert data.targets.unique().tolist() == list(range(1, side**2))
    assert data.labels.unique().tolist() == list(range(5))
    assert torch.equal(data.target_patches(8).float().argmax(dim=-1), data.targets)


# --- augmentation


def test_a_shift_moves_the_whole_image_by_at_most_that_many_pixels():
    images = torch.arange(1.0, 1 + 40 * 2 * 5 * 7).view(40, 2, 5, 7)
    moved = random_shift(images, generator(), pixels=2)
    offsets = set()
    for before, after in zip(images, moved, strict=True):
        padded = torch.nn.functional.pad(before, [2] * 4)
        fits = [
            (dy, dx)
            for dy in range(5)
            for dx in range(5)
            if torch.equal(padded[:, dy : dy + 5, dx : dx + 7], after)
        ]
        assert len(fits) == 1
        offsets.add(fits[0])
    assert len(offsets) > 12  # each image its own


def test_what_a_shift_brings_in_has_the_value_of_fill():
    moved = random_shift(torch.ones(30, 1, 4, 4), generator(), pixels=2, fill=-0.5)
    assert moved.unique().tolist() == [-0.5, 1.0]


def test_uint8_images_are_normalised_as_shares_of_255():
    images = torch.randint(256, (4, 3, 5, 6), generator=generator()).byte()
    mean, std = STATISTICS["cifar10"]
    expected = normalize(images.float() / 255, mean, std)
    torch.testing.assert_close(normalize(images, mean, std), expected)


def test_a_flip_mirrors_about_half_of_the_images_and_no_rows():
    images = torch.arange(200.0 * 2 * 3 * 4).view(200, 2, 3, 4)
    flipped = random_flip(images, generator())
    same = (flipped == images).flatten(1).all(dim=1)
    assert 70 < same.sum() < 130
    assert torch.equal(flipped[~same], images[~same].flip(-1))


def test_no_augmentation_is_none_and_a_non_contiguous_batch_may_be_empty():
    assert augmentation() is None
    images = torch.rand(3, 5, 6, 1).permute(0, 3, 1, 2)
    moved = random_shift(images, generator(), pixels=1)
    assert torch.equal(moved, random_shift(images.contiguous(), generator(), pixels=1))
    assert random_shift(images[:0], generator(), pixels=1).shape == (0, 1, 5, 6)
    assert random_flip(images[:0], generator()).shape == (0, 1, 5, 6)


# --- recall: every patch asks another one


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


# --- objects on a canvas: where they are is known

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


def test_half_of_the_pairs_match_and_the_kinds_say_so():
    data = matching_pairs(301, seed=5)
    assert data.images.shape == (301, 1, 32, 32)
    assert data.labels.sum() == 150
    assert torch.equal(data.labels == 1, data.kinds[:, 0] == data.kinds[:, 1])


def test_generated_sets_leave_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    matching_pairs(5)
    pointer(5)
    assert torch.equal(torch.rand(3), expected)


BAD_INPUT = [
    (lambda: place_on_canvas(X[0], SIZE), ValueError, "(n, C, h, w)"),
    (lambda: place_on_canvas(X, 5), ValueError, "size must be at least 6"),
    (lambda: place_on_canvas(X, SIZE, noise=2), ValueError, "noise must be between"),
    (lambda: place_on_canvas(X, SIZE, -1), ValueError, "seed must be at least 0"),
    (lambda: place_on_canvas(X, SIZE).object_share(5), ValueError, "must divide"),
    (lambda: stratified_split(torch.zeros(4), 1.0, 0), ValueError, "share must be"),
    (lambda: stratified_split([1, 2], 0.5, 0), ValueError, "labels must be a tensor"),
    (lambda: matching_pairs(2, num_kinds=17), ValueError, "between 2 and 16, got 17"),
    (lambda: matching_pairs(2).glyph_patches(5), ValueError, "must divide image_size = 32"),
    (lambda: random_shift(torch.rand(3, 4, 5), None, pixels=1), ValueError, "(B, C, H, W)"),
    (lambda: random_flip(torch.ones(1, 1, 2, 2).byte(), generator()), TypeError, "images"),
]
