"""Strokes become the images that the digit model knows, and drawings by hand are scored fairly."""

import json
import math
import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from experiments.machinery.full_parts import KeepHalf
from experiments.machinery.hand_drawn import NOT_SURE, Drawing, drawings, said, score, share, table
from experiments.machinery.pen import KINDS, NO_DIGIT, pen_digits, pen_others, smooth
from experiments.machinery.pen_shapes import DIGITS, LETTERS, LIKE_DIGITS
from experiments.machinery.strokes import BOX, SIDE, drawn, placed, segments

EXPERIMENT = load_experiment("draw_digit")
script = sys.modules["experiment_draw_digit"]
SEVEN = [[(0.2, 0.1), (0.6, 0.1), (0.4, 0.7)], [(0.3, 0.4), (0.5, 0.4)]]
BLANK = torch.zeros(SIDE, SIDE, dtype=torch.float64)


def moved(strokes, scale=1.0, right=0.0, down=0.0):
    return [[(scale * x + right, scale * y + down) for x, y in stroke] for stroke in strokes]


def test_place_and_size_on_the_board_change_nothing():
    expected = drawn(SEVEN)
    for change in ({"right": 0.35, "down": 0.2}, {"scale": 0.3, "right": 0.6}, {"scale": 1.3}):
        torch.testing.assert_close(drawn(moved(SEVEN, **change)), expected, rtol=0, atol=1e-9)


def test_ink_fills_the_box_of_mnist_with_its_centre_in_the_middle():
    image = drawn(SEVEN, 0.08)
    rows = image.amax(1).nonzero().flatten()
    assert BOX - 1 <= rows[-1] - rows[0] + 1 <= BOX + 1
    place = torch.arange(SIDE, dtype=torch.float64) + 0.5
    for axis in (0, 1):
        centre = (image.sum(1 - axis) * place).sum() / image.sum()
        assert abs(centre - SIDE / 2) < 0.5


def test_a_pixel_is_as_dark_as_its_distance_from_the_line_says():
    image = drawn([[(0.5, 0.1), (0.5, 0.9)]], width=3 / SIDE)  # a pen of 3 pixels, up and down
    # the line stands at 14, between two pixels: distances 0.5, 1.5, 2.5
    assert image[14, 10:18].tolist() == pytest.approx([0, 0, 0.5, 1, 1, 0.5, 0, 0])


def test_the_width_of_the_pen_stays_whatever_the_size():
    small = drawn(moved(SEVEN, scale=0.2))
    torch.testing.assert_close(small, drawn(SEVEN))
    assert drawn(SEVEN, 0.12).sum() > 1.3 * drawn(SEVEN, 0.08).sum()


def test_an_empty_board_is_blank_and_a_dot_stays_a_dot():
    assert drawn([]).equal(BLANK)
    dot = drawn([[(0.9, 0.1)]])
    assert 0 < dot.sum() < 6
    assert dot[12:16, 12:16].sum() == dot.sum()


def test_ink_never_leaves_the_image():
    corner = [[(0.1, 0.1), (0.1, 0.11), (0.1, 0.1), (0.1, 0.11), (0.1, 0.1), (0.9, 0.9)]]
    lines = placed(segments([torch.tensor(corner[0], dtype=torch.float64)]), pen=2.24)
    assert lines.min() >= 1.12 - 1e-9
    assert lines.max() <= SIDE - 1.12 + 1e-9


@pytest.mark.parametrize(
    ("strokes", "width", "message"),
    [
        ([[(0.1, 0.2)]], 0, "width must lie between 0 and 1, got 0"),
        ([[]], 0.08, "a stroke must be a list of points"),
        ([[(0.1, 0.2, 0.3)]], 0.08, "a stroke must be a list of points"),
    ],
)
def test_what_is_no_drawing_is_refused(strokes, width, message):
    with pytest.raises(ValueError, match=message):
        drawn(strokes, width)


def test_a_smooth_line_goes_through_its_points():
    through = torch.tensor([[0.0, 0.0], [0.5, 0.2], [0.6, 0.9]], dtype=torch.float64)
    curve = smooth(through)
    assert torch.cdist(through, curve).amin(1).max() < 1e-12


def test_made_up_digits_come_from_their_seed_and_are_as_many_of_each():
    first = pen_digits("train", 20)
    pen_digits.cache_clear()
    assert first.images.equal(pen_digits("train", 20).images)
    assert not first.images.equal(pen_digits("validation", 20).images)
    assert first.labels.bincount().tolist() == [2] * 10
    assert first.images.min() == 0
    assert first.images.amax((1, 2, 3)).min() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_digit_has_the_label_of_none(kind):
    images, labels = pen_others("train", kind, 12)
    assert labels.tolist() == [NO_DIGIT] * 12
    assert images.amax((1, 2, 3)).min() > 0.9


def test_letters_that_measure_are_not_learned_from():
    for kept in (LETTERS["validation"], LIKE_DIGITS):
        assert not LETTERS["train"].keys() & kept.keys()
    assert sorted(DIGITS) == list(range(10))


def test_lines_become_thinner_and_thicker_and_paper_stays_paper():
    images = torch.full((40, 1, 28, 28), script.BLACK)
    images[:, :, 5:20, 12:15] = 1.0
    changed = script.thickened(images, torch.Generator().manual_seed(0))
    ink = (changed - script.BLACK).sum((1, 2, 3)) / (images - script.BLACK).sum((1, 2, 3))
    assert ink.min() < 0.8
    assert ink.max() > 1.2
    torch.testing.assert_close(changed[:, :, 25:], images[:, :, 25:])


def test_for_what_is_no_digit_even_answers_have_the_least_loss():
    losses = []
    loss = script.told(losses.append)
    labels = torch.tensor([NO_DIGIT])
    even, leaning = torch.zeros(1, 10), torch.eye(10)[:1]
    assert loss(even, labels).item() == pytest.approx(math.log(10))
    assert loss(leaning, labels) > loss(even, labels)
    assert loss(leaning, torch.tensor([0])) < loss(even, torch.tensor([0]))
    assert len(losses) == 5


def test_the_class_token_is_always_kept():
    tokens = torch.arange(50.0).expand(8, 50)[..., None]
    kept = KeepHalf(1, prefix=1)(tokens)
    assert kept.shape == (8, 25, 1)
    assert (kept[:, 0] == 0).all()
    assert (kept[:, 1:] > 0).all()


def test_the_model_keeps_within_its_limit():
    from vitbook.models.vit import VisionTransformer

    assert sum(p.numel() for p in VisionTransformer(**script.MODEL).parameters()) <= 210_000


def test_a_digit_counts_when_right_and_sure_and_all_else_when_not_sure():
    some = [Drawing(label, "plain", "middle", []) for label in ("3", "3", "4", "A", "empty")]
    rows = torch.full((5, 10), 0.01, dtype=torch.float64)
    for row, (answer, sure) in enumerate([(3, 0.9), (3, 0.4), (9, 0.8), (1, 0.3), (0, 0.9)]):
        rows[row, answer] = sure
    words = said(rows, threshold=0.5)
    assert words == ["3", NOT_SURE, "9", NOT_SURE, "0"]
    counts = score(some, words)
    assert counts == {"3": (1, 2), "4": (0, 1), "A": (1, 1), "empty": (0, 1)}
    assert share(counts, digits=True) == pytest.approx(1 / 3)
    assert share(counts, digits=False) == pytest.approx(1 / 2)
    lines = table(some, rows, 0.5).splitlines()
    assert lines[-2:] == [
        "4, plain, middle: 9; 9 has 80.0%",
        "empty, plain, middle: 0; 0 has 90.0%",
    ]


def test_the_drawings_by_hand_are_enough_to_tell():
    some = drawings()
    digits = [one for one in some if one.label.isdecimal()]
    assert len(digits) >= 200
    shapes = {label: {d.shape for d in digits if d.label == label} for label in map(str, range(10))}
    places = {label: {d.placement for d in digits if d.label == label} for label in shapes}
    assert min(map(len, shapes.values())) >= 4
    assert min(map(len, places.values())) >= 5
    assert {"scribble", "empty"} <= {one.label for one in some}


def test_a_file_that_holds_no_drawings_is_refused(tmp_path):
    for content in ("[", json.dumps({"strokes": [{"label": "3"}]}), json.dumps({})):
        (tmp_path / "strokes.json").write_text(content)
        with pytest.raises(ValueError, match=r"strokes\.json must be"):
            drawings(tmp_path / "strokes.json")
