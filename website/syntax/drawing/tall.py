"""The drawing from top to bottom, 360 px wide: the same parts and links, for a phone."""

from collections.abc import Sequence

from .places import ROWS, Place, in_row
from .shapes import (
    SEATS,
    STEP,
    Address,
    LinkTo,
    answer,
    attention_map,
    box,
    cells,
    link,
    path,
    photograph,
    plus,
    rect,
    svg,
    text,
)

STREAM = 26  # where the tokens run, from above
WIDTH = 360


def tall(address: Address, places: dict[str, Place], picture: str) -> str:
    """SVG of the drawing; arguments as for ``wide``."""

    def to(x: float, y: float, chapter: str, words: str | Sequence[str]) -> str:
        return link(x, y, chapter, words, address)

    attention, model, relatives, yours = (in_row(places, row) for row in ROWS)
    room = STEP * max(0, len(attention) - SEATS)
    y1 = 1068 + room  # the rule below the answer
    y2 = y1 + 112 + _more(model)
    y3 = y2 + 118 + _more(relatives)
    parts = [
        photograph(0, 4, 120, picture),
        to(150, 20, "patches", "cut into patches"),
        text(178, 58, "an image, in nine squares", "m-small"),
        path("M60 130v16", end="tall-tip"),
        path("M14 154h92l-16 34h-60z", "m-shape"),
        text(60, 176, "linear", "m-word", "middle"),
        to(150, 160, "patches", "linear map"),
        path("M60 194v16", end="tall-tip"),
        *(
            cells(14 * at + (6 if at else 0), 218, 6, 12, "m-token" if at else "m-class", at, True)
            for at in range(9)
        ),
        *(
            cells(14 * at + (6 if at else 0), 322, 3, 12, "m-position", at + 3, True)
            for at in range(9)
        ),
        path("M62 307h8m-4 -4v8", "m-thin"),
        to(150, 222, "classifier", "class token"),
        text(178, 260, "one token more", "m-small"),
        to(150, 330, "positions", "+ positions"),
        *_block(to, attention, room),
        path(f"M{STREAM} 372V{964 + room}", "m-stream", "tall-flow"),
        plus(STREAM, 694 + room),
        plus(STREAM, 886 + room),
        answer(13, y1 - 64, "tall-tip"),
        text(172, y1 - 59, "“flower”"),
        to(0, y1 - 34, "classifier", "head: one token answers"),
        path(f"M0 {y1}H356", "m-rule"),
        text(0, y1 + 22, "with the whole model", "m-small"),
        *_pairs(model, y1 + 32, to),
        text(0, y2, "something else in place of attention", "m-small m-else-text"),
        *_pairs(relatives, y2 + 10, to),
        to(0, y3 - 46, "preview", "the whole thing at work"),
        text(0, y3, "your turn", "m-small"),
        *_pairs(yours, y3 + 10, to),
    ]
    return svg(WIDTH, y3 + 34 + 30 * (len(yours) - 1) // 2, "tall", "".join(parts))


def _pairs(row: list[tuple[str, str]], y: float, to: LinkTo) -> list[str]:
    return [to(180 * (at % 2), y + 30 * (at // 2), *one) for at, one in enumerate(row)]


def _more(row: list[tuple[str, str]]) -> int:
    """The height that a row of pairs needs beside that of two pairs."""
    return 30 * ((len(row) + 1) // 2 - 2)


def _block(to: LinkTo, attention: list[tuple[str, str]], room: int) -> list[str]:
    low = 694 + room  # where the attention's result is added
    return [
        rect(12, 394, 344, 508 + room, "m-behind", 10),
        rect(6, 400, 344, 508 + room, "m-behind", 10),
        rect(0, 406, 344, 508 + room, "m-block", 10),
        to(52, 420, "block", "one block, L times"),
        path(f"M{STREAM} 462H190v12", end="tall-tip"),
        box(162, 478, 56, 26, "norm", "m-norm"),
        path("M190 504v12", end="tall-tip"),
        rect(64, 514, 270, 152 + room, "m-attention", 8),
        rect(58, 520, 270, 152 + room, "m-attention", 8),
        text(72, 544, "attention", "m-orange"),
        attention_map(72, 556, 12),
        text(72, 664, "queries, keys", "m-small"),
        *(to(174, 528 + STEP * at, *one) for at, one in enumerate(attention)),
        path(f"M190 {low - 22}v22H{STREAM + 14}", end="tall-tip"),
        path(f"M{STREAM} {low + 36}H190v12", end="tall-tip"),
        box(162, low + 52, 56, 26, "norm", "m-norm"),
        path(f"M190 {low + 78}v12", end="tall-tip"),
        rect(58, low + 94, 270, 76, "m-mlp", 8),
        text(72, low + 118, "MLP", "m-strong"),
        path(f"M74 {low + 134}l14 -8l14 8v12l-14 8l-14 -8zm14 -8v28", "m-shape"),
        to(130, low + 106, "weight_sharing", "one set of weights"),
        text(158, low + 148, "for every token", "m-small"),
        path(f"M190 {low + 170}v22H{STREAM + 14}", end="tall-tip"),
    ]
