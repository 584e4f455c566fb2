"""Images of 3 channels, 6 high and 8 wide, patch size 2: 3 rows and 4 columns of patches."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from vitbook.layers.patches import PatchEmbedding, patchify, unpatchify

B, C, H, W, P, D = 2, 3, 6, 8, 2, 5
N = 12


def embedding(**kwargs):
    sizes = {"image_size": (H, W), "patch_size": P, "in_channels": C, "embed_dim": D}
    return PatchEmbedding(**(sizes | kwargs))


def test_patchify_is_torchs_unfold_row_by_row_like_a_page():
    images = torch.randn(B, C, H, W)
    unfolded = torch.nn.functional.unfold(images, kernel_size=P, stride=P)
    assert_close(patchify(images, P), unfolded.transpose(1, 2))


@pytest.mark.parametrize("patch_size", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_patchify_then_unpatchify_returns_the_image(patch_size, dtype):
    images = torch.randint(0, 255, (B, C, H, W)).to(dtype)
    patches = patchify(images, patch_size)
    assert torch.equal(unpatchify(patches, patch_size, (H, W), C), images)


def test_the_strided_convolution_is_patchify_and_a_linear_layer():
    layer, images = embedding(), torch.randn(B, C, H, W)
    assert layer.grid == (3, 4)
    assert layer.num_patches == N
    linear = torch.nn.Linear(C * P * P, D)
    linear.weight.data = layer.proj.weight.flatten(1)
    linear.bias.data = layer.proj.bias
    assert layer(images).shape == (B, N, D)
    assert_close(layer(images), linear(patchify(images, P)))


images, patches = torch.randn(B, C, H, W), torch.randn(B, N, C * P * P)

BAD_INPUT = [
    (lambda: patchify(np.zeros((2, 3, 6, 8)), 2), TypeError, "got ndarray"),
    (lambda: patchify(images[0], 2), ValueError, "(B, C, H, W), got (3, 6,"),
    (lambda: patchify(images, 4), ValueError, "height 6 and width 8, got"),
    (lambda: patchify(images, 0), ValueError, "patch_size must be at least 1"),
    (lambda: unpatchify(patches, 2, (6, 6), 3), ValueError, "(B, 9, 12)"),
    (lambda: unpatchify([1.0], 2, (6, 8), 3), TypeError, "got list"),
    (lambda: embedding(patch_size=3), ValueError, "width 8, got 3"),
    (lambda: embedding()(images.mT), ValueError, "(B, 3, 6, 8), got ("),
    (lambda: embedding()(images.byte()), TypeError, "floating-point numbers, got"),
]
