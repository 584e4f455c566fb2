"""B = 2, N = 5, D = 12, h = 4, hidden 30: no two sizes alike, so that a swapped axis shows."""

import pytest
import torch
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import MultiHeadSelfAttention, causal_mask, padding_mask
from vitbook.layers.encoder import Encoder, EncoderBlock

B, N, D, H, L = 2, 5, 12, 4, 3


def attention(**kwargs):
    return MultiHeadSelfAttention(**({"embed_dim": D, "num_heads": H} | kwargs))


def block(**kwargs):
    kwargs = {"embed_dim": D, "attn": attention(), "mlp_ratio": 2.5} | kwargs
    return all_random(EncoderBlock(**kwargs))


def encoder(norm_first=True):
    norm = nn.LayerNorm(D, eps=1e-6) if norm_first else nn.Identity()
    return all_random(Encoder([block(norm_first=norm_first) for _ in range(L)], norm))


# the block


@pytest.mark.parametrize("norm_first", [True, False])
def test_block_equals_torchs(norm_first):
    ours, x = block(norm_first=norm_first), torch.randn(B, N, D)
    theirs = nn.TransformerEncoderLayer(
        D, H, 30, 0.0, "gelu", 1e-6, batch_first=True, norm_first=norm_first
    )
    names = {
        "self_attn.in_proj_": "attn.qkv.",
        "self_attn.out_proj.": "attn.proj.",
        "linear1.": "mlp.fc1.",
        "linear2.": "mlp.fc2.",
    }
    state = ours.state_dict()
    for theirs_name, ours_name in names.items():
        state = {name.replace(ours_name, theirs_name): t for name, t in state.items()}
    theirs.load_state_dict(state)
    assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)
    assert_close(ours(x, causal_mask(N)), theirs(x, src_mask=~causal_mask(N)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_both_branches_end_alike_and_drop_while_training_only(norm_first):
    plain, x, calls = block(norm_first=norm_first), torch.randn(B, N, D), []
    layer = block(norm_first=norm_first, dropout=0.5, drop_path=0.5, layer_scale=1.0)
    layer.load_state_dict(plain.state_dict() | {f"ls{i}.gamma": torch.ones(D) for i in (1, 2)})
    for name, module in layer.named_modules():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    assert (layer(x) - plain(x)).abs().max() > 0.01
    ends = [name for name in calls if "dropout" in name or "ls" in name or "path" in name]
    first, second = (["dropout", f"ls{i}", f"drop_path{i}"] for i in (1, 2))
    assert ends == [*first, "mlp.dropout", *second]
    assert_close(layer.eval()(x), plain(x))
    assert layer.attn.dropout == 0.0


# the stack


def test_the_mask_reaches_every_block():
    model, x = encoder(), torch.randn(B, N, D)
    before = model(x, causal_mask(N))
    x[:, 3:] = torch.randn(B, N - 3, D)  # adding a constant would be undone by the first norm
    after = model(x, causal_mask(N))
    assert_close(after[:, :3], before[:, :3])
    assert (after[:, 3:] - before[:, 3:]).abs().max() > 0.01
    padded = model(x, padding_mask([3, 5], N))
    assert_close(padded[0, :3], model(x[:1, :3])[0], atol=1e-5, rtol=1e-5)


x = torch.randn(B, N, D)

BAD_INPUT = [
    (lambda: block(attn=nn.Linear), TypeError, "attn must be a torch.nn.Modu"),
    (lambda: block(mlp_ratio=0), ValueError, "mlp_ratio must be finite and greater"),
    (lambda: block(norm_first="pre"), TypeError, "norm_first must be True or False"),
    (lambda: Encoder([], nn.Identity()), ValueError, "at least one block, got n"),
    (lambda: Encoder([block(), 2], nn.Identity()), TypeError, "blocks[1] must"),
    (lambda: Encoder([block()], None), TypeError, "norm must be a torch.nn.Module"),
    (lambda: encoder()(x, torch.ones(N, N)), TypeError, "mask must be a boolean"),
]
