"""The drawing of a matrix as cells."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from vitbook.plotting import COLORS, ROLE_COLORS, draw_tensor


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def pixels(ax):
    return np.asarray(ax.images[0].get_array())


def test_the_largest_number_has_the_whole_ink_of_its_role_whatever_its_sign(ax):
    draw_tensor(ax, torch.tensor([[0.0, 1.0, 2.0], [0.5, -4.0, 0.0]]), role="key")
    np.testing.assert_allclose(pixels(ax)[1, 1], to_rgb(ROLE_COLORS["key"]))
    assert (pixels(ax)[0, 0] < 1).any()  # a zero is a cell, too
    assert pixels(ax)[0, 2].sum() < pixels(ax)[0, 1].sum() < pixels(ax)[0, 0].sum()


@pytest.mark.parametrize("rows", [False, True])
def test_blocks_have_their_colours_and_names(ax, rows):
    inks = [COLORS["blue"], COLORS["green"]]
    values = np.ones((4, 6))
    draw_tensor(ax, values, blocks=inks, names=["head 0", "head 1"], rows=rows)
    drawn = pixels(ax) if rows else pixels(ax).transpose(1, 0, 2)
    half = len(drawn) // 2
    np.testing.assert_allclose(drawn[half - 1, 0], to_rgb(inks[0]))
    np.testing.assert_allclose(drawn[half, 0], to_rgb(inks[1]))
    assert [text.get_text() for text in ax.texts] == ["head 0", "head 1"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"role": "head"}, "role must be one of token, query, key, value, attention, got 'head'"),
        ({"values": np.ones(3)}, "values must have the axes"),
        ({"blocks": ["k", "r", "b", "g"]}, "6 columns cannot be cut into 4 blocks"),
        ({"blocks": ["k", "r", "b"], "rows": True}, "4 rows cannot be cut into 3 blocks"),
        ({"names": ["a", "b"]}, "names must be as many as the blocks, 1, got 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ax, changed, words):
    given = {"values": np.ones((4, 6)), **changed}
    with pytest.raises(ValueError, match=words):
        draw_tensor(ax, given.pop("values"), **given)
    assert not ax.images


def test_numbers_that_are_all_zero_are_drawn_faint(ax):
    draw_tensor(ax, np.zeros((2, 2)))
    assert np.isfinite(pixels(ax)).all()
