"""The data that needs no download: digits, generated sets, splits, augmentation."""

import zlib

import pytest
import torch

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
from vitbook.data.glyphs import covered_patches, glyphs


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


def test_digits_lie_between_0_and_1_and_use_the_whole_range():
    images, labels = load_digits("trainval")
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert images.min() == 0
    assert images.max() == 1
    assert labels.unique().tolist() == list(range(10))


def test_no_digit_is_on_two_sides():
    rows = {
        part: {image.numpy().tobytes() for image in load_digits(part).images} for part, *_ in DIGITS
    }
    assert not rows["trainval"] & rows["test"]
    assert not rows["train"] & rows["validation"]
    assert rows["train"] | rows["validation"] == rows["trainval"]


def test_each_class_gives_the_same_share_to_the_test_part():
    learned, test = (load_digits(part).labels.bincount() for part in ("trainval", "test"))
    assert (test / (learned + test) - 0.2).abs().max() < 0.003


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


def test_half_of_the_pairs_match_and_the_kinds_say_so():
    data = matching_pairs(301, seed=5)
    assert data.images.shape == (301, 1, 32, 32)
    assert data.labels.sum() == 150
    assert torch.equal(data.labels == 1, data.kinds[:, 0] == data.kinds[:, 1])


def test_boxes_show_where_the_glyphs_are():
    data = matching_pairs(50, seed=2, noise=0.0, jitter=3)
    for image, kinds, boxes in zip(data.images, data.kinds, data.boxes, strict=True):
        for kind, (top, left, bottom, right) in zip(kinds, boxes.tolist(), strict=True):
            ink = image[0, top:bottom, left:right].clone()
            torch.testing.assert_close(ink, glyphs()[kind])
            image[0, top:bottom, left:right] = 0
        assert image.max() == 0  # and nowhere else


def test_the_two_glyphs_are_far_apart_and_each_lies_in_one_cell():
    data = matching_pairs(400, seed=1, jitter=3)
    cells = data.boxes[..., :2] // 8
    assert ((data.boxes[..., 2:] - 1) // 8 == cells).all()
    assert ((cells[:, 0] - cells[:, 1]).abs().amax(dim=-1) >= 2).all()
    assert data.glyph_patches(8).sum(dim=-1).eq(1).all()


@pytest.mark.parametrize(
    ("jitter", "starts"), [(0, [1]), (1, [1, 2]), (2, [0, 1, 2]), (3, [0, 1, 2, 3])]
)
def test_jitter_says_where_in_its_cell_a_glyph_may_stand(jitter, starts):
    corners = matching_pairs(300, seed=1, jitter=jitter).boxes[..., :2] % 8
    assert corners.unique().tolist() == starts


def test_a_glyph_touches_one_to_four_small_patches():
    touched = matching_pairs(200, seed=1).glyph_patches(4)
    assert touched.shape == (200, 2, 64)
    assert set(touched.sum(dim=-1).flatten().tolist()) == {4}


def test_every_kind_and_every_cell_is_as_frequent_in_both_classes():
    data = matching_pairs(20_000, seed=0)
    for column in (data.kinds, (data.boxes[..., 0] // 8) * 4 + data.boxes[..., 1] // 8):
        shares = [column[data.labels == c].flatten().bincount() / 20_000 for c in (0, 1)]
        assert (shares[0] - shares[1]).abs().max() < 0.01


def test_all_glyphs_differ_and_have_the_same_ink():
    ink = glyphs().flatten(1)
    assert (ink.sum(dim=1) == 9).all()
    assert (torch.cdist(ink, ink, p=1) + 99 * torch.eye(16)).min() >= 6


def test_the_same_seed_gives_the_same_images_and_another_seed_others():
    first, again, other = (matching_pairs(20, seed=s) for s in (7, 7, 8))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first.images, other.images)
    assert all(torch.equal(a, b) for a, b in zip(pointer(9, 3), pointer(9, 3), strict=True))


def test_generated_sets_leave_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    matching_pairs(5)
    pointer(5)
    assert torch.equal(torch.rand(3), expected)


def test_a_generated_set_may_be_empty():
    assert matching_pairs(0).images.shape == (0, 1, 32, 32)
    assert matching_pairs(0).glyph_patches(8).shape == (0, 2, 16)
    assert pointer(0).images.shape == (0, 1, 24, 24)


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


def test_the_pointer_image_shows_the_kinds_it_says():
    data = pointer(20, seed=4, noise=0.0, jitter=2)
    cell = data.images[:, 0].view(20, 3, 8, 3, 8).transpose(2, 3).reshape(20, 9, 8, 8)
    for image, kinds in zip(cell, data.kinds, strict=True):
        for drawn, kind in zip(image, kinds, strict=True):
            top, left = (int(drawn.sum(dim=1 - axis).nonzero()[0]) for axis in (0, 1))
            box = drawn.new_zeros(8, 8)
            glyph = glyphs()[kind]
            rows, columns = (glyph.sum(dim=1 - axis).nonzero().flatten() for axis in (0, 1))
            glyph = glyph[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            box[top : top + glyph.shape[0], left : left + glyph.shape[1]] = glyph
            torch.testing.assert_close(drawn, box)


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


@pytest.mark.parametrize("name", ["digits", "cifar10"])
def test_normalised_channels_have_mean_0_and_deviation_1(name):
    mean, std = STATISTICS[name]
    images = load_digits().images if name == "digits" else torch.rand(50, 3, 9, 7)
    if name == "cifar10":
        mean, std = images.mean((0, 2, 3)), images.transpose(0, 1).flatten(1).std(dim=1)
    out = normalize(images, mean, std)
    assert out.mean((0, 2, 3)).abs().max() < 1e-3
    assert (out.transpose(0, 1).flatten(1).std(dim=1) - 1).abs().max() < 1e-3


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


def test_augmentation_is_a_function_of_the_generator():
    images = torch.rand(30, 1, 6, 5)
    augment = augmentation(shift=1, flip=True)
    torch.manual_seed(0)
    first = augment(images, generator(1))
    torch.manual_seed(99)
    assert torch.equal(first, augment(images, generator(1)))
    assert not torch.equal(first, augment(images, generator(2)))


def test_no_augmentation_is_none_and_a_non_contiguous_batch_may_be_empty():
    assert augmentation() is None
    images = torch.rand(3, 5, 6, 1).permute(0, 3, 1, 2)
    moved = random_shift(images, generator(), pixels=1)
    assert torch.equal(moved, random_shift(images.contiguous(), generator(), pixels=1))
    assert random_shift(images[:0], generator(), pixels=1).shape == (0, 1, 5, 6)
    assert random_flip(images[:0], generator()).shape == (0, 1, 5, 6)


BAD_INPUT = [
    (lambda: load_digits("tset"), ValueError, "part must be one of"),
    (lambda: stratified_split(torch.zeros(4), 1.0, 0), ValueError, "share must be"),
    (lambda: stratified_split(torch.zeros(4), 0, 0), ValueError, "share must be"),
    (lambda: stratified_split([1, 2], 0.5, 0), ValueError, "labels must be a tensor"),
    (lambda: matching_pairs(-1), ValueError, "n must be at least 0, got -1"),
    (lambda: matching_pairs(2.5), TypeError, "n must be a whole number"),
    (lambda: matching_pairs(2, -1), ValueError, "seed must be at least 0"),
    (lambda: matching_pairs(2, num_kinds=17), ValueError, "between 2 and 16, got 17"),
    (lambda: matching_pairs(2, noise=-0.1), ValueError, "noise must be between 0 and 1"),
    (lambda: matching_pairs(2, noise=float("nan")), ValueError, "noise"),
    (lambda: matching_pairs(2).glyph_patches(5), ValueError, "must divide image_size = 32"),
    (lambda: pointer(2, cells_per_side=5), ValueError, "cells_per_side must be one of"),
    (lambda: pointer(2, num_classes=1), ValueError, "between 2 and 16, got 1"),
    (lambda: pointer(2, noise=2), ValueError, "noise must be between 0 and 1"),
    (lambda: random_shift(torch.rand(3, 4, 5), None, pixels=1), ValueError, "(B, C, H, W)"),
    (
        lambda: random_shift(torch.rand(1, 1, 4, 4), None, pixels=-1),
        ValueError,
        "pixels must be at least 0",
    ),
    (lambda: random_flip(torch.ones(1, 1, 2, 2).byte(), generator()), TypeError, "images"),
    (lambda: augmentation(shift=-2), ValueError, "shift must be at least 0"),
    (lambda: augmentation(flip="yes"), TypeError, "flip"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
