"""Letters that a phone can show: none is smaller than 10 px when a figure is 360 px wide."""

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.figure import Figure
from matplotlib.text import Text

PHONE = 360  # width of a figure on a phone, in CSS pixels
SMALLEST = 10  # height of its letters there, in CSS pixels
PAD = 0.05  # white round a figure, in inches


def smallest(width: float) -> float:
    """The font size in points that has 10 px on a phone, in a figure ``width`` inches wide."""
    return SMALLEST * width * 72 / PHONE


def drawn_width(fig: Figure) -> float:
    """Width in inches of all that a figure shows, its labels outside the axes with it."""
    fig.draw_without_rendering()
    return fig.get_tightbbox().width + 2 * PAD


@contextmanager
def laid_out(fig: Figure) -> Iterator[None]:
    """Inside a ``with`` block the figure's parts stay where the layout puts them now."""
    fig.draw_without_rendering()
    engine = fig.get_layout_engine()
    fig.set_layout_engine("none")
    try:
        yield
    finally:
        fig.set_layout_engine(engine)


def enlarge(fig: Figure) -> None:
    """Draw what is too small for a phone larger.

    Larger letters may widen the figure again, and a line longer than the figure would do so without
    end: more than an eighth above the first size they do not become.
    """
    most = smallest(drawn_width(fig)) * 9 / 8
    for _ in range(3):
        size = min(smallest(drawn_width(fig)), most)
        small = [
            text
            for text in written(fig)
            if text.get_fontsize() < size - 0.05  # type: ignore[operator]
        ]
        if not small:
            return
        for text in small:
            text.set_fontsize(size)
        for ax in fig.axes:
            for axis in (ax.xaxis, ax.yaxis):
                if any(label in small for label in axis.get_ticklabels(which="both")):
                    axis.set_tick_params(which="both", labelsize=size)


def written(fig: Figure) -> list[Text]:
    """The texts that a reader sees."""
    texts = (item for item in fig.findobj(Text) if isinstance(item, Text))
    return [text for text in texts if text.get_visible() and text.get_text().strip()]
