"""B = 2, N = 6, N_k = 7, D = 20, h = 4, d = 5, and 3 for q, k, v: a swapped axis shows."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import (
    MultiHeadCrossAttention,
    MultiHeadSelfAttention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

B, N, NK, D, H, d = 2, 6, 7, 20, 4, 5


def qkv(value_dim=9):
    return torch.randn(B, H, N, d), torch.randn(B, H, NK, d), torch.randn(B, H, NK, value_dim)


def torchs(layer, queries, context, mask):
    """Outputs and weights of an ``nn.MultiheadAttention`` that holds the same weights as ours."""
    twin = nn.MultiheadAttention(D, layer.num_heads, batch_first=True)
    parts = [layer.qkv] if isinstance(layer, MultiHeadSelfAttention) else [layer.q, layer.kv]
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        twin.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    twin.out_proj = layer.proj
    if mask is not None:
        mask = ~mask.expand(B, H, N, context.shape[1]).flatten(0, 1)
    return twin(queries, context, context, attn_mask=mask, average_attn_weights=False)


def random_biases(layer: nn.Module) -> nn.Module:
    """Biases that are not zero, else a forgotten bias would go unnoticed."""
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return layer


def self_attention(**kwargs):
    return random_biases(MultiHeadSelfAttention(embed_dim=D, num_heads=H, **kwargs))


def cross_attention(**kwargs):
    return random_biases(MultiHeadCrossAttention(embed_dim=D, num_heads=H, **kwargs))


# the pure function


@pytest.mark.parametrize("masked", [False, True])
def test_pure_function_equals_the_fused_kernel_in_output_and_gradient(masked):
    q, k, v = (t.double().requires_grad_() for t in qkv())
    mask = torch.rand(B, 1, N, NK) > 0.4 if masked else None
    ours, weights = scaled_dot_product_attention(q, k, v, mask)
    fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_close(ours, fused)
    if masked:
        assert (weights.masked_select(~mask) == 0).all()
    upstream = torch.randn_like(ours)
    grads = (torch.autograd.grad(out, (q, k, v), upstream) for out in (ours, fused))
    for a, b in zip(*grads, strict=True):
        assert_close(a, b)


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_a_clean_gradient():
    q, k, v = (t.requires_grad_() for t in qkv())
    mask = torch.ones(N, NK, dtype=torch.bool)
    mask[2] = False
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert (output[..., 2, :] == 0).all()
    assert (weights[..., 2, :] == 0).all()
    assert_close(output, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    (output.sum() + weights.square().sum()).backward()
    assert all(t.grad.isfinite().all() for t in (q, k, v))
    assert (q.grad[..., 2, :] == 0).all()
    layer, x = self_attention(), torch.randn(B, N, D)
    assert_close(layer(x, mask[:, :N])[:, 2], layer.proj.bias.expand(B, D))  # all that is left
    assert (layer.attention_weights(x, mask[:, :N])[:, :, 2] == 0).all()


# masks


def test_causal_mask_lets_a_token_see_itself_and_what_came_before():
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    assert torch.equal(causal_mask(3), expected)
    assert torch.equal(causal_mask(1), torch.ones(1, 1, dtype=torch.bool))


def test_padding_mask_marks_the_real_tokens_of_each_sequence():
    expected = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=torch.bool)
    assert torch.equal(padding_mask(torch.tensor([3, 1, 0]), 3), expected[:, None, None])
    assert torch.equal(padding_mask([3, 1, 0], 3), expected[:, None, None])
    assert padding_mask([], 3).shape == (0, 1, 1, 3)


# the modules against torch


def masks(keys):
    """Every shape that broadcasts to (B, h, N, keys); each query may attend to the first key."""
    shapes = {"pairs": (N, keys), "heads": (B, H, N, keys), "padding": (B, 1, 1, keys)}
    some = {name: torch.rand(shape) > 0.4 for name, shape in shapes.items()}
    return {name: mask | (torch.arange(keys) == 0) for name, mask in some.items()} | {"none": None}


@pytest.mark.parametrize("kind", masks(NK))
@pytest.mark.parametrize("make", [self_attention, cross_attention])
def test_attention_equals_torchs_in_outputs_and_weights(make, kind):
    layer, x = make(), torch.randn(B, N, D)
    context = x if make is self_attention else torch.randn(B, NK, D)
    inputs = (x,) if make is self_attention else (x, context)
    mask = masks(context.shape[1])[kind]
    theirs, their_weights = torchs(layer, x, context, mask)
    assert_close(layer(*inputs, mask), theirs)
    assert_close(layer.attention_weights(*inputs, mask), their_weights)


# behaviour


@pytest.mark.parametrize("make", [self_attention, cross_attention])
def test_dropout_works_while_training_only_and_never_in_the_weights(make):
    plain, x, context = make(), torch.randn(B, N, D), torch.randn(B, NK, D)
    inputs = (x,) if make is self_attention else (x, context)
    dropping = make(dropout=0.5)
    dropping.load_state_dict(plain.state_dict())
    expected, weights = plain(*inputs), plain.attention_weights(*inputs)
    assert (dropping(*inputs) - expected).abs().max() > 0.01
    assert_close(dropping.attention_weights(*inputs), weights)
    assert_close(dropping.eval()(*inputs), expected)


def test_forward_calls_the_fused_function_and_never_builds_the_weights(monkeypatch):
    calls = []
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda *a, **k: calls.append(k) or fused(*a, **k)
    )
    monkeypatch.setattr("vitbook.layers.attention.scaled_dot_product_attention", None)
    self_attention()(torch.randn(B, N, D))
    cross_attention()(torch.randn(B, N, D), torch.randn(B, NK, D))
    assert len(calls) == 2


# bad input

layer, cross = self_attention(), cross_attention()
x, context = torch.randn(B, N, D), torch.randn(B, NK, D)
q, k, v = qkv()
sdpa, Self = scaled_dot_product_attention, MultiHeadSelfAttention


def ones(*shape):
    return torch.ones(shape, dtype=torch.bool)


def test_nan_in_the_input_is_not_hidden_by_the_mask():
    q, k, v = qkv()
    q[0, 0, 1, 0] = math.nan
    output, _ = scaled_dot_product_attention(q, k, v, torch.ones(N, NK, dtype=torch.bool))
    assert output[0, 0, 1].isnan().all()
    assert output[0, 0, 0].isfinite().all()


def test_the_rotary_module_turns_queries_and_keys_but_not_values():
    class Double(nn.Module):
        def forward(self, x):
            return 2 * x

    plain, x = self_attention(), torch.randn(B, N, D)
    turned = MultiHeadSelfAttention(embed_dim=D, num_heads=H, rotary=Double())
    turned.load_state_dict(plain.state_dict())
    for ours, theirs, factor in zip(turned.project(x), plain.project(x), (2, 2, 1), strict=True):
        assert_close(ours, factor * theirs)


BAD_INPUT = [
    (lambda: sdpa([1.0], k, v), TypeError, "q must be a torch.Tensor"),
    (lambda: sdpa(q, k.long(), v), TypeError, "k must hold floating-point"),
    (lambda: sdpa(q, k, v[0, 0, 0]), ValueError, "v must have the axes"),
    (lambda: sdpa(q, k[..., :3], v), ValueError, "as wide as q, d = 5"),
    (lambda: sdpa(q, k, v[:, :, :6]), ValueError, "one row per key, 7"),
    (lambda: sdpa(q, k[:, :2], v), ValueError, "(2, 4, 6, 5), (2, 2, 7, 5), (2, 4"),
    (lambda: sdpa(q, k, v, torch.zeros(N, NK)), TypeError, "got torch.float32"),
    (lambda: sdpa(q, k, v, ones(NK, N)), ValueError, "got the shape (7, 6)"),
    (lambda: sdpa(q[0], k[0], v[0], ones(B, H, N, NK)), ValueError, "N_k) = (4, 6, 7)"),
    (lambda: padding_mask([6], 5), ValueError, "between 0 and n = 5, got [6]"),
    (lambda: padding_mask([math.nan], 5), TypeError, "lengths must hold whole"),
    (lambda: padding_mask([[1]], 5), ValueError, "axis (B,), got the shape"),
    (lambda: Self(embed_dim=12, num_heads=5), ValueError, "divide embed_dim = 12, got 5"),
    (lambda: layer(x, ones(B, N, N)), ValueError, "write mask[:, None]"),
    (lambda: layer.attention_weights(x, causal_mask(4)), ValueError, "= (2, 4, 6, 6)"),
    (lambda: cross(x, context, ones(NK, N)), ValueError, "(2, 4, 6, 7), got the shape"),
]
