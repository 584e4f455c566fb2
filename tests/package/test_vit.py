"""Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 16, h = 2.

What holds for the other stacks, too, stands in `test_stacks.py`.
"""

import hashlib
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.init import truncated_normal_
from vitbook.layers.positions import POSITIONS, LearnedPositions, sincos_1d, sincos_2d
from vitbook.models.vit import POOLS, VisionTransformer
from vitbook.training import parameter_groups

B, C, HEIGHT, WIDTH, P, N, D, H, CLASSES = 3, 3, 6, 8, 2, 12, 16, 2, 5


def model(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
    sizes |= {"num_classes": CLASSES, "embed_dim": D, "depth": 2, "num_heads": H}
    return VisionTransformer(**(sizes | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


@pytest.mark.parametrize("registers", [0, 2])
@pytest.mark.parametrize("pool", POOLS)
def test_the_tokens_are_class_token_registers_and_patches_each_with_its_position(pool, registers):
    net, x = model(pool=pool, num_registers=registers, position_std=0.5), images()
    tokens = net.patch_embed(x)
    for token in (net.reg_token, net.cls_token):
        if token is not None:
            tokens = torch.cat([nn.init.normal_(token).expand(B, -1, -1), tokens], dim=1)
    assert net.num_prefix == (pool == "cls") + registers
    assert net.positions.table.shape == (net.num_prefix + N, D)
    assert_close(net.embed(x), tokens + net.positions.table)
    assert (net.cls_token is None) == (pool == "mean")


# Names of the state dict (hashed), its numbers (sum, the i-th tensor i times) and logits, from seed
# 0 and made before the encoder took a list of blocks: recorded runs and saved weights rely on them.
DRAWN = {
    ("learned", "cls", True): ("cea7788e", 1103.378, [0.01015, -0.03052, 0.02308, 0.06987]),
    ("sincos_2d", "mean", True): ("7f57e0f2", 914.2526, [0.00585, 0.09407, 0.03158, 0.04046]),
    ("rotary", "cls", False): ("6b8260b6", 534.7308, [0.05831, -0.03039, 0.00388, 0.02145]),
    ("sincos_1d", "mean", False): ("5207b029", 481.7882, [0.0099, -0.01101, -0.02868, 0.08545]),
}


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_a_seed_draws_what_it_always_drew(case):
    positions, pool, norm_first = case
    names, numbers, logits = DRAWN[case]
    std = 0.5 if positions == "learned" else None
    net = model(positions=positions, pool=pool, norm_first=norm_first, position_std=std)
    state = net.state_dict()
    assert hashlib.sha256(" ".join(state).encode()).hexdigest()[:8] == names
    total = sum(i * tensor.double().sum().item() for i, tensor in enumerate(state.values(), 1))
    assert total == pytest.approx(numbers, abs=2e-3)
    assert net(images())[1, :4].tolist() == pytest.approx(logits, abs=1e-4)


def test_what_a_start_draws_again_is_the_same_in_every_torch():
    """``nn.init.trunc_normal_`` draws others in torch 2.11 than in 2.14."""
    weight = torch.empty(200)
    truncated_normal_(weight, std=1.0)  # 5 in 100 lie beyond 2
    assert weight.abs().max() <= 2
    assert weight.double().sum().item() == pytest.approx(-5.31232, abs=1e-3)


def test_the_attention_layer_gets_the_sizes_and_what_is_bound_with_partial():
    net = model(attn_layer=partial(MultiHeadSelfAttention, qkv_bias=False, dropout=0.5))
    for block in net.encoder.blocks:
        assert (block.attn.qkv.in_features, block.attn.num_heads) == (D, H)
        assert (block.attn.qkv.bias, block.attn.dropout) == (None, 0.5)
    with pytest.raises(TypeError, match="rotary"):  # a layer that is to turn what it does not have
        model(attn_layer=lambda *, embed_dim, num_heads: nn.Identity(), positions="rotary")


# positions


def test_the_base_of_the_positions_and_a_centred_table_are_options():
    grid = (HEIGHT // P, WIDTH // P)
    net = model(positions="sincos_2d", position_base=10.0, centred_positions=True)
    assert torch.equal(net.positions.table[0], torch.zeros(D))  # the class token's
    assert_close(net.positions.table[1:], sincos_2d(grid, D, base=10.0, centred=True))
    net = model(positions="sincos_1d", position_base=10.0, pool="mean")
    assert_close(net.positions.table, sincos_1d(N, D, base=10.0))
    default = model(positions="sincos_2d", pool="mean").positions.table
    assert torch.equal(default, sincos_2d(grid, D))
    slow, fast = (model(positions="rotary", **k) for k in ({}, {"position_base": 10.0}))
    angles = [net.encoder.blocks[0].attn.rotary.sin[-1, 1].asin() for net in (slow, fast)]
    assert_close(angles[1] / angles[0], torch.tensor((100 / 10) ** 0.5))


class Axial(nn.Module):
    """Positions of one's own: they ask for what they need."""

    def __init__(self, *, grid, embed_dim, num_prefix, std=0.1):
        super().__init__()
        self.asked, self.std = (grid, embed_dim, num_prefix), std
        self.row = nn.Parameter(torch.randn(grid[0], 1, embed_dim))

    def forward(self, x):
        return x + nn.functional.pad(self.row.expand(-1, 4, -1).flatten(0, 1), (0, 0, 1, 0))


def test_positions_of_ones_own_are_made_where_the_named_ones_are():
    net, x = model(positions=Axial, std=0.3), images()
    assert (net.positions.asked, net.positions.std) == (((3, 4), D, 1), 0.3)
    added = (net.embed(x)[:, 1:] - net.patch_embed(x)).unflatten(1, (3, 4))
    assert_close(added, net.positions.row.expand(B, 3, 4, D))
    states = []
    for given in ({"positions": partial(LearnedPositions, std=0.5)}, {"position_std": 0.5}):
        torch.manual_seed(1)
        states.append(model(**given).state_dict())
    assert list(states[0]) == list(states[1])
    assert all(map(torch.equal, *(state.values() for state in states)))


@pytest.mark.parametrize("positions", POSITIONS)
def test_no_parameter_of_the_positions_decays(positions):
    net = model(positions=positions)
    own = {id(parameter) for parameter in net.positions.parameters()}
    (decayed,) = [one for one in parameter_groups(net, 0.1) if one["weight_decay"]]
    assert not own & {id(parameter) for parameter in decayed["params"]}


BAD_INPUT = [
    (lambda: model(pool="max"), ValueError, "pool must be one of 'cls', 'mean'; got 'max'"),
    (lambda: model(positions="2d"), ValueError, "positions must be one of 'learned', "),
    (lambda: model(positions=nn.Identity()), ValueError, "got Identity()"),
    (lambda: model(positions=lambda grid: 3), TypeError, "positions must be a tor"),
    (lambda: model(position_base=9), ValueError, "position_base must be left out, 'learned' "),
    (lambda: model(num_regsters=4), ValueError, "num_regsters must be left out"),
    (lambda: model(positions=Axial).set_image_size(16), ValueError, "Axial has no set_grid("),
    (lambda: model(positions="rotary", num_heads=8), ValueError, "head_dim must b"),
    (lambda: model().forward_features(images(), torch.ones(N, N)), TypeError, "mask must b"),
]
