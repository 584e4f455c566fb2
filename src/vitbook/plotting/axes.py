"""The axes of a figure alone: what a page shows in place of a plot while it asks for a guess."""

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.spines import Spine


@contextmanager
def axes_alone(fig: Figure, dpi: float) -> Iterator[bool]:
    """Inside a ``with`` block all but axes, ticks and their words is hidden; is a tick left?

    What is drawn keeps the size that it has at this ``dpi``.
    """
    usual, fig.dpi = fig.dpi, dpi
    fig.draw_without_rendering()
    box = fig.get_tightbbox()
    fig.dpi = usual
    hidden = [part for part in _held(fig) if part.get_visible()]
    for part in hidden:
        part.set_visible(False)
    room = Rectangle(box.p0, box.width, box.height, transform=fig.dpi_scale_trans, fill=False, lw=0)
    fig.add_artist(room)
    try:
        yield any(_ticks(ax) for ax in fig.axes)
    finally:
        room.remove()
        for part in hidden:
            part.set_visible(True)


def _held(fig: Figure) -> Iterator[Artist]:
    """What stands in the axes, above and beside them: data, titles, legends, notes."""
    for frame in (fig, *fig.findobj(SubFigure), *fig.axes):
        for part in frame.get_children():
            axes = part in fig.axes or isinstance(part, (SubFigure, Axis, Spine))
            if not axes and part is not fig.patch:
                yield part


def _ticks(ax: Axes) -> bool:
    """Does a number or a word stand at a tick?"""
    labels = [*ax.get_xticklabels(which="both"), *ax.get_yticklabels(which="both")]
    return ax.axison and any(label.get_visible() and label.get_text() for label in labels)
