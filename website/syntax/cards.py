"""The cards of the front page: their lines, and the pictures cut from the chapters' own figures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from PIL import Image

SLUG = re.compile(r"[a-z]\w*")
SIZE = (520, 292)  # pixels of a picture, twice as many as it is shown with
MARGIN = 20
GROUND = 24  # of the dark theme's cards
FIGURE = re.compile(r'<figure class="vitbook-figure(?! vb-animation).*?</figure>', re.DOTALL)
BROKEN = "not-held-broken"  # website/syntax/cells/failures.py
IMAGE = re.compile(r'<img\b[^>]*?\bsrc="([^"]+)"[^>]*>')


@dataclass(frozen=True)
class Part:
    """A heading between the cards."""

    sign: str
    title: str
    words: str


@dataclass(frozen=True)
class Card:
    """A chapter. ``figure`` counts from 1. ``crop`` is left, top, right, bottom in per cent."""

    chapter: str  # as references call it
    question: str
    figure: int
    crop: tuple[int, ...] = (0, 0, 100, 100)
    photo: bool = False


def read_cards(lines: Sequence[str]) -> list[Part | Card]:
    """Read the lines of a ``{chapter-cards}``.

    Raises:
        ValueError: A line is neither a part nor a card; the message holds the line.
    """
    entries: list[Part | Card] = []
    for line in filter(str.strip, lines):
        words = [one.strip() for one in line.split("|")]
        try:
            if words[0].startswith("#"):
                sign, title, said = words
                entries.append(Part(sign.lstrip("# "), title, said))
                continue
            chapter, question, figure, *rest = words
            words_of = (rest[0] if rest else "").split()
            photo = "photo" in words_of
            numbers = tuple(int(word) for word in words_of if word != "photo") or (0, 0, 100, 100)
            if len(numbers) != 4 or not SLUG.fullmatch(chapter) or int(figure) < 1:
                raise ValueError
            entries.append(Card(chapter, question, int(figure), numbers, photo))
        except ValueError:
            raise ValueError(f"no card and no part of the book: {line!r}") from None
    return entries


def picture_name(chapter: str, theme: str) -> str:
    return f"card-{chapter}-{theme}.webp"


def cut_pictures(site: Path, cards: Sequence[tuple[Card, str]]) -> Iterator[str]:
    """Write the pictures of all cards into ``_images``; what is missing is told, not written.

    A page on which a cell broke may lack its figure: its card gets an empty picture.

    Args:
        site: The folder of the built pages.
        cards: Each card with its page, a name below ``site``.
    """
    folder = site / "_images"
    for card, page in cards:
        folder.mkdir(exist_ok=True)
        text = (site / page).read_text(encoding="utf-8")
        figures = FIGURE.findall(text)
        found = IMAGE.findall("".join(figures[card.figure - 1 :][:1]))
        if not found and BROKEN in text:
            for theme in ("light", "dark"):
                empty = Image.new("RGBA", SIZE)
                empty.save(folder / picture_name(card.chapter, theme), "WEBP")
            continue
        if not found:
            yield f"the card of {card.chapter}: {page} has no image {card.figure}"
            continue
        light, *more = (fitted(opened(site / page, address), card) for address in found[:2])
        dark = more[0] if more else light if card.photo else inverted(light)
        for theme, image in (("light", light), ("dark", dark)):
            image.save(folder / picture_name(card.chapter, theme), "WEBP", quality=70, method=4)


def opened(page: Path, address: str) -> Image.Image:
    """The image behind a data address, or a path relative to the page."""
    if address.startswith("data:"):
        return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    return Image.open(page.parent / unquote(address.partition("?")[0]))


def fitted(image: Image.Image, card: Card) -> Image.Image:
    """The wanted part of an image, in the middle of a card; a clear ground stays clear."""
    image = image.convert("RGBA")
    left, top, right, bottom = (share / 100 for share in card.crop)
    w, h = image.size
    image = image.crop((round(w * left), round(h * top), round(w * right), round(h * bottom)))
    scale = min((SIZE[0] - 2 * MARGIN) / image.width, (SIZE[1] - 2 * MARGIN) / image.height)
    image = image.resize((round(image.width * scale), round(image.height * scale)))
    ground = image.getpixel((0, 0)) if not card.photo else (0, 0, 0, 0)
    whole = Image.new("RGBA", SIZE, ground)
    at = ((SIZE[0] - image.width) // 2, (SIZE[1] - image.height) // 2)
    whole.paste(image, at, image)
    return whole


def inverted(image: Image.Image) -> Image.Image:
    """Light for dark; the hues stay (in HSL, 1 - lightness), and black becomes the dark ground."""
    rgba = np.asarray(image).astype(int)
    rgb = rgba[..., :3]
    turned = rgb + 255 - rgb.max(-1, keepdims=True) - rgb.min(-1, keepdims=True)
    turned = GROUND + turned * (255 - GROUND) // 255
    return Image.fromarray(np.concatenate([turned, rgba[..., 3:]], -1).clip(0, 255).astype("uint8"))
