"""Shapes of the drawing, as strings of SVG; colours are classes of _static/map.css."""

import html
from collections.abc import Callable, Sequence
from typing import Protocol

# chapter -> its number and its page; None where there is none
Address = Callable[[str], tuple[str, str] | None]
LETTER = 7.1  # about the width of a letter of 13.5 px
TILE = 20
GAP = 12  # between two links of a line
STEP, SEATS = 24, 6  # from one link about attention to the next, and for how many its box is made

# Lightness of the cells of a token, in fifths; the same few numbers again and again.
CELLS = (2, 4, 3, 1, 4, 3, 5, 2, 4, 4, 2, 5, 3, 1, 4, 2, 5, 3)
MAP = (0, 1, 4, 1, 0, 1, 2, 0, 3, 1, 0, 1, 1, 0, 5, 4, 0, 2, 1, 0, 1, 5, 0, 1, 1)


class LinkTo(Protocol):
    """``link`` with the address of its chapter known."""

    def __call__(self, x: float, y: float, chapter: str, words: str | Sequence[str]) -> str: ...


def rect(x: float, y: float, w: float, h: float, name: str, rx: float = 0) -> str:
    return f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{rx:g}"/>'


def path(d: str, name: str = "m-line", end: str = "") -> str:
    """``end`` is the id of a marker."""
    marker = f' marker-end="url(#{end})"' if end else ""
    return f'<path class="{name}" d="{d}"{marker}/>'


def text(x: float, y: float, words: str, name: str = "m-text", anchor: str = "start") -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text class="{name}" {place}>{html.escape(words)}</text>'


def box(x: float, y: float, w: float, h: float, words: str, name: str) -> str:
    """A small box with a word in its middle."""
    return rect(x, y, w, h, name, 4) + text(x + w / 2, y + h / 2 + 4.5, words, "m-word", "middle")


def link(x: float, y: float, chapter: str, lines: str | Sequence[str], address: Address) -> str:
    """A numbered tile and words, which lead to a chapter; without a page they are only words."""
    lines = [lines] if isinstance(lines, str) else list(lines)
    width = width_of(*lines)
    words = "".join(
        text(x + TILE + 8, y + 15 + 17 * at, line, "m-link") for at, line in enumerate(lines)
    )
    found = address(chapter)
    if found is None:
        return f"<g>{words}</g>"
    number, uri = found
    inside = (
        rect(x - 3, y - 3, width, 26 + 17 * (len(lines) - 1), "m-target", 5)
        + rect(x, y, TILE, TILE, "m-tile", 3)
        + text(x + TILE / 2, y + 14.5, number, "m-number", "middle")
        + words
    )
    said = f"Chapter {number}: {' '.join(lines)}"
    return f'<a href="{html.escape(uri)}" aria-label="{html.escape(said)}">{inside}</a>'


def width_of(*lines: str) -> float:
    """How wide a link with these words is, with its tile and some air."""
    return TILE + 12 + LETTER * max(map(len, lines))


def in_lines(
    links: Sequence[tuple[str, str]], left: float, right: float
) -> list[tuple[float, int, str, str]]:
    """Links beside each other, and on a new line where one ends: x, line, chapter, words."""
    x, line, placed = left, 0, []
    for chapter, words in links:
        if x > left and x + width_of(words) > right:
            x, line = left, line + 1
        placed.append((x, line, chapter, words))
        x += width_of(words) + GAP
    return placed


def cells(x: float, y: float, count: int, side: float, shade: str, seed: int, down: bool) -> str:
    """A row, or a column, of the numbers of a token."""
    step = side + 2
    return "".join(
        rect(
            x + (0 if down else step * at),
            y + (step * at if down else 0),
            side,
            side,
            f"{shade} m-s{CELLS[(7 * seed + at) % len(CELLS)]}",
            1.5,
        )
        for at in range(count)
    )


def photograph(x: float, y: float, side: float, picture: str) -> str:
    """A picture, cut into nine patches by the colour of the page."""
    third = side / 3
    cuts = "".join(
        path(f"M{x + third * at:g} {y:g}v{side:g}M{x:g} {y + third * at:g}h{side:g}", "m-cut")
        for at in (1, 2)
    )
    image = f'<image href="{picture}" x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}"/>'
    return image + cuts


def plus(x: float, y: float) -> str:
    return (
        f'<circle class="m-plus" cx="{x:g}" cy="{y:g}" r="10"/>'
        f'<path class="m-line" d="M{x - 5:g} {y:g}h10M{x:g} {y - 5:g}v10"/>'
    )


def attention_map(x: float, y: float, side: float) -> str:
    """Five queries, five keys, and how much each takes of each."""
    step, parts = side + 2, []
    for row in range(5):
        parts.append(rect(x, y + step * row, side, side, "m-query", 1))
        for column in range(5):
            shade = f"m-heat m-s{MAP[5 * row + column]}"
            parts.append(rect(x + step * (column + 1) + 3, y + step * row, side, side, shade, 1))
    for column in range(5):
        parts.append(rect(x + step * (column + 1) + 3, y + 5 * step + 3, side, side, "m-key", 1))
    return "".join(parts)


def answer(x: float, y: float, name: str) -> str:
    """The token that answers, the linear map, three bars; 150 wide, around ``y``."""
    bars = "".join(
        rect(x + 98, y - 22 + 16 * at, 52, 12, "m-soft", 2)
        + rect(x + 98, y - 22 + 16 * at, width, 12, "m-bar", 2)
        for at, width in enumerate((44, 5, 3))
    )
    return (
        rect(x, y - 18, 26, 36, "m-answer", 4)
        + f'<circle class="m-dot" cx="{x + 13:g}" cy="{y:g}" r="4"/>'
        + path(f"M{x + 30:g} {y:g}h10", end=name)
        + path(f"M{x + 48:g} {y - 26:g}l24 12v28l-24 12z", "m-shape")
        + path(f"M{x + 76:g} {y:g}h10", end=name)
        + bars
    )


def svg(width: int, height: int, kind: str, inside: str) -> str:
    """The whole drawing; its links are in the order of the data."""
    heads = "".join(
        f'<marker id="{kind}-{name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="{size}" '
        f'markerHeight="{size}" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="m-{name}" d="M0 0L10 5L0 10z"/></marker>'
        for name, size in (("tip", 9), ("flow", 20), ("else", 9))
    )
    return (
        f'<svg class="vit-map-{kind}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="group" aria-label="A whole Vision Transformer" '
        f'aria-describedby="vit-map-words"><defs>{heads}</defs>{inside}</svg>'
    )
