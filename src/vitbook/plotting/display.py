"""From a matplotlib figure to one self-contained HTML figure with alt text."""

import base64
import html
import io
import os

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from vitbook.plotting.axes import axes_alone
from vitbook.plotting.caption import caption_html
from vitbook.plotting.dark import GROUND, dark_inks
from vitbook.plotting.font_sizes import PAD, enlarge, laid_out
from vitbook.plotting.style import style

CSS_DPI = 96  # one CSS inch
PIXEL_RATIO = 2  # image pixels per CSS pixel, so that the figure stays sharp on good screens
BOTH_THEMES = "VITBOOK_BOTH_THEMES"  # the site's build sets it: pages show the theme's picture


def show(fig: Figure, alt: str, caption: str | None = None) -> None:
    """Display ``fig`` as one self-contained HTML figure, and close it.

    The picture is a PNG of twice the displayed size, inside the page. It looks the same in the
    book, in JupyterLab and in Colab, and shrinks with the column. Letters that would be smaller
    than 10 px on a phone, 360 px wide, are drawn larger: 2 pt for each inch of the figure's width.

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
    """The HTML that ``show`` displays, as a string. Same arguments, same errors.

    Where the environment asks for both themes, a second picture follows the first, in the inks of
    the dark theme; the page's style sheet shows one of them. The axes alone follow, hidden, in the
    dark inks: a page shows them in the figure's place while it asks for a guess.
    """
    if not isinstance(fig, Figure):
        raise TypeError(f"fig must be a matplotlib Figure, got {type(fig).__name__}")
    alt = _plain_text("alt", alt)
    text = None if caption is None else caption_html(_plain_text("caption", caption))
    both = bool(os.environ.get(BOTH_THEMES))
    parts = ['<figure class="vitbook-figure" style="margin:1em 0">']
    with style():
        enlarge(fig)
    with laid_out(fig):  # once, so that both pictures have one size
        png = figure_png(fig)
        parts.append(_image(png, alt, "only-light" if both else ""))
        if both:
            parts.append(_image(figure_png(fig, dark=True), alt, "only-dark"))
            with axes_alone(fig, CSS_DPI * PIXEL_RATIO) as any_axes:
                if any_axes:
                    axes = _image(figure_png(fig, dark=True), "", "only-asked")
                    parts.append(f'<div class="figure-axes" aria-hidden="true" hidden>{axes}</div>')
    if text is not None:
        wide = f"max-width:max({_size(png)[0]}px,24rem)"  # as the picture, or 50 letters
        parts.append(f'<figcaption style="{wide}">{text}</figcaption>')
    return "".join([*parts, "</figure>"])


def figure_png(fig: Figure, *, dark: bool = False) -> bytes:
    """The figure as PNG bytes in 256 colours; the same figure always gives the same bytes.

    Args:
        fig: A matplotlib Figure; it is drawn as it is.
        dark: Whether it has the inks of the dark theme, on no ground.
    """
    options = {}
    with style():
        if dark:
            with laid_out(fig), dark_inks(fig):
                picture = _pixels(fig, GROUND)
        else:
            picture = _pixels(fig)
    smaller = picture.quantize(256, dither=Image.Dither.NONE)
    if dark:
        options["transparency"] = _ground(smaller)
    buffer = io.BytesIO()  # a third of the bytes, and hardly a shade is lost in a drawing
    smaller.save(buffer, format="png", optimize=True, **options)
    return buffer.getvalue()


def _pixels(fig: Figure, ground: str = "white") -> Image.Image:
    buffer = io.BytesIO()
    fig.savefig(
        buffer,
        format="png",
        dpi=CSS_DPI * PIXEL_RATIO,
        bbox_inches="tight",
        pad_inches=PAD,
        facecolor=ground,
    )
    return Image.open(buffer).convert("RGB")


def _ground(picture: Image.Image) -> int:
    """The place of the ground's colour in the palette of a picture."""
    palette = np.array(picture.getpalette()).reshape(-1, 3)
    return int(abs(palette - 255 * np.array(to_rgb(GROUND))).sum(axis=1).argmin())


def _image(png: bytes, alt: str, class_: str) -> str:
    width, height = _size(png)
    theme = f' class="{class_}"' if class_ else ""
    ground = ";background:#fff" if class_ in ("", "only-light") else ""
    return (
        f'<img alt="{html.escape(alt)}"{theme} width="{width}" height="{height}"'
        f' style="max-width:100%;height:auto{ground}"'
        f' src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    )


def _size(png: bytes) -> tuple[int, ...]:
    """Width and height of a picture in CSS pixels, read from its first chunk."""
    return tuple(round(int.from_bytes(png[at : at + 4], "big") / PIXEL_RATIO) for at in (16, 20))


def _plain_text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, got {type(text).__name__}")
    text = " ".join(text.split())
    if not text:
        raise ValueError(f"{name} is empty; say in words what the figure shows")
    return text
