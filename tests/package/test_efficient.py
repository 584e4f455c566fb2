"""Windows and linear attention: the weights of the usual layer, and less to compute."""

import pytest
import torch
from torch.testing import assert_close

from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.efficient import LinearAttention, WindowAttention, window_mask

B, D, h = 2, 8, 2
SIZES = {"embed_dim": D, "num_heads": h}


def same_weights(layer):
    plain = MultiHeadSelfAttention(**SIZES)
    for p in plain.parameters():
        torch.nn.init.normal_(p)
    layer.load_state_dict(plain.state_dict())
    return plain


def test_the_mask_of_a_small_grid_by_hand():
    mask = window_mask((2, 4), 2)  # patches 0 1 2 3 / 4 5 6 7, two windows
    assert mask.shape == (9, 9)
    assert mask[0].all()
    assert mask[:, 0].all()
    friends = [set(row.nonzero()[:, 0].tolist()) for row in mask[1:, 1:]]
    assert (
        friends == [{0, 1, 4, 5}] * 2 + [{2, 3, 6, 7}] * 2 + [{0, 1, 4, 5}] * 2 + [{2, 3, 6, 7}] * 2
    )


@pytest.mark.parametrize("num_prefix", [0, 1, 2])
def test_windows_are_attention_with_the_mask_of_windows(num_prefix):
    grid = (4, 6)
    layer = WindowAttention(**SIZES, grid=grid, window=2, num_prefix=num_prefix)
    plain, x = same_weights(layer), torch.randn(B, num_prefix + 24, D)
    assert_close(layer(x), plain(x, window_mask(grid, 2, num_prefix=num_prefix)))


def test_linear_attention_is_the_explicit_average_with_its_kernel():
    layer, x = LinearAttention(**SIZES), torch.randn(B, 5, D)
    q, k, v = layer.project(x)
    weights = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).mT
    weights = weights / weights.sum(dim=-1, keepdim=True)  # (B, h, N, N)
    out = (weights @ v).transpose(1, 2).reshape(B, 5, D)
    assert_close(layer(x), layer.proj(out))


BAD_INPUT = [
    (lambda: window_mask((4, 6), 4), ValueError, "window must divide the grid 4 x 6, got 4"),
    (
        lambda: WindowAttention(**SIZES, grid=(4, 4), window=2)(torch.randn(1, 16, D)),
        ValueError,
        "x must hold 17 tokens",
    ),
    (
        lambda: LinearAttention(**SIZES)(torch.randn(1, 4, D), torch.ones(4, 4) > 0),
        ValueError,
        "mask must be None",
    ),
]
