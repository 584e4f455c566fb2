"""Drawings of a pen, made up: digits of many shapes, and letters, scribbles and marks.

They teach the model what people draw on a board; who draws the test of the live figure has never
seen them. Everything random comes from the seed of the part.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor

from experiments.drawn_digits.pen_shapes import DIGITS, LETTERS, MARKS
from experiments.drawn_digits.strokes import SIDE, inked, points, segments
from vitbook.data import ImageSet

NO_DIGIT = 10  # the label of what is no digit; the model has no such answer
KINDS = ("letters", "scribbles", "marks")
SEEDS = {"train": 1, "validation": 2}
PER_PIECE = 6  # points on a smooth line between two that it goes through
JITTER, TREMOR = 0.03, 0.006  # standard deviations: of the points of a shape, of those of the line
TURN, SLANT, NARROW = math.radians(12), 0.3, 0.35  # largest: angle, shear, log of width over height
WIDTHS = (0.06, 0.125)  # of the pen, in sides of the board
OPEN = 0.08  # the largest share of a stroke that is missing at each of its ends


@lru_cache(maxsize=16)
def pen_digits(part: str, count: int) -> ImageSet:
    """Images (count, 1, 28, 28) in 0 ... 1 and labels: each digit as often as the others.

    Args:
        part: "train" or "validation"; they differ in their seeds only.
        count: How many.
    """
    draw = Generator().manual_seed(SEEDS[part])
    labels = [n % len(DIGITS) for n in range(count)]
    images = [drawing(_any(DIGITS[label], draw), draw) for label in labels]
    return ImageSet(_batch(images), torch.tensor(labels))


@lru_cache(maxsize=16)
def pen_others(part: str, kind: str, count: int) -> ImageSet:
    """Images of what is no digit, all labelled NO_DIGIT.

    Args:
        part: "train" or "validation"; these have letters of their own.
        kind: One of KINDS.
        count: How many.
    """
    draw = Generator().manual_seed(SEEDS[part] + 10 * (1 + KINDS.index(kind)))
    shapes = list((LETTERS[part] if kind == "letters" else MARKS).values())
    images = []
    for _ in range(count):
        pieces = [_scribble(draw)] if kind == "scribbles" else drawing(_any(shapes, draw), draw)
        images.append(pieces)
    return ImageSet(_batch(images), torch.full((count,), NO_DIGIT))


def pen_letters(shape: list[str], count: int, seed: int) -> Tensor:
    """Images (count, 1, 28, 28) of one shape, drawn anew each time."""
    draw = Generator().manual_seed(seed)
    return _batch([drawing(shape, draw) for _ in range(count)])


def drawing(shape: list[str], draw: Generator) -> list[Tensor]:
    """The strokes of a shape as one person might draw them once, each (n, 2)."""
    angle, slant, narrow = _even(draw, TURN), _even(draw, SLANT), math.exp(_even(draw, NARROW))
    turned = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    leaned = torch.tensor([[narrow, slant], [0.0, 1.0]])
    matrix = (turned @ leaned).double()  # on columns (x, y)
    return [(_line(stroke, draw) - 0.5) @ matrix.T + 0.5 for stroke in shape]


def _line(stroke: str, draw: Generator) -> Tensor:
    """The points of a stroke (n, 2), smooth between its corners, a little shaky."""
    texts = [piece.split() for piece in stroke.split("/")]
    through = [points([tuple(map(float, p.split(","))) for p in piece]) / 100 for piece in texts]
    through = [piece + JITTER * _normal(piece.shape, draw) for piece in through]
    for i in range(1, len(through)):
        through[i] = torch.cat([through[i - 1][-1:], through[i]])  # a corner belongs to both
    line = torch.cat([smooth(piece) for piece in through])
    line = line + TREMOR * _normal(line.shape, draw)
    ends = (OPEN * len(line) * torch.rand(2, generator=draw, dtype=torch.float64)).int().tolist()
    return line[ends[0] : len(line) - ends[1]]


def smooth(through: Tensor) -> Tensor:
    """A curve through points (n, 2), as many points more between them: Catmull and Rom 1974."""
    if len(through) < 3:
        return through
    before = torch.cat([through[:1], through[:-2]])
    after = torch.cat([through[2:], through[-1:]])
    start, end = through[:-1], through[1:]
    leaves, arrives = (end - before) / 2, (after - start) / 2  # slopes at both ends
    t = torch.linspace(0, 1, PER_PIECE + 1, dtype=torch.float64)[:-1, None, None]
    curve = (
        (2 * t**3 - 3 * t**2 + 1) * start
        + (t**3 - 2 * t**2 + t) * leaves
        + (3 * t**2 - 2 * t**3) * end
        + (t**3 - t**2) * arrives
    )  # (PER_PIECE, n - 1, 2)
    return torch.cat([curve.transpose(0, 1).reshape(-1, 2), through[-1:]])


def _scribble(draw: Generator) -> Tensor:
    """One long line: through random places, to and fro, or round and round."""
    turns = 6 + int(15 * torch.rand((), generator=draw))
    kind = int(3 * torch.rand((), generator=draw))
    share = torch.linspace(0, 1, turns, dtype=torch.float64)
    if kind == 0:
        through = torch.rand(turns, 2, generator=draw, dtype=torch.float64)
    elif kind == 1:
        side = (torch.arange(turns) % 2).double()
        through = torch.stack([share, side], dim=1) + 0.08 * _normal((turns, 2), draw)
    else:
        angle = 2 * math.pi * share * turns / 5
        out = torch.stack([angle.cos(), angle.sin()], dim=1)
        through = 0.5 + (0.1 + 0.4 * share[:, None]) * out + 0.03 * _normal((turns, 2), draw)
    line = smooth(through)
    turn = math.pi * _even(draw, 1.0)
    cos, sin = math.cos(turn), math.sin(turn)
    return (line - 0.5) @ torch.tensor([[cos, sin], [-sin, cos]]).double() + 0.5


def _batch(drawings: list[list[Tensor]]) -> Tensor:
    """(n, 1, 28, 28); the pen's width changes from one to the next, evenly over WIDTHS."""
    low, high = WIDTHS
    widths = [low + (high - low) * (n * 0.618034 % 1) for n in range(len(drawings))]
    images = [inked(segments(p), w) for p, w in zip(drawings, widths, strict=True)]
    return torch.stack(images).view(-1, 1, SIDE, SIDE).float()


def _any(shapes: list, draw: Generator) -> Any:
    return shapes[int(len(shapes) * torch.rand((), generator=draw, dtype=torch.float64))]


def _even(draw: Generator, largest: float) -> float:
    return largest * (2 * torch.rand((), generator=draw, dtype=torch.float64).item() - 1)


def _normal(shape: Sequence[int], draw: Generator) -> Tensor:
    return torch.randn(tuple(shape), generator=draw, dtype=torch.float64)
