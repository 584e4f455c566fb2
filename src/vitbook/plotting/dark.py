"""The inks of the dark theme: the same figure, drawn once more with light letters on no ground.

A grey changes sides (white becomes the ground, black almost white), a pale tint becomes a deep
one, a colour stays and is lifted until it reads on the dark. Pictures stay, and so does what is
drawn over a picture. A text takes that of its two inks which reads better on what lies under it:
so black stays black in an orange bar.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from vitbook.plotting.colormaps import oklab, srgb

GROUND = "#14181e"  # about that of the dark page; where it is bare, the page shines through
LIGHT = 0.91  # lightness (OKLab) of the letters
PALE = 0.06  # chroma below which a colour is a grey or a tint
LIFTED = 0.63  # least lightness of a colour on the dark

_GROUND = np.array(to_rgba(GROUND)[:3])
_LOW = oklab(_GROUND)[0]
_INK = 0.25  # lightness of the light theme's letters


def exchanged(colors: Any) -> np.ndarray:
    """The dark theme's colours (n, 4) for some colours of the light theme."""
    rgba = to_rgba_array(colors)
    lab = oklab(rgba[:, :3])
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    turned = _LOW + (1 - lab[:, 0]) * (LIGHT - _LOW) / (1 - _INK)
    lab[:, 0] = np.where(chroma < PALE, turned.clip(0, 1), lab[:, 0].clip(LIFTED))
    rgba[:, :3] = np.where((rgba[:, :3] == 1).all(1, keepdims=True), _GROUND, srgb(lab))
    return rgba


@contextmanager
def dark_inks(fig: Figure) -> Iterator[None]:
    """The figure with the inks of the dark theme inside a ``with`` block, as it was after it.

    Args:
        fig: Laid out, and drawn before, so that its ticks are there.
    """
    undo: list[Callable[[], Any]] = []
    texts, kept = [], _over_pictures(fig)
    try:
        for artist in _parts(fig):
            if isinstance(artist, Text):
                texts.append(artist)
            elif artist not in kept:
                _exchange(artist, undo)
        for text in _light_texts(fig, texts):
            _set(text, "color", exchanged(text.get_color())[0], undo)
            _outlines(text, undo)
        yield
    finally:
        for step in reversed(undo):
            step()


def _parts(fig: Figure) -> list[Artist]:
    """All that is drawn, with the plates and arrows of texts."""
    found = []
    for artist in fig.findobj():
        found.append(artist)
        if isinstance(artist, Text):
            extra = (artist.get_bbox_patch(), getattr(artist, "arrow_patch", None))
            found += [patch for patch in extra if patch is not None]
    return list(dict.fromkeys(found))


def _exchange(artist: Artist, undo: list) -> None:
    if isinstance(artist, Line2D):
        for name in ("markerfacecolor", "markeredgecolor", "color"):
            value = getattr(artist, f"get_{name}")()
            if str(value) != "none":
                _set(artist, name, exchanged(value)[0], undo)
    elif isinstance(artist, (Patch, Collection)):
        mapped = isinstance(artist, Collection) and artist.get_array() is not None
        for name in () if mapped else ("facecolor", "edgecolor"):
            value = getattr(artist, f"get_{name}")()
            if len(value):
                new = exchanged(value)
                _set(artist, name, new if isinstance(artist, Collection) else new[0], undo)
    _outlines(artist, undo)


def _set(artist: Artist, name: str, value: Any, undo: list) -> None:
    setter = getattr(artist, f"set_{name}")
    old = copy.copy(getattr(artist, f"get_{name}")())
    undo.append(lambda: setter(old))
    setter(value)


def _outlines(artist: Artist, undo: list) -> None:
    """The rims that keep letters apart from what they stand on."""
    effects = artist.get_path_effects()
    if not effects:
        return
    fresh = copy.deepcopy(effects)
    for effect in fresh:
        rim = getattr(effect, "_gc", {})
        if "foreground" in rim:
            rim["foreground"] = exchanged(rim["foreground"])[0]
    undo.append(lambda: artist.set_path_effects(effects))
    artist.set_path_effects(fresh)


def _over_pictures(fig: Figure) -> list[Artist]:
    """The marks whose middle lies on a picture of their own axes."""
    found: list[Artist] = []
    for ax in fig.axes:
        pictures = [image.get_window_extent() for image in ax.images]
        for mark in (*ax.lines, *ax.patches, *ax.collections) if pictures else ():
            box = mark.get_window_extent()
            if not np.isfinite(box.extents).all():  # a line without points
                continue
            x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
            if any(picture.contains(x, y) for picture in pictures):
                found.append(mark)
    return found


def _light_texts(fig: Figure, texts: list[Text]) -> list[Text]:
    """Those texts that read better in the dark theme's ink, on what is now under them."""
    seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
    boxes = [text.get_window_extent() for text in seen]
    for text in seen:
        text.set_visible(False)
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255
    for text in seen:
        text.set_visible(True)
    lighter = []
    for text, box in zip(seen, boxes, strict=True):
        top = pixels.shape[0]
        rows = slice(max(0, round(top - box.y1)), max(0, round(top - box.y0)))
        under = pixels[rows, max(0, round(box.x0)) : max(0, round(box.x1))].reshape(-1, 3)
        plate = text.get_bbox_patch()
        if plate is not None and plate.get_facecolor()[3] > 0.5:  # type: ignore[misc, operator]
            ground = np.array(plate.get_facecolor()[:3])
        else:
            ground = np.median(under, axis=0) if len(under) else _GROUND
        old, new = to_rgba(text.get_color())[:3], exchanged(text.get_color())[0, :3]
        if contrast(new, ground) >= contrast(np.array(old), ground):
            lighter.append(text)
    return lighter


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """The contrast of two sRGB colours, as the accessibility guidelines (WCAG) define it."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    pair = np.stack([one, other])
    linear = np.where(pair <= 0.04045, pair / 12.92, ((pair + 0.055) / 1.055) ** 2.4)
    low, high = sorted((linear @ weights).tolist())
    return (high + 0.05) / (low + 0.05)
