"""The small CNN: what it computes, that no weight belongs to a place, and what it refuses."""

import torch
import torch.nn.functional as F
from torch.testing import assert_close

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


BAD_INPUT = [
    (lambda: cnn(widths=()), ValueError, "widths must name at least one convolution"),
    (lambda: cnn()(torch.zeros(2, 8, 8)), ValueError, "images must have the axes"),
    (lambda: cnn()(torch.zeros(1, 2, 8, 8).long()), TypeError, "images must hold"),
    (lambda: cnn()(torch.zeros(1, 2, 1, 8)), ValueError, "at least 2 pixels high"),
]
