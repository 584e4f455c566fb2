"""The drawing from top to bottom, 360 px wide: the same parts and links, for a phone."""

from __future__ import annotations

from collections.abc import Sequence

from .places import ATTENTION, LABELS, MODEL, RELATIVES, YOURS
from .shapes import (
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
WIDTH, HEIGHT = 360, 1332


def tall(address: Address, picture: str) -> str:
    """SVG of the drawing; arguments as for ``wide``."""

    def to(
        x: float, y: float, chapter: str, words: str | Sequence[str] = "", more: str = ""
    ) -> str:
        return link(x, y, chapter, words or LABELS[chapter], address, more)

    parts = [
        photograph(0, 4, 120, picture),
        to(150, 20, "patches"),
        text(178, 58, "an image, in nine squares", "m-small"),
        path("M60 130v16", end="tall-tip"),
        path("M14 154h92l-16 34h-60z", "m-shape"),
        text(60, 176, "linear", "m-word", "middle"),
        to(150, 160, "patches", "linear map"),
        path("M60 194v16", end="tall-tip"),
        *(
            cells(
                14 * at + (6 if at else 0),
                218,
                6,
                12,
                "m-token" if at else "m-class",
                at,
                True,
            )
            for at in range(9)
        ),
        *(
            cells(14 * at + (6 if at else 0), 322, 3, 12, "m-position", at + 3, True)
            for at in range(9)
        ),
        path("M62 307h8m-4 -4v8", "m-thin"),
        to(150, 222, "classifier", "class token"),
        text(178, 260, "one token more", "m-small"),
        to(150, 330, "positions"),
        *_block(to),
        path(f"M{STREAM} 372V964", "m-stream", "tall-flow"),
        plus(STREAM, 694),
        plus(STREAM, 886),
        answer(13, 1004, "tall-tip"),
        text(172, 1009, "“flower”"),
        to(0, 1034, "classifier"),
        path("M0 1068H356", "m-rule"),
        text(0, 1090, "with the whole model", "m-small"),
        *_pairs(MODEL, 1100, to),
        text(0, 1180, "something else in place of attention", "m-small m-else-text"),
        *_pairs(RELATIVES, 1190, to),
        to(0, 1252, "preview"),
        text(0, 1298, "your turn", "m-small"),
        *_pairs(YOURS, 1308, to),
    ]
    return svg(WIDTH, HEIGHT, "tall", "".join(parts))


def _pairs(chapters: tuple[str, ...], y: float, to: LinkTo) -> list[str]:
    return [to(180 * (at % 2), y + 30 * (at // 2), n) for at, n in enumerate(chapters)]


def _block(to: LinkTo) -> list[str]:
    return [
        rect(12, 394, 344, 508, "m-behind", 10),
        rect(6, 400, 344, 508, "m-behind", 10),
        rect(0, 406, 344, 508, "m-block", 10),
        to(52, 420, "block"),
        path(f"M{STREAM} 462H190v12", end="tall-tip"),
        box(162, 478, 56, 26, "norm", "m-norm"),
        path("M190 504v12", end="tall-tip"),
        rect(64, 514, 270, 152, "m-attention", 8),
        rect(58, 520, 270, 152, "m-attention", 8),
        text(72, 544, "attention", "m-orange"),
        attention_map(72, 556, 12),
        text(72, 664, "queries, keys", "m-small"),
        *(to(174, 528 + 24 * at, n) for at, n in enumerate(ATTENTION)),
        path(f"M190 672v22H{STREAM + 14}", end="tall-tip"),
        path(f"M{STREAM} 730H190v12", end="tall-tip"),
        box(162, 746, 56, 26, "norm", "m-norm"),
        path("M190 772v12", end="tall-tip"),
        rect(58, 788, 270, 76, "m-mlp", 8),
        text(72, 812, "MLP", "m-strong"),
        path("M74 828l14 -8l14 8v12l-14 8l-14 -8zm14 -8v28", "m-shape"),
        to(130, 800, "weight_sharing"),
        text(158, 842, "for every token", "m-small"),
        path(f"M190 864v22H{STREAM + 14}", end="tall-tip"),
    ]
