"""The controls: who listens to whom is fixed, and everything else is as in attention."""

import pytest
import torch

from vitbook.inspection import attention_maps
from vitbook.layers.ablations import NoMixing, UniformAttention
from vitbook.models.vit import VisionTransformer

B, N, D, h = 3, 5, 8, 2
CONTROLS = [UniformAttention, NoMixing]


def tokens():
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("control", CONTROLS)
def test_forward_is_the_weights_times_the_values(control):
    torch.manual_seed(0)
    layer, x = control(embed_dim=D), tokens()
    weights = layer.attention_weights(x)
    assert weights.shape == (B, 1, N, N)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, 1, N))
    torch.testing.assert_close(layer(x), layer.proj(weights[:, 0] @ layer.value(x)))


def test_with_uniform_attention_all_tokens_get_the_same_and_each_token_counts():
    layer, x = UniformAttention(embed_dim=D), tokens()
    out = layer(x)
    torch.testing.assert_close(out, out[:, :1].expand_as(out))
    x[0, 3] += 1
    assert not torch.allclose(layer(x)[0], out[0])


def test_without_mixing_a_changed_token_changes_itself_only():
    layer, x = NoMixing(embed_dim=D), tokens()
    before = layer(x)
    x[1, 2] += 1
    changed = (layer(x) - before).abs().sum(dim=-1) > 1e-6  # (B, N)
    assert changed.nonzero().tolist() == [[1, 2]]


@pytest.mark.parametrize("control", CONTROLS)
def test_a_vit_takes_a_control_for_its_attention_and_its_maps_can_be_recorded(control):
    sizes = {"image_size": (8, 12), "patch_size": 4, "in_channels": 1, "num_classes": 3}
    sizes |= {"embed_dim": D, "depth": 2, "num_heads": h}
    layer = {"attn_layer": lambda embed_dim, num_heads: control(embed_dim=embed_dim)}
    model = VisionTransformer(**sizes, **layer)
    images = torch.randn(B, 1, 8, 12)
    assert model(images).shape == (B, 3)
    assert attention_maps(model, images).shape == (2, B, 1, 7, 7)


@pytest.mark.parametrize("control", CONTROLS)
def test_no_images_and_a_single_token_work(control):
    layer = control(embed_dim=D)
    assert layer(torch.zeros(0, N, D)).shape == (0, N, D)
    assert layer.attention_weights(torch.zeros(1, 1, D)).tolist() == [[[[1.0]]]]


BAD_INPUT = [
    (lambda c: c(embed_dim=0), ValueError, "embed_dim must be at least 1, got 0"),
    (lambda c: c(embed_dim=2.5), TypeError, "embed_dim must be a whole number"),
    (lambda c: c(embed_dim=D)(tokens(), torch.ones(N, N) > 0), ValueError, "mask must be None"),
]


@pytest.mark.parametrize("control", CONTROLS)
def test_bad_input_is_named(bad_input, control, refused):
    call, error, words = bad_input
    refused(lambda: call(control), error, words)
