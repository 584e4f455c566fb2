"""The cards of the front page, and the picture beside a shared link."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from website.photograph import dahlia
from website.syntax.cards import (
    SIZE,
    Card,
    Part,
    cut_pictures,
    fitted,
    picture_name,
    read_card,
    read_parts,
)
from website.theme.preview_image import draw


def test_a_line_is_a_part_or_a_chapter():
    first, second = read_parts(["0 | Before | First.", "", "I | Attention | From one mean."])
    assert second == Part("I", "Attention", "From one mean.")
    assert (first.caption, second.caption) == ("", "I Attention")
    card = read_card("heads", "What is it? | 2 | 0 10 90 100 photo")
    assert card == Card("heads", "What is it?", 2, (0, 10, 90, 100), True)
    assert read_card("heads", "What? | 2") == Card("heads", "What?", 2)
    assert picture_name("heads", "dark") == "card-heads-dark.webp"


@pytest.mark.parametrize("line", [None, "What?", "Why. | 1", "Why? | 0", "Why? | 1 | 0 1"])
def test_a_line_that_is_no_card_is_named(line):
    with pytest.raises(ValueError, match=re.escape("front matter of heads, card: question? | ")):
        read_card("heads", line)
    with pytest.raises(ValueError, match=r"no part of the book .*: 'I \\| Attention'"):
        read_parts(["I | Attention"])


def png(color, size=(60, 30)):
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "PNG")
    return file.getvalue()


def figure(*sources):
    images = "".join(f'<img alt="a" src="{source}">' for source in sources)
    return f'<figure class="vitbook-figure" style="x">{images}</figure>'


def test_pictures_are_cut_from_the_two_files_of_a_figure(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "one.png").write_bytes(png("red"))
    (tmp_path / "part" / "two.png").write_bytes(png("blue"))
    film = '<figure class="vitbook-figure vb-animation"><img src="no.png"></figure>'
    (tmp_path / "part" / "c.html").write_text(
        film + figure("../one.png", "two.png?v=1") + figure("two.png")
    )
    cards = [(Card(f"n{n}", "?", n), "part/c.html") for n in (1, 2, 3)]
    told = list(cut_pictures(tmp_path, cards))
    assert told == [f"the card of n{n}: part/c.html has no image {n}" for n in (2, 3)]
    for theme, color in (("light", 0), ("dark", 2)):
        image = Image.open(tmp_path / "_images" / picture_name("n1", theme)).convert("RGB")
        assert image.size == SIZE
        assert np.asarray(image)[SIZE[1] // 2, SIZE[0] // 2].argmax() == color


def test_only_the_wanted_part_is_shown():
    image = Image.new("RGB", (100, 50), "white")
    image.paste("red", (50, 0, 100, 50))
    whole = np.asarray(fitted(image, Card(1, "?", 1, (60, 0, 100, 100))))
    assert tuple(whole[SIZE[1] // 2, SIZE[0] // 2][:3]) == (255, 0, 0)


def test_the_preview_image_has_the_size_that_its_tags_name(tmp_path):
    draw(tmp_path / "new" / "a.png", "A, title")
    draw(tmp_path / "b.png", "A, title")
    assert Image.open(tmp_path / "b.png").size == (1200, 630)
    assert (tmp_path / "new" / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_the_photograph_is_the_one_that_the_library_hands_out():
    from sklearn.datasets import load_sample_image

    assert np.array_equal(np.asarray(dahlia()), load_sample_image("flower.jpg"))


def test_the_card_of_a_page_that_broke_has_an_empty_picture(tmp_path):
    (tmp_path / "c.html").write_text('<div class="not-held not-held-broken">It ended.</div>')
    assert list(cut_pictures(tmp_path, [(Card(1, "?", 1), "c.html")])) == []
    for theme in ("light", "dark"):
        image = Image.open(tmp_path / "_images" / picture_name(1, theme)).convert("RGBA")
        assert (image.size, image.getextrema()[3]) == (SIZE, (0, 0))
