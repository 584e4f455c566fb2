"""A query that wanders over an image, and where it looks: moving pictures without a script.

The frames lie under each other in one small picture; a style sheet moves it. So it works in a page
from a file, in a notebook, and wherever scripts are not run. Readers whose system asks for less
motion see one frame; for the others there is a box to tick that stops it.
"""

import base64
import hashlib
import html
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from vitbook.plotting import require
from vitbook.plotting.caption import caption_html
from vitbook.plotting.colormaps import ATTENTION
from vitbook.plotting.images import ink

TOP = 0.62  # how far up the colour scale the maps go, so that the image stays visible on them
QUERY = (31, 95, 204, 255)
STYLE = """
.vitbook-figure.vb-animation { width: auto; max-width: 46rem; }
.vb-animation .stage { background: #fff; color: #1b2330; border-radius: 0.5rem; padding: 0.6rem; }
.vb-animation .row { display: grid; gap: 0.5rem; margin: 0 0 0.6rem;
  grid-template-columns: repeat(auto-fit, minmax(5rem, 1fr)); }
.vb-animation .panel { text-align: center; font-size: 0.875rem; line-height: 1.3; }
.vb-animation .panel > span { text-wrap: balance; }
.vb-animation .box { position: relative; }
.vb-animation .box > * { display: block; position: absolute; inset: 0; background-repeat: no-repeat;
  background-size: 100% 100%; image-rendering: pixelated; }
.vb-animation .ink { mix-blend-mode: multiply; }
.vb-animation .box > .film { background-size: 100% var(--tall);
  animation: vb-animation var(--long) steps(var(--frames), jump-none) infinite; }
@keyframes vb-animation { from { background-position-y: 0%; } to { background-position-y: 100%; } }
.vb-animation:has(input:checked) .film { animation-play-state: paused; }
.vb-animation label { display: inline-block; padding: 0.4rem 0; cursor: pointer; }
.vb-animation .still { display: none; }
@media (prefers-reduced-motion: reduce) {
  .vb-animation .box > .film { animation: none; background-position-y: var(--still); }
  .vb-animation label { display: none; }
  .vb-animation .still { display: block; }
}
"""


def show_animation(
    images: Sequence[ArrayLike],
    maps: ArrayLike,
    queries: Sequence[int],
    *,
    names: Sequence[str],
    alt: str,
    caption: str,
    still: int = 0,
    seconds: float = 0.7,
) -> None:
    """Display images, each with panels that show where the wandering query looks.

    Args:
        images: (B, C, H, W) with C = 1 or 3; values outside 0 ... 1 are stretched.
        maps: For each image and panel the weights of the queries (B, panels, F, rows, columns).
        queries: F patches in reading order, the one that looks in each frame.
        names: A name for each panel.
        alt: What the figure shows, for readers who do not see it. Plain text.
        caption: What stands under it; plain text with simple maths.
        still: The frame for readers who asked for less motion.
        seconds: How long a frame stands.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
    """
    from IPython.display import display

    content = animation_html(
        images,
        maps,
        queries,
        names=names,
        alt=alt,
        caption=caption,
        still=still,
        seconds=seconds,
    )
    display({"text/html": content, "text/plain": f"Figure: {alt}"}, raw=True)


def animation_html(
    images: Sequence[ArrayLike],
    maps: ArrayLike,
    queries: Sequence[int],
    *,
    names: Sequence[str],
    alt: str,
    caption: str,
    still: int = 0,
    seconds: float = 0.7,
) -> str:
    """The HTML that ``show_animation`` displays. Same arguments, same errors."""
    maps = require.array("maps", maps, "(B, panels, F, rows, columns)")
    B, panels, F, rows, columns = maps.shape
    if len(images) != B:
        raise ValueError(f"images must be as many as maps hold, {B}, got {len(images)}")
    if len(queries) != F or not all(0 <= query < rows * columns for query in queries):
        raise ValueError(f"queries must name {F} patches below {rows * columns}, got {queries!r}")
    if F < 2 or not 0 <= still < F:
        raise ValueError(f"still must be one of two frames or more, got {still} of {F}")
    if maps.min() < 0 or seconds <= 0:
        raise ValueError("maps must not be negative, and seconds must be positive")
    names = require.labels("names", names, panels, "panel")
    where = _film(_marks(queries, rows, columns))
    parts = []
    for photo, film in zip(images, maps, strict=True):
        pixels = require.image("images", photo)
        seen = _layer("", _png(pixels))
        ratio = f"aspect-ratio:{pixels.shape[1]}/{pixels.shape[0]}"
        cells = [_panel("the image", ratio, seen, where)]
        over = _layer("ink", _png(ink(pixels)))
        for name, frames in zip(names, film, strict=True):
            top = frames.max(axis=(1, 2), keepdims=True)
            heat = ATTENTION(TOP * frames / np.where(top > 0, top, 1))[..., :3]
            cells.append(_panel(name, ratio, _film(heat), over, where))
        parts.append(f'<div class="row">{"".join(cells)}</div>')
    frames = f"--frames:{F};--tall:{100 * F}%;--long:{F * seconds:g}s"
    frames += f";--still:{100 * still / (F - 1):.4f}%"
    box = f"vb-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:10]}"
    return (
        f'<figure class="vitbook-figure vb-animation" style="{frames}"><style>{STYLE}</style>'
        f'<div class="stage"><div role="img" aria-label="{html.escape(alt)}">{"".join(parts)}</div>'
        f'<label for="{box}"><input type="checkbox" id="{box}"> stop the motion</label>'
        '<span class="still">A still: your system asks for less motion.</span></div>'
        f"<figcaption>{caption_html(caption)}</figcaption></figure>"
    )


def _marks(queries: Sequence[int], rows: int, columns: int) -> np.ndarray:
    """For each frame a clear grid with the query's patch filled, (F, rows, columns, 4) bytes."""
    marks = np.zeros((len(queries), rows * columns, 4), np.uint8)
    marks[np.arange(len(queries)), list(queries)] = QUERY
    return marks.reshape(len(queries), rows, columns, 4)


def _film(frames: np.ndarray) -> str:
    """Frames (F, rows, columns, channels), one under the other."""
    return _layer("film", _png(frames.reshape(-1, *frames.shape[2:])))


def _layer(kind: str, png: str) -> str:
    return f'<i class="{kind}" style="background-image:url({png})"></i>'


def _panel(name: str, ratio: str, *layers: str) -> str:
    return (
        f'<div class="panel"><div class="box" style="{ratio}">{"".join(layers)}</div>'
        f"<span>{html.escape(name)}</span></div>"
    )


def _png(pixels: np.ndarray) -> str:
    """An image of floats from 0 to 1, or of bytes, as a data address."""
    if pixels.dtype != np.uint8:
        pixels = (255 * pixels).round().astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
