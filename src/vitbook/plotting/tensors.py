"""A matrix drawn as cells: queries, keys and values look the same on every page."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import ArrayLike

from vitbook.plotting import require
from vitbook.plotting.style import COLORS, INK

ROLE_COLORS = {
    "token": INK,
    "query": COLORS["blue"],
    "key": COLORS["green"],
    "value": COLORS["purple"],
    "attention": COLORS["vermillion"],
}
FAINTEST = 0.12  # of the ink, where the number is 0: the cell stays visible


def draw_tensor(
    ax: Axes,
    values: ArrayLike,
    title: str = "",
    *,
    role: str = "token",
    blocks: Sequence[str] = (),
    names: Sequence[str] = (),
    rows: bool = False,
    shape: tuple[str, str] | None = None,
) -> None:
    """Draw a matrix as cells: the larger a number, with either sign, the more ink.

    Args:
        ax: Where; its ticks and frame go.
        values: The numbers (rows, columns).
        title: What stands above.
        role: Whose ink, a key of `ROLE_COLORS`.
        blocks: Colours of blocks of equally many columns, in place of the role's.
        names: A name for each block, below it.
        rows: The blocks are of rows, with their names on the right.
        shape: Letters for the number of rows and of columns, such as ``("N", "d")``.

    Raises:
        ValueError: The role is unknown, ``values`` is no matrix, or its columns (rows) cannot be
            cut into the blocks, or the names are not as many.
    """
    if role not in ROLE_COLORS:
        raise ValueError(f"role must be one of {', '.join(ROLE_COLORS)}, got {role!r}")
    numbers = np.abs(require.array("values", values, "(rows, columns)"))
    along = numbers.shape[0 if rows else 1]
    inks = list(blocks) or [ROLE_COLORS[role]]
    if along % len(inks):
        which = "rows" if rows else "columns"
        raise ValueError(f"{along} {which} cannot be cut into {len(inks)} blocks of the same size")
    if names and len(names) != len(inks):
        raise ValueError(f"names must be as many as the blocks, {len(inks)}, got {len(names)}")
    size = along // len(inks)
    ink = np.repeat([to_rgb(color) for color in inks], size, axis=0)  # (along, 3)
    strength = FAINTEST + (1 - FAINTEST) * numbers / max(numbers.max(), 1e-12)
    ax.imshow(1 - strength[..., None] * (1 - (ink[:, None] if rows else ink[None])))
    ax.set_title(title, loc="center")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    high, wide = numbers.shape
    for at, name in enumerate(names or [""] * len(inks)):
        middle = (at + 0.5) * size - 0.5
        if at:
            line = ax.axhline if rows else ax.axvline
            line(at * size - 0.5, color="white", linewidth=3)
        place = (wide - 0.2, middle) if rows else (middle, high - 0.2)
        ax.text(*place, name, ha="left" if rows else "center", va="center" if rows else "top")
    if shape is not None:
        ax.text(-0.7, (high - 1) / 2, shape[0], ha="right", va="center", style="italic")
        ax.text((wide - 1) / 2, -0.7, shape[1], ha="center", va="bottom", style="italic")
