"""A grid of 3 rows and 5 columns, width 8, one class token: no two sizes alike."""

import math

import pytest
import torch
from timm.layers import resample_abs_pos_embed
from torch.testing import assert_close

from vitbook.layers.positions import (
    POSITIONS,
    FixedPositions,
    LearnedPositions,
    RotaryPositions,
    default_options,
    resample_positions,
    rotate_pairs,
    sincos_1d,
    sincos_2d,
)

ROWS, COLS, DIM, B, H = 3, 5, 8, 2, 4
N = ROWS * COLS


def test_what_an_option_is_where_nobody_gives_it_is_read_off_the_positions():
    sincos = {"position_base": 10000.0, "centred_positions": False}
    defaults = {"rotary": {"position_base": 100.0}, "none": {}, "learned": {"position_std": 0.02}}
    defaults |= {"sincos_1d": sincos, "sincos_2d": sincos}
    assert {name: default_options(name) for name in POSITIONS} == defaults


# fixed tables


@pytest.mark.parametrize("given", [{}, {"base": 16.0}])
def test_sincos_1d_is_the_formula_of_the_paper(given):
    table, base = sincos_1d(7, 6, **given), given.get("base", 10000)
    assert table.shape == (7, 6)
    assert table.dtype == torch.float32
    for position in range(7):
        for i in range(3):
            angle = position / base ** (2 * i / 6)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("given", [{}, {"base": 16.0}])
def test_sincos_2d_is_sin_and_cos_of_the_column_then_of_the_row(given):
    table, base = sincos_2d((ROWS, COLS), DIM, **given), given.get("base", 10000)
    assert table.shape == (N, DIM)
    for row in range(ROWS):
        for col in range(COLS):
            frequencies = [1.0, base**-0.5]
            angles = [col * f for f in frequencies], [row * f for f in frequencies]
            expected = [
                wave(angle) for axis in angles for wave in (math.sin, math.cos) for angle in axis
            ]
            assert_close(table[row * COLS + col], torch.tensor(expected))
    assert torch.equal(sincos_2d(3, DIM, **given), sincos_2d((3, 3), DIM, **given))


@pytest.mark.parametrize("table", [sincos_1d, lambda n, *a, **k: sincos_2d((ROWS, COLS), *a, **k)])
@pytest.mark.parametrize("base", [10.0, 10000.0])
def test_a_centred_table_has_lost_its_mean_row_and_nothing_else(table, base):
    plain, centred = (table(N, DIM, base=base, centred=c) for c in (False, True))
    assert_close(centred.mean(dim=0), torch.zeros(DIM), atol=1e-6, rtol=0)
    assert_close(centred - centred[:1], plain - plain[:1])
    assert centred.dtype == torch.get_default_dtype()


def test_a_far_position_is_exact():
    angle = 99_999.0  # float32 angles would be off by about 0.004 here
    assert sincos_1d(100_000, 2)[-1, 0].item() == pytest.approx(math.sin(angle), abs=1e-6)


# modules


def test_learned_positions_are_added_and_trained():
    layer, x = LearnedPositions(num_tokens=N, embed_dim=DIM), torch.randn(B, N, DIM)
    assert_close(layer(x) - x, layer.table.expand(B, N, DIM), atol=1e-6, rtol=0)
    assert 0.015 < layer.table.std() < 0.025
    large = LearnedPositions(num_tokens=N, embed_dim=DIM, std=0.5)
    assert 0.4 < large.table.std() < 0.6
    layer(x).sum().backward()
    assert_close(layer.table.grad, torch.full((N, DIM), float(B)))
    assert set(layer.state_dict()) == {"table"}


def test_fixed_positions_leave_the_class_token_alone_and_are_not_trained():
    table = sincos_2d((ROWS, COLS), DIM)
    layer, x = FixedPositions(table, num_prefix=1), torch.randn(B, N + 1, DIM)
    assert torch.equal(layer(x)[:, 0], x[:, 0])
    assert_close(layer(x)[:, 1:], x[:, 1:] + table)
    assert not list(layer.parameters())
    assert not layer.state_dict()


# rotations


def test_rotate_pairs_is_a_complex_product():
    x, angles = torch.randn(B, H, N, DIM), torch.randn(N, DIM // 2)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    assert_close(rotate_pairs(x, angles.cos(), angles.sin()), turned)


def test_rotary_on_a_grid_turns_half_of_the_pairs_by_column_and_half_by_row():
    row, col = torch.meshgrid(torch.arange(ROWS), torch.arange(COLS), indexing="ij")
    angles = torch.stack([col, col / 10, row, row / 10], dim=-1).flatten(0, 1)  # 100^(-2 i / 4)
    for num_prefix in (0, 1):  # tokens before the patches are left alone
        layer = RotaryPositions(grid=(ROWS, COLS), head_dim=DIM, num_prefix=num_prefix)
        x = torch.randn(B, H, num_prefix + N, DIM)
        turned = rotate_pairs(x[..., num_prefix:, :], angles.cos(), angles.sin())
        assert_close(layer(x)[..., num_prefix:, :], turned)
        assert torch.equal(layer(x)[..., :num_prefix, :], x[..., :num_prefix, :])
        assert layer(x.bfloat16()).dtype == torch.bfloat16


# resampling


@pytest.mark.parametrize("num_prefix", [0, 1, 2])
@pytest.mark.parametrize("new_grid", [(6, 7), (2, 3), (3, 7)])
def test_resampling_equals_timms_and_keeps_the_prefix(num_prefix, new_grid):
    table = torch.randn(num_prefix + N, DIM)
    resampled = resample_positions(table, (ROWS, COLS), new_grid, num_prefix)
    theirs = resample_abs_pos_embed(
        table[None], list(new_grid), [ROWS, COLS], num_prefix_tokens=num_prefix
    )
    assert_close(resampled, theirs[0])
    assert torch.equal(resampled[:num_prefix], table[:num_prefix])
    assert torch.equal(resample_positions(table, (ROWS, COLS), (ROWS, COLS), num_prefix), table)
    half = resample_positions(table.bfloat16(), (ROWS, COLS), new_grid, num_prefix)
    assert half.dtype == torch.bfloat16


table = torch.randn(N, DIM)
learned = LearnedPositions(num_tokens=N, embed_dim=DIM)
rotary = RotaryPositions(grid=(ROWS, COLS), head_dim=DIM)


def test_rotary_angles_are_those_of_roformer():
    layer = RotaryPositions(grid=N, head_dim=DIM)
    x = torch.zeros(N, DIM)
    x[:, 0::2] = 1  # every pair points along its first axis: (1, 0) turns to (cos, sin)
    table = sincos_1d(N, DIM)
    assert_close(layer(x)[:, 0::2], table[:, 1::2])
    assert_close(layer(x)[:, 1::2], table[:, 0::2])


BAD_INPUT = [
    (lambda: sincos_1d(5, 7), ValueError, "dim must be even, got 7"),
    (lambda: sincos_1d(5, 8, base=0), ValueError, "base must be finite and gre"),
    (lambda: sincos_2d((3, 5), 6), ValueError, "dim must be divisible by 4"),
    (lambda: sincos_2d((3, 5, 1), 8), ValueError, "one number or (rows, col"),
    (lambda: learned(torch.randn(B, N + 1, DIM)), ValueError, "(B, 15, 8), one"),
    (lambda: FixedPositions([[1.0]]), TypeError, "table must be a torch.Tensor"),
    (lambda: FixedPositions(table, num_prefix=-1), ValueError, "num_prefix must"),
    (lambda: FixedPositions(table)(torch.randn(B, N, 9)), ValueError, "(2, 15, 9)"),
    (lambda: RotaryPositions(grid=5, head_dim=3), ValueError, "head_dim must be e"),
    (lambda: RotaryPositions(grid=(3, 5), head_dim=6), ValueError, "by 4, got 6"),
    (lambda: rotary(torch.randn(B, H, 16, DIM)), ValueError, "(15, 8), got (2"),
    (lambda: resample_positions(table, (3, 4), (6, 8)), ValueError, "0 + 3 * 4"),
    (lambda: resample_positions(table, (3, 5), (6, 8), 1), ValueError, "1 + 3"),
    (lambda: resample_positions(table.int(), (3, 5), (6, 8)), TypeError, "int32"),
]
