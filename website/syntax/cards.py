"""The cards of the front page: their lines, and the pictures cut from the chapters' own figures."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from PIL import Image

SIZE = (520, 292)  # pixels of a picture, twice as many as it is shown with
MARGIN = 20
FIGURE = re.compile(r'<figure class="vitbook-figure(?! vb-animation).*?</figure>', re.DOTALL)
BROKEN = "not-held-broken"  # website/syntax/cells/failures.py
IMAGE = re.compile(r'<img\b[^>]*?\bsrc="([^"]+)"[^>]*>')


@dataclass(frozen=True)
class Part:
    """A heading between the cards."""

    sign: str
    title: str
    words: str

    @property
    def caption(self) -> str:
        """What ``_toc.yml`` calls it; what stands before all parts has no name there."""
        return "" if self.sign == "0" else f"{self.sign} {self.title}"


@dataclass(frozen=True)
class Card:
    """A chapter. ``figure`` counts from 1. ``crop`` is left, top, right, bottom in per cent."""

    chapter: str  # as references call it
    question: str
    figure: int
    crop: tuple[int, ...] = (0, 0, 100, 100)
    photo: bool = False


def read_parts(lines: Sequence[str]) -> list[Part]:
    """Read the lines of a ``{chapter-cards}``.

    Raises:
        ValueError: A line is no part; the message holds the line.
    """
    parts = []
    for line in filter(str.strip, lines):
        match [one.strip() for one in line.split("|")]:
            case [sign, title, words]:
                parts.append(Part(sign, title, words))
            case _:
                raise ValueError(f"no part of the book (number | title | words): {line!r}")
    return parts


def read_card(chapter: str, line: object) -> Card:
    """Read the line ``card: question | figure | part of it`` of a chapter's front matter.

    Raises:
        ValueError: The line is missing, or is no card; the message holds the line.
    """
    try:
        question, figure, *rest = (one.strip() for one in str(line or "").split("|"))
        words = (rest[0] if rest else "").split()
        crop = tuple(int(word) for word in words if word != "photo") or (0, 0, 100, 100)
        if len(crop) == 4 and int(figure) > 0 and question.endswith("?"):
            return Card(chapter, question, int(figure), crop, "photo" in words)
    except ValueError:
        pass
    raise ValueError(
        f"the front page needs a line in the front matter of {chapter}, card: question? | which "
        f"of its figures | left top right bottom, in per cent (all): {line!r}"
    )


def question(chapter: str, line: object) -> str:
    """What a card asks; nothing where there is no card (``website/syntax/front.py`` says so)."""
    try:
        return read_card(chapter, line).question
    except ValueError:
        return ""


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
        if len(found) < 2:
            yield f"the card of {card.chapter}: {page} has no image {card.figure}"
            continue
        for theme, address in zip(("light", "dark"), found, strict=False):
            image = fitted(opened(site / page, address), card)
            image.save(folder / picture_name(card.chapter, theme), "WEBP", quality=70, method=4)


def opened(page: Path, address: str) -> Image.Image:
    """The image behind a path relative to the page."""
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
