"""Where a token is: fixed tables, learned tables, rotations."""

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require

GRID_BASE = 100.0  # of rotary angles


def sincos_1d(n: int, dim: int, *, base: float = 10000.0, centred: bool = False) -> Tensor:
    """Positions 0 ... n - 1 as sines and cosines of falling frequency.

    Column 2 i is sin(position * base^(-2 i / dim)), column 2 i + 1 the cosine of the same angle.

    Args:
        n: Number of positions.
        dim: Width of the table, even.
        base: The slowest wave is about base times slower than the fastest.
        centred: Whether the mean row is taken off, so that nothing is left that all positions
            share. Of few positions and a large base it is most of the table.

    Returns:
        Table (n, dim), float.

    Raises:
        TypeError: A size is not a whole number.
        ValueError: A size below 1 or an odd width.

    Source: Vaswani et al. 2017, section 3.5.
    """
    angles = _angles(require.whole("n", n), require.whole("dim", dim), base, "dim")
    table = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (n, dim / 2, 2)
    return _to_default_dtype(table.flatten(1), centred)


def sincos_2d(
    grid: int | tuple[int, int], dim: int, *, base: float = 10000.0, centred: bool = False
) -> Tensor:
    """Patches of a grid as sines and cosines of their column and of their row.

    A quarter of the width each: sin(column), cos(column), sin(row), cos(row), with dim / 4
    frequencies base^(-4 i / dim). This is the table of MoCo v3. (big_vision divides the exponent
    by dim / 4 - 1 instead, which is 0 / 0 at dim 4.)

    The defaults are the published ones. On a small grid most columns of such a table are nearly the
    same for all patches. With a base of twice the longer side, centred, short trainings on 4 x 4
    and 7 x 7 patches ended higher (record ``sincos_base``); after four times the steps that held on
    4 x 4 only (``sincos_longer``), and on 14 x 14 none was detected (``sincos_large``).

    Args:
        grid: (rows, columns) of patches; one number means a square.
        dim: Width of the table, divisible by 4.
        base: As in :func:`sincos_1d`.
        centred: As in :func:`sincos_1d`.

    Returns:
        Table (rows * columns, dim), float, row by row.

    Raises:
        TypeError: A size is not a whole number.
        ValueError: A size below 1 or a width that 4 does not divide.

    Source: Chen, Xie and He 2021 (MoCo v3); Beyer et al. 2022, section 3.
    """
    rows, cols = require.pair("grid", grid)
    dim = require.whole("dim", dim)
    row, col = _axial(rows, cols, dim, base, "dim")
    table = torch.cat([col.sin(), col.cos(), row.sin(), row.cos()], dim=-1)
    return _to_default_dtype(table, centred)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair of neighbouring columns (0, 1), (2, 3), ... by its own angle.

    Args:
        x: (..., N, d), d even.
        cos: Cosines of the angles (N, d / 2).
        sin: Sines of the angles (N, d / 2).

    Returns:
        (..., N, d), in the number type of x; lengths are unchanged.

    Source: Su et al. 2021 (RoFormer), equation 34.
    """
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)  # each (..., N, d / 2)
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return turned.flatten(-2).type_as(x)  # (..., N, d)


def resample_positions(
    table: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int], num_prefix: int = 0
) -> Tensor:
    """Stretch a table of positions to another grid of patches, as an image is resized.

    Args:
        table: (num_prefix + rows * columns, D).
        old_grid: (rows, columns) of the table.
        new_grid: (rows, columns) wanted.
        num_prefix: Rows at the top that belong to no patch (class token); they are kept.

    Returns:
        (num_prefix + new rows * new columns, D); the table itself when the grids are equal.

    Raises:
        TypeError: Not a floating-point tensor, or a size that is no whole number.
        ValueError: The table's length does not fit the old grid.

    Source: Dosovitskiy et al. 2021, section 3.2; bicubic with antialiasing, as timm does it.
    """
    require.floats("table", table, "(N, D)")
    rows, cols = require.pair("old_grid", old_grid)
    new_rows, new_cols = require.pair("new_grid", new_grid)
    num_prefix = require.whole("num_prefix", num_prefix, at_least=0)
    if len(table) != num_prefix + rows * cols:
        raise ValueError(
            f"table must have num_prefix + rows * columns = {num_prefix} + {rows} * {cols} rows, "
            f"got {len(table)}"
        )
    if (rows, cols) == (new_rows, new_cols):
        return table
    image = table[num_prefix:].T.reshape(1, -1, rows, cols).float()  # (1, D, rows, columns)
    image = F.interpolate(image, size=(new_rows, new_cols), mode="bicubic", antialias=True)
    return torch.cat([table[:num_prefix], image[0].flatten(1).T.to(table.dtype)])


class LearnedPositions(nn.Module):
    """Add one free vector per token; the model learns what they mean.

    Args:
        num_tokens: N, the class token included where there is one.
        embed_dim: D, the width of a token.
        std: Standard deviation of the table at the start. ViT's 0.02 has to grow for thousands of
            steps; the course takes 0.5 in short trainings, about the size of the sin-cos tables.

    Source: Dosovitskiy et al. 2021, equation 1.
    """

    def __init__(self, *, num_tokens: int, embed_dim: int, std: float = 0.02):
        super().__init__()
        size = require.whole("num_tokens", num_tokens), require.whole("embed_dim", embed_dim)
        self.table = nn.Parameter(torch.empty(size))
        nn.init.normal_(self.table, std=require.real("std", std, above=0))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return x + _require_fits(self.table, x)

    def set_grid(self, old: tuple[int, int], new: tuple[int, int], num_prefix: int) -> None:
        """Stretch the table to another grid of patches; it becomes a new parameter."""
        with torch.no_grad():
            table = resample_positions(self.table, old, new, num_prefix)
        self.table = nn.Parameter(table, requires_grad=self.table.requires_grad)


class FixedPositions(nn.Module):
    """Add a table that is not trained. Tokens before the patches (class token) get zeros.

    Args:
        table: (N, D), for example from :func:`sincos_2d`.
        num_prefix: How many tokens stand before the patches.
    """

    table: Tensor

    def __init__(self, table: Tensor, *, num_prefix: int = 0):
        super().__init__()
        require.floats("table", table, "(N, D)")
        num_prefix = require.whole("num_prefix", num_prefix, at_least=0)
        # it can be computed again at any time, so it has no place in a saved model
        self.register_buffer("table", F.pad(table, (0, 0, num_prefix, 0)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return x + _require_fits(self.table, x)

    def set_grid(self, old: tuple[int, int], new: tuple[int, int], num_prefix: int) -> None:
        """Stretch the table to another grid of patches."""
        self.table = resample_positions(self.table, old, new, num_prefix)


class RotaryPositions(nn.Module):
    """Turn queries and keys by angles that grow with the position.

    The dot product of two turned vectors depends on their distance only. On a sequence, pair i
    turns by position * base^(-2 i / d). On a grid, the first half of the pairs turns with the
    column and the second half with the row. Tokens before the patches are not turned.

    Args:
        grid: Number of positions of a sequence, or (rows, columns) of a grid.
        head_dim: d, even for a sequence, divisible by 4 for a grid.
        num_prefix: How many tokens stand before the patches.
        base: Default 10000 for a sequence and 100 for a grid.

    Source: Su et al. 2021 (RoFormer), section 3.2; for grids Heo et al. 2024.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        *,
        grid: int | tuple[int, int],
        head_dim: int,
        num_prefix: int = 0,
        base: float | None = None,
    ):
        super().__init__()
        self.head_dim = require.whole("head_dim", head_dim)
        self.num_prefix = require.whole("num_prefix", num_prefix, at_least=0)
        self.base = base
        self._turn(grid)

    def _turn(self, grid: int | tuple[int, int]) -> None:
        """Cosines and sines of the angles of each position."""
        if isinstance(grid, (tuple, list)):
            rows, cols = require.pair("grid", grid)
            base = GRID_BASE if self.base is None else self.base
            row, col = _axial(rows, cols, self.head_dim, base, "head_dim")
            angles = torch.cat([col, row], dim=-1)
        else:
            base = 10000.0 if self.base is None else self.base
            angles = _angles(require.whole("grid", grid), self.head_dim, base, "head_dim")
        angles = F.pad(angles, (0, 0, self.num_prefix, 0))  # (num_prefix + N, d / 2)
        dtype = torch.get_default_dtype()
        self.register_buffer("cos", angles.cos().to(dtype), persistent=False)
        self.register_buffer("sin", angles.sin().to(dtype), persistent=False)

    def set_grid(self, old: tuple[int, int], new: tuple[int, int], num_prefix: int) -> None:
        """Turn by the angles of another grid of patches."""
        device = self.cos.device
        self._turn(new)
        self.to(device)

    def forward(self, x: Tensor) -> Tensor:
        """Queries or keys (..., N, d) -> (..., N, d)."""
        _require_places(self.cos, x)
        return rotate_pairs(x, self.cos, self.sin)


def _angles(n: int, dim: int, base: float, name: str) -> Tensor:
    """Position times frequency, (n, dim / 2), in double precision."""
    base = require.real("base", base, above=0)
    if dim % 2:
        raise ValueError(f"{name} must be even, got {dim}")
    frequency = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)  # (dim / 2,)
    return torch.arange(n, dtype=torch.float64)[:, None] * frequency


def _to_default_dtype(table: Tensor, centred: bool) -> Tensor:
    """Optionally subtract the mean over positions; cast."""
    if require.truth("centred", centred):
        table = table - table.mean(dim=0)
    return table.to(torch.get_default_dtype())


def _axial(rows: int, cols: int, dim: int, base: float, name: str) -> tuple[Tensor, Tensor]:
    """The angles of each patch's row and of its column, each (rows * cols, dim / 4)."""
    if dim % 4:
        raise ValueError(f"{name} must be divisible by 4, got {dim}")
    row = _angles(rows, dim // 2, base, name)
    col = _angles(cols, dim // 2, base, name)
    return row.repeat_interleave(cols, dim=0), col.repeat(rows, 1)


@torch.fx.wrap
def _require_places(angles: Tensor, x: Tensor) -> Tensor:
    tokens, pairs = angles.shape
    if x.shape[-2:] != (tokens, 2 * pairs):
        raise ValueError(
            f"x must end with the axes (N, d) = ({tokens}, {2 * pairs}), got {tuple(x.shape)}"
        )
    return x


@torch.fx.wrap
def _require_fits(table: Tensor, x: Tensor) -> Tensor:
    if x.shape[-2:] != table.shape:
        raise ValueError(
            f"x must have the shape (B, N, D) = (B, {len(table)}, {table.shape[1]}), one token "
            f"per position, got {tuple(x.shape)}"
        )
    return table


def _sincos(
    axes: int,
    *,
    grid: tuple[int, int],
    embed_dim: int,
    num_prefix: int,
    base: float = 10000.0,
    centred: bool = False,
) -> FixedPositions:
    wave: Any = sincos_1d if axes == 1 else sincos_2d
    table = wave(math.prod(grid) if axes == 1 else grid, embed_dim, base=base, centred=centred)
    return FixedPositions(table, num_prefix=num_prefix)


# What makes the positions of a model, by the name that --positions takes.
POSITIONS: dict[str, Callable[..., nn.Module]] = {
    "learned": LearnedPositions,
    "sincos_1d": partial(_sincos, 1),
    "sincos_2d": partial(_sincos, 2),
    "rotary": partial(RotaryPositions, base=GRID_BASE),
    "none": nn.Identity,
}
# How models, runs and records call an argument of these.
POSITION_OPTIONS = {"position_std": "std", "position_base": "base", "centred_positions": "centred"}


def default_options(positions: str) -> dict[str, Any]:
    """What the options of positions are where nobody gives them, by the names of runs."""
    asked = inspect.signature(POSITIONS[positions]).parameters
    return {
        option: asked[name].default for option, name in POSITION_OPTIONS.items() if name in asked
    }


def make_positions(
    positions: str | Callable[..., nn.Module],
    *,
    grid: tuple[int, int],
    embed_dim: int,
    num_heads: int | None = None,
    num_prefix: int = 0,
    **options: Any,
) -> nn.Module:
    """Build the positions of a model.

    Args:
        positions: A name in ``POSITIONS``, or a class or function that makes a module. It is given
            those of ``grid``, ``num_tokens``, ``embed_dim``, ``num_prefix`` and ``head_dim`` that
            it asks for by name.
        grid: (rows, columns) of patches.
        embed_dim: D, the width of a token.
        num_heads: h, where there is attention.
        num_prefix: How many tokens stand before the patches.
        options: See ``POSITION_OPTIONS``; None stands for the default.

    Returns:
        A module for tokens (B, N, D) before the first block, or :class:`RotaryPositions`.

    Raises:
        TypeError, ValueError: An unknown name or option, or what makes no module.
    """
    if not callable(positions) or isinstance(positions, nn.Module):  # a module as it is: no maker
        make = POSITIONS[require.one_of("positions", positions, tuple(POSITIONS))]
    else:
        make = positions
    asked = inspect.signature(make).parameters
    offered: dict[str, Any] = {"grid": grid, "num_tokens": num_prefix + math.prod(grid)}
    offered |= {"embed_dim": embed_dim, "num_prefix": num_prefix}
    if num_heads is not None:
        offered["head_dim"] = embed_dim // require.whole("num_heads", num_heads)
    given = {name: offered[name] for name in offered.keys() & asked.keys()}
    for option, value in options.items():
        if value is None and option in POSITION_OPTIONS:
            continue
        name = POSITION_OPTIONS.get(option, option)
        if name not in asked:
            raise ValueError(
                f"{option} must be left out, {positions!r} positions have none, nor has the model"
            )
        given[name] = value
    return require.module("positions", make(**given))
