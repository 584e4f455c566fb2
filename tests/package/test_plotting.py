"""Figures are looked at by people; what can be checked is what they hold and what they refuse."""

import base64
import io
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from PIL import Image

from vitbook.plotting import (
    ATTENTION,
    SIGNED,
    figure_html,
    figure_png,
    show,
    show_attention,
    show_images,
    show_patches,
    show_rollout,
)
from vitbook.plotting.caption import caption_html
from vitbook.plotting.colormaps import oklab
from vitbook.plotting.style import STYLE, style


@pytest.fixture(autouse=True)
def _headless_and_unchanged():
    matplotlib.use("agg")
    with matplotlib.rc_context():
        yield
    assert not plt.get_fignums(), "a figure was left open"


def line_figure(size=(4.0, 2.0)):
    fig, ax = plt.subplots(figsize=size)
    ax.plot([0, 1, 4])
    return fig


def parsed(fig, **kwargs):
    html = figure_html(fig, **kwargs)
    plt.close(fig)
    return BeautifulSoup(html, "html.parser")


# --- show --------------------------------------------------------------------------------------


def test_show_displays_one_html_figure_and_closes_it(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: shown.append(bundle))
    fig = line_figure()
    assert show(fig, alt="A rising line", caption="It rises.") is None
    assert not plt.fignum_exists(fig.number)
    (bundle,) = shown
    soup = BeautifulSoup(bundle["text/html"], "html.parser")
    assert [tag.name for tag in soup.figure.find_all()] == ["img", "figcaption"]
    assert soup.img["alt"] == "A rising line"
    width, height = Image.open(io.BytesIO(base64.b64decode(soup.img["src"].partition(",")[2]))).size
    assert abs(width - 2 * int(soup.img["width"])) <= 1, "sharp on good screens"
    assert abs(height - 2 * int(soup.img["height"])) <= 1
    assert soup.figcaption.text == "It rises."
    assert soup.figcaption["style"] == f"max-width:max({soup.img['width']}px,24rem)"
    assert bundle["text/plain"] == "Figure: A rising line"


def test_the_same_figure_gives_the_same_bytes_and_names_no_software():
    first, second = line_figure(), line_figure()
    png = figure_png(first)
    assert png == figure_png(second)
    assert not Image.open(io.BytesIO(png)).text
    plt.close("all")


@pytest.mark.parametrize(
    ("alt", "caption", "read"),
    [
        ('a "quote" & <b>', "1 < 2 & <script>", ('a "quote" & <b>', "1 < 2 & <script>")),
        ("two\n    lines", "also\n two", ("two lines", "also two")),
        ("A line", None, ("A line", None)),
    ],
)
def test_alt_and_caption_are_escaped_and_on_one_line(alt, caption, read):
    soup = parsed(line_figure(), alt=alt, caption=caption)
    assert (soup.img["alt"], soup.figcaption and soup.figcaption.text) == read
    assert not soup.find_all(["b", "script"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$W_Q$", "<i>W</i><sub>Q</sub>"),
        ("$x_{ij}^2$", "<i>x</i><sub>ij</sub><sup>2</sup>"),
        ("$e^{-α}$, $10^{-7}$", "<i>e</i><sup>−α</sup>, 10<sup>−7</sup>"),
        ("$a < b - 1$", "<i>a</i> &lt; <i>b</i> − 1"),
        ("$N^{2 d}$", "<i>N</i><sup>2 d</sup>"),
    ],
)
def test_simple_maths_in_captions_becomes_html(text, expected):
    html = re.sub(r"</?span[^>]*>| style=\"[^\"]*\"", "", caption_html(text))
    html = re.sub(r"<(su[bp])>(.*?)</\1>", lambda m: re.sub("</?i>", "", m[0]), html)
    assert html == expected


# --- style and colours -------------------------------------------------------------------------


@pytest.mark.parametrize("colormap", [ATTENTION, SIGNED])
def test_lightness_changes_evenly_along_the_scale(colormap):
    lightness = oklab(np.array([to_rgb(c) for c in colormap.colors]))[:, 0]
    half = lightness if colormap is ATTENTION else lightness[-128:]
    if colormap is SIGNED:
        assert np.abs(lightness - lightness[::-1]).max() < 0.05, "both arms are equally dark"
    steps = np.diff(half)
    assert (steps < 0).all(), "a darker colour must mean more"
    assert np.ptp(steps) < 0.2 * abs(steps.mean())
    assert half[0] - half[-1] > 0.5


def test_the_style_of_the_book_leaves_the_readers_own_as_it_was():
    before = dict(matplotlib.rcParams)
    with style():
        assert dict(matplotlib.rcParams) != before
    assert dict(matplotlib.rcParams) == before


def test_no_letter_of_the_style_is_smaller_than_nine_points():
    sizes = [STYLE[name] for name in STYLE if re.search("(font|title|label).*size", name)]
    assert len(sizes) >= 5
    assert min(sizes) >= 9


# --- what the figures hold -----------------------------------------------------------------------

rng = np.random.default_rng(0)
IMAGE = rng.random((8, 12))
MAPS = rng.dirichlet(np.ones(6), size=(3, 4)).reshape(3, 4, 2, 3)  # L = 3, h = 4, 2 x 3 patches


def panels(fig):
    return [ax for ax in fig.axes if ax.images]


def texts(fig):
    fig.draw_without_rendering()
    return [t.get_text() for t in fig.findobj(matplotlib.text.Text) if t.get_text()]


@pytest.mark.parametrize(
    "pixels",
    [
        IMAGE,
        IMAGE[None],
        np.stack([IMAGE] * 3),
        np.stack([IMAGE] * 3, axis=-1),
        torch.tensor(IMAGE, requires_grad=True),
        (IMAGE * 255).astype(np.uint8),
        IMAGE * 16 - 3,
        IMAGE.tolist(),
    ],
    ids=["HW", "1HW", "3HW", "HW3", "tensor", "uint8", "normalised", "list"],
)
def test_every_layout_of_an_image_is_drawn_alike(pixels):
    (ax,) = panels(show_images([pixels]))
    drawn = np.asarray(ax.images[0].get_array())
    grey = drawn if drawn.ndim == 2 else drawn[..., 0]
    assert grey.shape == (8, 12)
    assert 0 <= grey.min() <= grey.max() <= 1
    assert np.corrcoef(grey.ravel(), IMAGE.ravel())[0, 1] > 0.999


def test_patches_are_pulled_apart_in_reading_order():
    fig = show_patches(IMAGE, (4, 3))
    whole, apart = panels(fig)
    assert len(apart.images) == 8  # 2 rows of 4
    fifth = np.asarray(apart.images[5].get_array())
    assert np.array_equal(fifth, IMAGE[4:8, 3:6])  # row 1, column 1
    assert [t.get_text() for t in apart.texts] == [str(n) for n in range(8)]
    assert "8 × 12" in whole.get_title(loc="left")
    assert "8 patches of 4 × 3" in apart.get_title(loc="left")
    image = rng.random((40, 40))
    assert not panels(show_patches(image, 4))[1].texts, "many carry no numbers unless asked"
    assert len(panels(show_patches(image, 4, numbers=True))[1].texts) == 100


def test_attention_has_a_row_for_each_layer_and_a_column_for_each_head():
    fig = show_attention(IMAGE, MAPS)
    assert len(panels(fig)) == 12
    words = texts(fig)
    assert {"layer 1", "layer 3", "head 1", "head 4"} <= set(words)
    assert "head 5" not in words
    assert f"max {MAPS[2, 3].max():.2f}" in words
    even = texts(show_attention(np.ones((20, 20)), np.full((1, 1, 10, 10), 0.0104)))
    assert "max 0.010" in even, "of many patches two decimals would tell nothing apart"


def test_a_rollout_is_the_image_and_a_panel_for_each_layer():
    titles = [ax.get_title() for ax in panels(show_rollout(IMAGE, MAPS[:, 0]))]
    assert titles == ["image", "after layer 1", "after layer 2", "after layer 3"]


def test_images_stand_in_rows_with_their_titles():
    fig = show_images(rng.random((5, 4, 6)), titles=list("abcde"), columns=3)
    assert [ax.get_title() for ax in panels(fig)] == list("abcde")
    assert len(fig.axes) == 6


def warmth(panel):
    """How far each pixel is from grey: attention is colour, the image is not."""
    rgb = np.asarray(panel.images[0].get_array())
    return (rgb[..., 0] - rgb[..., 2]) / rgb.max(axis=-1)


def test_the_warmest_patch_is_the_one_with_the_largest_weight():
    fig = show_attention(IMAGE, MAPS)
    for panel, weights in zip(panels(fig), MAPS.reshape(12, 2, 3), strict=True):
        mean = warmth(panel).reshape(2, 4, 3, 4).mean(axis=(1, 3))
        assert mean.argmax() == weights.argmax()


def test_plotting_imports_no_model_and_not_even_torch():
    code = "import sys, vitbook.plotting; print(*sys.modules, sep='\\n')"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).splitlines())
    assert "vitbook.plotting" in loaded
    assert not loaded & {"torch", "vitbook.layers.attention", "vitbook.models.vit"}


# --- bad input ---------------------------------------------------------------------------------


def shown(**kwargs):
    fig = line_figure()
    try:
        show(fig, **kwargs)
    finally:
        plt.close(fig)


NAN = np.full((2, 2), np.nan)
BAD_INPUT = [
    (lambda: show([1], alt="x"), TypeError, "fig must be a matplotlib Figure"),
    (lambda: shown(alt="  \n"), ValueError, "alt is empty"),
    (lambda: shown(alt="x", caption=3), TypeError, "caption must be"),
    (lambda: shown(alt="x", caption=""), ValueError, "caption is empty"),
    (lambda: shown(alt="x", caption="5 $"), ValueError, "without a partner"),
    (lambda: caption_html("$\\frac{1}{2}$"), ValueError, "\\frac"),
    (lambda: caption_html("$x_$"), ValueError, "HTML cannot set"),
    (lambda: show_images([]), ValueError, "images is empty"),
    (lambda: show_images([IMAGE], titles=["a", "b"]), ValueError, "titles must"),
    (lambda: show_patches("cat", 2), TypeError, "image must be an array"),
    (lambda: show_patches(IMAGE, 5), ValueError, "patch_size 5 x 5 must divide"),
    (lambda: show_patches(NAN, 1), ValueError, "image must be finite"),
    (lambda: show_patches(np.zeros((2, 4, 4)), 2), ValueError, "1 or 3"),
    (lambda: show_attention(IMAGE, MAPS[0]), ValueError, "(L, h, rows, columns)"),
    (lambda: show_attention(IMAGE, MAPS.reshape(3, 4, 1, 6)[..., :5]), ValueError, "do not tile"),
    (lambda: show_attention(IMAGE, MAPS, row_labels=["one"]), ValueError, "row_labels must hold 3"),
    (lambda: show_rollout(IMAGE, MAPS[:0, 0]), ValueError, "rollouts is empty"),
]
