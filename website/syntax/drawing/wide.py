"""The drawing from left to right, 1120 px wide."""

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
    in_lines,
    link,
    path,
    photograph,
    plus,
    rect,
    svg,
    text,
)

STREAM = 146  # the height at which the tokens run
WIDTH, HEIGHT = 1120, 486


def wide(address: Address, places: dict[str, Place], picture: str) -> str:
    """SVG of the drawing. A row with more links than there are makes it higher.

    Args:
        address: Where a chapter is.
        places: What each chapter says of its place, in the book's order.
        picture: The address of a square photograph.
    """

    def to(x: float, y: float, chapter: str, words: str | Sequence[str]) -> str:
        return link(x, y, chapter, words, address)

    attention, model, relatives, yours = (in_row(places, row) for row in ROWS)
    room = STEP * max(0, len(attention) - SEATS)
    beside, below = in_lines(relatives, 624, WIDTH), in_lines(yours, 0, 420)
    lines = [line for _, line, *_ in (*beside, *below)]
    high = HEIGHT + room + 30 * max(lines, default=0)
    parts = [
        to(0, 34, "patches", "cut into patches"),
        photograph(0, 72, 144, picture),
        text(0, 236, "an image", "m-small"),
        path(f"M152 {STREAM}h22", end="wide-tip"),
        path(f"M182 {STREAM - 42}l44 20v44l-44 20z", "m-shape"),
        text(204, STREAM + 4.5, "linear", "m-word", "middle"),
        to(178, 206, "patches", ["linear", "map"]),
        path(f"M234 {STREAM}h20", end="wide-tip"),
        *_tokens(262),
        to(262, 22, "classifier", "class token"),
        path("M272 45v12", "m-green"),
        to(300, 254, "positions", "+ positions"),
        path("M405 264h11v-18", "m-pink"),
        *_block(452, to, attention, room),
        path(f"M424 {STREAM}H940", "m-stream", "wide-flow"),
        plus(728, STREAM),
        plus(884, STREAM),
        answer(966, STREAM, "wide-tip"),
        text(1116, STREAM + 42, "“flower”", "m-text", "end"),
        to(966, 62, "classifier", ["head: one token", "answers"]),
        path("M966 234H1116", "m-rule"),
        text(966, 258, "with the whole model", "m-small"),
        *(to(966, 274 + min(32, 160 / len(model)) * at, *one) for at, one in enumerate(model)),
        path("M0 350H380", "m-rule"),
        text(0, 374, "before you open any part", "m-small"),
        to(0, 388, "preview", "the whole thing at work"),
        text(0, 436, "your turn", "m-small"),
        *(to(x, 450 + 30 * line, *one) for x, line, *one in below),
        path(f"M560 {402 + room}v44", "m-dashes", "wide-else"),
        text(424, 472 + room, "Something else here instead?", "m-strong"),
        *(to(x, 457 + room + 30 * line, *one) for x, line, *one in beside),
    ]
    return svg(WIDTH, high, "wide", "".join(parts))


def _tokens(x: float) -> list[str]:
    parts = []
    for at in range(10):
        y = 60 + (0 if at == 0 else 6) + 18 * at
        parts.append(cells(x, y, 7, 12, "m-class" if at == 0 else "m-token", at, False))
        parts.append(path(f"M{x + 104:g} {y + 6:g}h6m-3 -3v6", "m-thin"))
        parts.append(cells(x + 117, y, 3, 12, "m-position", at + 3, False))
    return parts


def _block(x: float, to: LinkTo, attention: list[tuple[str, str]], room: float) -> list[str]:
    return [
        rect(x + 12, 14, 452, 382 + room, "m-behind", 10),
        rect(x + 6, 20, 452, 382 + room, "m-behind", 10),
        rect(x, 26, 452, 376 + room, "m-block", 10),
        to(x + 14, 40, "block", "one block, L times"),
        text(x + 438, 55, "the tokens run straight through", "m-small", "end"),
        path(f"M{x + 36} {STREAM}v28", end="wide-tip"),
        box(x + 8, 178, 56, 26, "norm", "m-norm"),
        path(f"M{x + 36} 204v22", end="wide-tip"),
        rect(x + 20, 224, 250, 160 + room, "m-attention", 8),
        rect(x + 14, 230, 250, 160 + room, "m-attention", 8),
        text(x + 26, 252, "attention", "m-orange"),
        attention_map(x + 26, 266, 13),
        text(x + 26, 376, "queries, keys", "m-small"),
        *(to(x + 132, 242 + STEP * at, *one) for at, one in enumerate(attention)),
        path(f"M{x + 270} 310H{x + 276}V{STREAM + 14}", end="wide-tip"),
        path(f"M{x + 352} {STREAM}v28", end="wide-tip"),
        box(x + 324, 178, 56, 26, "norm", "m-norm"),
        path(f"M{x + 352} 204v22", end="wide-tip"),
        rect(x + 296, 230, 112, 92, "m-mlp", 8),
        text(x + 308, 252, "MLP", "m-strong"),
        path(f"M{x + 324} 278l28 -14l28 14v16l-28 14l-28 -14zm28 -14v44", "m-shape"),
        to(x + 296, 336, "weight_sharing", ["one set of", "weights for all"]),
        path(f"M{x + 408} 276H{x + 432}V{STREAM + 14}", end="wide-tip"),
    ]
