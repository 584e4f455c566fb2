"""The small CNN: what it computes, that no weight belongs to a place, and what it refuses."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from vitbook.models.cost import count_parameters
from vitbook.models.small_cnn import SmallCNN


def cnn(**changed):
    return SmallCNN(**({"in_channels": 2, "num_classes": 5, "widths": (3, 4)} | changed))


def test_what_it_computes_written_out():
    model, x = cnn().eval(), torch.randn(2, 2, 6, 9)
    conv1, norm1, _, _, conv2, norm2, _ = model.layers
    y = F.relu(norm1(F.conv2d(x, conv1.weight, padding=1)))
    y = F.relu(norm2(F.conv2d(F.max_pool2d(y, 2), conv2.weight, padding=1)))
    assert y.shape == (2, 4, 3, 4)
    assert_close(model(x), y.mean(dim=(2, 3)) @ model.head.weight.T + model.head.bias)


@pytest.mark.parametrize("size", [(2, 2), (5, 7), (28, 28), (32, 48)])
def test_any_size_will_do(size):
    assert cnn()(torch.randn(3, 2, *size)).shape == (3, 5)


def test_its_parameters_from_the_shapes():
    assert count_parameters(cnn()) == 9 * 2 * 3 + 2 * 3 + 9 * 3 * 4 + 2 * 4 + 4 * 5 + 5


BAD_INPUT = [
    (lambda: cnn(widths=()), ValueError, "widths must name at least one convolution"),
    (lambda: cnn(widths=(3, 0)), ValueError, "widths[1] must be at least 1"),
    (lambda: cnn(in_channels=0), ValueError, "in_channels must be at least 1"),
    (lambda: cnn(num_classes=2.5), TypeError, "num_classes must be a whole number"),
    (lambda: cnn()(torch.zeros(2, 8, 8)), ValueError, "images must have the axes"),
    (lambda: cnn()(torch.zeros(1, 2, 8, 8).long()), TypeError, "images must hold"),
    (lambda: cnn()(torch.zeros(1, 2, 1, 8)), ValueError, "at least 2 pixels high"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
