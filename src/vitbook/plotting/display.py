"""From a matplotlib figure to one self-contained HTML figure with alt text."""

import base64
import html
import io

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from vitbook.plotting.caption import caption_html
from vitbook.plotting.style import style

CSS_DPI = 96  # one CSS inch
PIXEL_RATIO = 2  # image pixels per CSS pixel, so that the figure stays sharp on good screens


def show(fig: Figure, alt: str, caption: str | None = None) -> None:
    """Display ``fig`` as one self-contained HTML figure, and close it.

    The picture is a PNG of twice the displayed size, inside the page. It looks the same in the
    book, in JupyterLab and in Colab, and shrinks with the column.

    Args:
        fig: A matplotlib Figure. It is closed, so that the notebook does not draw it again.
        alt: What the picture shows, in words, for readers who do not see it. Plain text.
        caption: What stands under the picture, or None. Plain text (no HTML, no Markdown), with
            simple maths between dollar signs: ``$W_Q$``, ``$e^{-α}$``; see ``plotting.caption``.

    Raises:
        TypeError: ``fig`` is no Figure, or ``alt`` or ``caption`` is no string.
        ValueError: ``alt`` or ``caption`` is empty, or the caption's maths is not simple.
    """
    from IPython.display import display

    bundle = {"text/html": figure_html(fig, alt, caption), "text/plain": f"Figure: {alt}"}
    plt.close(fig)
    display(bundle, raw=True)


def figure_html(fig: Figure, alt: str, caption: str | None = None) -> str:
    """The HTML that ``show`` displays, as a string. Same arguments, same errors."""
    if not isinstance(fig, Figure):
        raise TypeError(f"fig must be a matplotlib Figure, got {type(fig).__name__}")
    alt = _plain_text("alt", alt)
    png = figure_png(fig)
    width, height = (round(side / PIXEL_RATIO) for side in _png_size(png))
    parts = [
        '<figure class="vitbook-figure" style="margin:1em 0">',
        f'<img alt="{html.escape(alt)}" width="{width}" height="{height}"'
        ' style="max-width:100%;height:auto;background:#fff"'
        f' src="data:image/png;base64,{base64.b64encode(png).decode()}">',
    ]
    if caption is not None:
        text = caption_html(_plain_text("caption", caption))
        parts.append(f"<figcaption>{text}</figcaption>")
    return "".join([*parts, "</figure>"])


def figure_png(fig: Figure) -> bytes:
    """The figure as PNG bytes in 256 colours; the same figure always gives the same bytes."""
    buffer = io.BytesIO()
    with style():
        fig.savefig(
            buffer,
            format="png",
            dpi=CSS_DPI * PIXEL_RATIO,
            bbox_inches="tight",
            pad_inches=0.05,
            metadata={"Software": None},  # else matplotlib writes its version into the file
        )
    smaller = io.BytesIO()  # a third of the bytes, and hardly a shade is lost in a drawing
    picture = Image.open(buffer).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(smaller, format="png", optimize=True)
    return smaller.getvalue()


def _png_size(png: bytes) -> tuple[int, ...]:
    """Width and height of a PNG in pixels, read from its first chunk."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _plain_text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, got {type(text).__name__}")
    text = " ".join(text.split())
    if not text:
        raise ValueError(f"{name} is empty; say in words what the figure shows")
    return text
