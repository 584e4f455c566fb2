"""The dark picture of a figure, its axes alone, and letters that a phone can show."""

import base64
import io

import matplotlib
import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure
from PIL import Image

from vitbook.plotting import COLORS, INK, figure_html, figure_png, style
from vitbook.plotting.axes import axes_alone
from vitbook.plotting.dark import GROUND, contrast, dark_inks, exchanged
from vitbook.plotting.display import BOTH_THEMES
from vitbook.plotting.font_sizes import drawn_width, enlarge, laid_out, written
from vitbook.plotting.style import bare

DARK = np.array(matplotlib.colors.to_rgb(GROUND))


@pytest.fixture(autouse=True)
def _headless():
    matplotlib.use("agg")
    with style():
        yield


def bars(width=4.0):
    """A wide orange bar with a black number in it, a title, a photograph beside it."""
    fig = Figure(figsize=(width, 2.0))
    left, right = fig.subplots(1, 2)
    left.barh([0], [1], color=COLORS["orange"], edgecolor="white")
    left.text(0.5, 0, "87", color="black", ha="center", va="center")
    left.set_title("accuracy")
    right.imshow(np.tile(np.linspace(0, 1, 8), (8, 1)), cmap="gray")
    right.plot([2, 5], [4, 4], color="black")
    right.plot([2, 5], [4, 4], "o", color="white")
    return fig


def test_greys_change_sides_and_colours_stay_and_read_on_the_dark():
    assert np.allclose(exchanged("white")[0, :3], DARK)
    assert contrast(exchanged(INK)[0, :3], DARK) > 12
    for name in ("blue", "vermillion", "green", "purple", "orange", "sky", "yellow"):
        old = matplotlib.colors.to_rgb(COLORS[name])
        new = exchanged(COLORS[name])[0, :3]
        assert contrast(new, DARK) >= 4.5, name
        assert np.argsort(new).tolist() == np.argsort(old).tolist(), f"another hue for {name}"
    assert exchanged((0, 0, 0, 0.25))[0, 3] == 0.25


def test_a_text_takes_the_ink_that_reads_on_what_lies_under_it():
    fig = bars()
    with laid_out(fig), dark_inks(fig):
        texts = {text.get_text(): text.get_color() for text in written(fig)}
        lines = [line.get_color() for line in fig.axes[1].lines]
    assert lines == ["black", "white"]  # over a picture
    assert texts["87"] == "black"  # in an orange bar
    assert contrast(np.array(texts["accuracy"][:3]), DARK) > 12


def test_the_dark_picture_has_no_ground_and_leaves_the_photograph_alone():
    fig = bars()
    with laid_out(fig):
        light, dark = (
            np.asarray(Image.open(io.BytesIO(figure_png(fig, dark=dark))).convert("RGBA"))
            for dark in (False, True)
        )
    assert light.shape == dark.shape
    assert tuple(light[0, 0]) == (255, 255, 255, 255)
    assert dark[0, 0, 3] == 0
    panel = np.s_[200:240, -60:-20, :3]  # in the lightest column of the picture
    assert np.abs(light[panel].astype(int) - dark[panel]).max() < 6


def test_one_picture_in_a_notebook_and_two_of_one_size_where_the_build_asks(monkeypatch):
    monkeypatch.delenv(BOTH_THEMES, raising=False)
    (one,) = BeautifulSoup(figure_html(bars(), "Bars"), "html.parser").find_all("img")
    assert not one.get("class")
    monkeypatch.setenv(BOTH_THEMES, "1")
    images = BeautifulSoup(figure_html(bars(), "Bars"), "html.parser").find_all("img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"], ["only-asked"]]
    light, dark, axes = images
    assert light["alt"] == dark["alt"] == "Bars"
    assert drawn(light).size == drawn(dark).size
    for side in ("width", "height"):
        assert light[side] == dark[side]
        assert abs(int(axes[side]) - int(light[side])) <= 1


def drawn(image):
    return Image.open(io.BytesIO(base64.b64decode(image["src"].split(",")[1]))).convert("RGBA")


def told(peak, words):
    """A plot that says ``peak`` and ``words`` in every way, in axes that do not."""
    fig = Figure(figsize=(4.0, 2.0))
    ax = fig.subplots()
    ax.set(xlim=(0, 2), ylim=(0, 10), xlabel="width")
    ax.plot([0, 1, 2], [1, peak, 1], label=words)
    ax.bar([0.5], [peak])
    ax.fill_between([0, 1], peak - 1, peak)
    ax.errorbar([1], [peak], yerr=1)
    ax.imshow(np.eye(3)[:: 1 if peak > 5 else -1], extent=(1.5, 2, 0, peak), aspect="auto")
    ax.annotate(words, (1, peak), (1.2, 5), arrowprops={"arrowstyle": "->"})
    ax.set_title(words)
    ax.legend()
    ax.inset_axes((0.6, 0.5, 0.3, 0.3)).plot([0, peak])
    fig.legend([words])
    fig.suptitle(words)
    return fig


def test_the_axes_alone_have_ticks_and_tell_nothing_of_what_they_hold(monkeypatch):
    monkeypatch.setenv(BOTH_THEMES, "1")
    one, other = (
        BeautifulSoup(figure_html(told(*what), "Both"), "html.parser").find_all("img")
        for what in ((9, "much"), (3, "less"))
    )
    assert drawn(one[0]).tobytes() != drawn(other[0]).tobytes()
    assert drawn(one[2]).tobytes() == drawn(other[2]).tobytes()
    ink = np.asarray(drawn(one[2]))[..., 3] > 0
    below, left = ink[-60:].any(0), ink[:, :50].any(1)
    assert (below.sum() > 60, left.sum() > 60) == (True, True)  # words and numbers at both axes
    assert ink.mean() < 0.03  # and no more than that


def test_a_figure_without_ticks_has_no_axes_to_show(monkeypatch):
    monkeypatch.setenv(BOTH_THEMES, "1")
    fig = Figure(figsize=(2.0, 2.0))
    bare(fig.subplots())
    assert "figure-axes" not in figure_html(fig, "A picture")


def test_after_the_axes_all_is_there_again():
    fig = told(9, "much")
    with laid_out(fig):
        before = figure_png(fig)
        with axes_alone(fig, 192):
            assert figure_png(fig) != before
        assert figure_png(fig) == before


@pytest.mark.parametrize("width", [4.0, 6.0, 8.0])
def test_letters_have_ten_pixels_on_a_phone_and_larger_ones_stay(width):
    fig = bars(width)
    fig.axes[0].texts[0].set_fontsize(7)
    fig.axes[0].tick_params(labelsize=5)
    (title,) = [text for text in written(fig) if text.get_text() == "accuracy"]
    title.set_fontsize(40)
    enlarge(fig)
    wide = drawn_width(fig)
    pixels = [text.get_fontsize() * 360 / 72 / wide for text in written(fig)]
    assert min(pixels) > 9.9
    assert title.get_fontsize() == 40
