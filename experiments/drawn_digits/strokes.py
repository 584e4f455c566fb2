"""From the strokes of a pen to an image as the digit model knows them: (28, 28), 0 paper, 1 ink.

The live figure does the same in the page, step by step, so every step is plain arithmetic.
A drawing is moved and scaled like MNIST's digits, whose ink fills a box of 20 pixels and has its
centre of mass in the middle (LeCun et al. 1998); the pen keeps its width, as strokes have no pixels
that would grow with them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

SIDE, BOX = 28, 20  # pixels: of the image, of the ink's longer side
PEN = 0.08  # width of the pen, in sides of the board
LARGEST = 6.0  # how many times a drawing may grow, so that a dot stays a dot

Strokes = Sequence[Sequence[Sequence[float]]]


def drawn(strokes: Strokes, width: float = PEN) -> Tensor:
    """The image of a drawing, (28, 28) in 0 ... 1, float64.

    Args:
        strokes: Each a list of points (x, y), x to the right and y down, in sides of the board.
        width: Of the pen, in sides of the board.

    Raises:
        ValueError: A stroke is no list of points, or the pen has no width.
    """
    if not 0 < width < 1:
        raise ValueError(f"width must lie between 0 and 1, got {width}")
    pieces = [points(stroke) for stroke in strokes]
    if not pieces:
        return torch.zeros(SIDE, SIDE, dtype=torch.float64)
    return inked(segments(pieces), width)


def points(stroke: Sequence[Sequence[float]]) -> Tensor:
    """The points of one stroke, (n, 2), float64."""
    if not len(stroke) or any(len(point) != 2 for point in stroke):
        raise ValueError(f"a stroke must be a list of points (x, y), got {stroke!r:.80}")
    return torch.as_tensor(stroke, dtype=torch.float64)


def segments(pieces: Sequence[Tensor]) -> Tensor:
    """Both ends of the lines between neighbouring points, (n, 2, 2); a lone point is a line."""
    pairs = [(p[:-1], p[1:]) if len(p) > 1 else (p, p) for p in pieces]
    return torch.cat([torch.stack(pair, dim=1) for pair in pairs])


def inked(lines: Tensor, width: float) -> Tensor:
    """The image of some lines (n, 2, 2) in sides of the board, placed and scaled."""
    pen = SIDE * width
    ends = placed(lines, pen)
    (x, y), (across, down) = ends[:, 0].T, (ends[:, 1] - ends[:, 0]).T  # (n,) each
    middle = torch.arange(SIDE, dtype=torch.float64)[:, None] + 0.5  # (28, 1), of the pixels
    right, below = (middle - x)[None], (middle - y)[:, None]  # (1, 28, n), (28, 1, n)
    length = (across**2 + down**2).clamp(min=1e-12)
    share = ((right * across + below * down) / length).clamp(0, 1)  # of the way along each line
    squares = (right - share * across) ** 2 + (below - share * down) ** 2  # (28, 28, n)
    return (0.5 + pen / 2 - squares.amin(-1).sqrt()).clamp(0, 1)


def placed(lines: Tensor, pen: float) -> Tensor:
    """Lines in sides of the board as lines in pixels: one size, the ink's centre in the middle.

    Args:
        lines: (n, 2, 2): line, end, (x, y).
        pen: Its width in pixels.
    """
    low, high = lines.amin((0, 1)), lines.amax((0, 1))  # (2,)
    most = LARGEST * SIDE
    scale = min((BOX - pen) / max((high - low).max().item(), 1e-9), most)
    lengths = (lines[:, 1] - lines[:, 0]).square().sum(-1).sqrt()  # (n,)
    weights = lengths if lengths.sum() > 0 else torch.ones_like(lengths)
    centre = (weights[:, None] * lines.mean(1)).sum(0) / weights.sum()  # (2,)
    edge = SIDE / 2 - pen / 2  # the ink must not leave the image
    shift = torch.maximum(torch.minimum(-centre * scale, edge - high * scale), -edge - low * scale)
    return lines * scale + shift + SIDE / 2
