"""What several experiments measure, against counts and tables worked out by hand."""

import pytest
import torch
from torch import nn

from experiments.machinery.measures import (
    BINS,
    calibration_error,
    multiplies,
    probabilities,
    reliability,
    thin,
)


def test_multiplies_are_those_of_one_image():
    assert multiplies(nn.Linear(3, 5), torch.randn(7, 3)) == 3 * 5


def test_a_thin_curve_has_the_means_of_equal_stretches():
    assert thin([1.0, 3.0, 5.0, 9.0, 100.0], points=2) == [2.0, 7.0]
    assert thin([1.0, 2.0], points=100) == [1.0, 2.0]
    assert len(thin([0.5] * 400)) == 100


def test_probabilities_are_the_softmax_of_every_image():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    images = torch.randn(501, 1, 2, 2)  # more than one batch
    given = probabilities(model, images)
    assert given.shape == (501, 3)
    torch.testing.assert_close(given, model(images).detach().double().softmax(dim=-1))


def test_an_answer_counts_in_the_bin_of_its_confidence():
    given = torch.tensor(
        [[1.0, 0.0, 0.0], [0.1, 0.5, 0.4], [0.5, 0.4, 0.1], [0.34, 0.33, 0.33]], dtype=torch.float64
    )
    table = reliability(given, torch.tensor([0, 1, 2, 0]))
    assert len(table) == BINS == 15
    assert table[14] == [1, 1, 1]  # all of its confidence, and right
    assert table[7] == [2, 1, 1]  # half sure twice, right once
    assert table[5] == [1, 0.34, 1]
    assert sum(row[0] for row in table) == 4
    expected = (2 / 4) * abs(0.5 - 0.5) + (1 / 4) * abs(0.34 - 1)
    assert calibration_error(table) == pytest.approx(expected)


def test_calibration_error_weighs_each_bin_by_its_answers():
    table = [[0, 0, 0], [30, 6.0, 3], [10, 8.0, 10]]  # off by 0.1 and by 0.2
    assert calibration_error(table) == pytest.approx(0.75 * 0.1 + 0.25 * 0.2)
