"""Counting is compared with what the formulas of the models say, to the last one."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitbook.layers.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from vitbook.layers.encoder import MLP
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.vit import vit

B, N, D, h = 3, 5, 12, 4


def test_attention_is_counted_whatever_kernel_it_would_use():
    q = torch.randn(B, h, N, D)
    products = 2 * B * h * N * N * D
    assert count_multiplies(F.scaled_dot_product_attention, q, q, q) == products
    assert count_multiplies(scaled_dot_product_attention, q, q, q) == products
    layer = MultiHeadSelfAttention(embed_dim=D, num_heads=h)
    whole = B * (4 * N * D**2 + 2 * N**2 * D)
    assert count_multiplies(layer, torch.randn(B, N, D)) == whole
    theirs = nn.MultiheadAttention(D, h, batch_first=True).eval()
    x = torch.randn(B, N, D)
    assert count_multiplies(theirs, x, x, x) == whole
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize(("name", "published"), [("Ti/16", 1.26e9), ("B/16", 17.6e9)])
def test_a_published_model_on_the_meta_device_costs_what_is_published(name, published):
    with torch.device("meta"):
        model, image = vit(name), torch.empty(1, 3, 224, 224)
    assert count_multiplies(model, image) == pytest.approx(published, rel=0.01)


def test_the_mode_and_the_gradients_of_a_model_stay_as_they_are():
    model, x = MLP(embed_dim=D, hidden_dim=7), torch.randn(N, D)
    assert count_multiplies(model, x) == 2 * N * D * 7
    assert model.training
    assert torch.is_grad_enabled()
    assert model(x).requires_grad


def test_parameters_are_counted_together_and_shared_ones_once():
    layer, other = nn.Linear(3, 4), nn.Linear(3, 4, bias=False)
    assert count_parameters(layer) == 16
    assert count_parameters(layer, other) == 28
    other.weight = layer.weight
    assert count_parameters(layer, other) == count_parameters(layer, layer) == 16
    assert count_parameters(nn.Identity()) == count_parameters() == 0


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(TypeError, match="call must be a module or a function, got Tensor"):
        count_multiplies(torch.ones(3))
    with pytest.raises(TypeError, match="got dict"):
        count_parameters(nn.Identity(), {})
