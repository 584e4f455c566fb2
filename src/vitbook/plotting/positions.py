"""Pictures of position tables."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitbook.plotting import require
from vitbook.plotting.colormaps import ATTENTION
from vitbook.plotting.style import style


@style()
def show_position_similarity(
    table: ArrayLike, grid: int | tuple[int, int], *, num_prefix: int = 0, width: float = 5.0
) -> Figure:
    """How alike the position vectors are: one small map for each position, laid out as the grid.

    Args:
        table: One position vector for each token (N, D).
        grid: (rows, columns) of patches, or one number for a square grid.
        num_prefix: How many vectors stand before those of the patches; they are left out.
        width: Width of the figure in inches.

    Source: after Dosovitskiy et al. 2021, figure 7 (centre).
    """
    table = require.array("table", table, "(N, D)")
    rows, columns = require.pair("grid", grid)
    prefix = require.whole("num_prefix", num_prefix, at_least=0)
    if len(table) != rows * columns + prefix:
        raise ValueError(
            f"grid {rows} x {columns} and num_prefix {prefix} make "
            f"{rows * columns + prefix} vectors, but table has {len(table)}"
        )
    table = table[prefix:]
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError("table holds a vector of length zero, which has no direction to compare")
    similarity = (table / norms) @ (table / norms).T
    tiles = np.full((rows, rows + 1, columns, columns + 1), np.nan)  # one cell of gap
    tiles[:, :rows, :, :columns] = similarity.reshape(rows, columns, rows, columns).transpose(
        0, 2, 1, 3
    )
    mosaic = tiles.reshape(rows * (rows + 1), columns * (columns + 1))[:-1, :-1]
    floor = np.floor(similarity.min() * 10) / 10  # the scale starts at the next lower tenth
    fig = Figure(figsize=(width, (width - 1.4) * mosaic.shape[0] / mosaic.shape[1] + 0.7))
    ax = fig.subplots()
    drawn = ax.imshow(mosaic, cmap=ATTENTION, vmin=floor, vmax=1, interpolation="nearest")
    own = np.arange(rows) * (rows + 2), np.arange(columns) * (columns + 2)
    x, y = np.meshgrid(own[1], own[0])
    ax.plot(x, y, "o", color="white", markersize=max(1.0, 18 / max(rows, columns)) * 0.8, mew=0)
    ax.set_xticks(
        np.arange(columns) * (columns + 1) + (columns - 1) / 2, [str(i + 1) for i in range(columns)]
    )
    ax.set_yticks(np.arange(rows) * (rows + 1) + (rows - 1) / 2, [str(i + 1) for i in range(rows)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="column of the patch", ylabel="row of the patch")
    fig.colorbar(drawn, ax=ax, shrink=0.8, label="cosine similarity")
    return fig
