"""Pictures of a test that are nearly ones that are learned from: saved anew, or of one film.

As a copy counts what was saved anew, scaled, mirrored or turned by right angles; and, where most
pictures of a part are such, six at least, what was changed a little (its brightness, contrast,
colours, noise, a crop of some 5 %): a single one that is 5 % brighter is not told. Of small
pictures a JPEG is so coarse that some copies are missed. What was made grey, much brighter or
darker, turned by less, framed or cropped by more is another picture here: of such only names may
tell.
"""

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import PurePosixPath

import torch
from torch import Tensor

from vitbook.data.folder import FolderImages
from vitbook.data.folder_names import printed

CELLS = 8  # of a side, in which colours are averaged
CHUNK = 256
ASKED = 1000  # pictures that are asked about, at most
FIFTH = 5  # neighbours, of which the first is a copy where it is far nearer than the last
# A copy is as near in parts of the distance to the fifth, and of its contrast: so near was no share
# of 570 tests of 4 to 200 pictures of CIFAR-10, MNIST and Fashion-MNIST. Of many, worse are seen.
NEAR, CONTRAST, SHARE = 0.25, 0.1, 0.02
WORSE, MOST = 0.4, 0.5
FRAMES, PAIRS = 0.5, 8  # of the distance to any other, and how many neighbours show it


def near_ones(learned: FolderImages, judged: FolderImages, part: str = "test") -> list[str]:
    """Sentences where a part holds copies, or neighbours by name, of what is learned from."""
    known, asked = _cells(learned.images), _cells(judged.images)
    return [
        *_copies(learned.files, judged.files, known, asked, part),
        *_frames(learned, judged, known, asked, part),
    ]


def _cells(images: Tensor) -> Tensor:
    """Mean colours in the cells of pictures (n, C, S, S), as (n, C * cells)."""
    pool = torch.nn.functional.adaptive_avg_pool2d
    return torch.cat([pool(x.float(), CELLS).flatten(1) for x in images.split(CHUNK)])


def _copies(
    learned: tuple[str, ...], judged: tuple[str, ...], known: Tensor, asked: Tensor, part: str
) -> list[str]:
    rows = torch.arange(0, len(asked), -(-len(asked) // ASKED))
    if len(known) < FIFTH:
        return []
    square = known.unflatten(1, (-1, CELLS, CELLS))
    turned = (torch.rot90(x, k, (2, 3)) for x in (square, square.flip(3)) for k in range(4))
    views = [_nearest(asked[rows], one.flatten(1)) for one in turned]
    distances, neighbours = (torch.stack(one) for one in zip(*views, strict=True))
    row = torch.arange(len(rows))
    view = distances[:, :, 0].argmin(dim=0)
    first, *_, fifth = distances[view, row].T
    colours = asked[rows].unflatten(1, (-1, CELLS * CELLS))
    contrast = (colours - colours.mean(dim=2, keepdim=True)).flatten(1).norm(dim=1)
    surely = (first < NEAR * fifth) & (first < CONTRAST * contrast)
    for near, least in ((surely, SHARE), (first < WORSE * fifth, max(MOST, FIFTH / len(rows)))):
        copies = near.nonzero().flatten().tolist()
        if len(copies) > least * len(rows):
            one = printed(judged[rows[copies[0]]])
            other = printed(learned[neighbours[view, row][copies[0], 0]])
            some = "" if len(copies) == len(rows) else "At least "
            return [
                f"{some}{len(copies)} of {len(rows)} pictures of the {part} look like one that is "
                f"learned from ({one} like {other}): "
                "copies that were saved anew, mirrored, turned or at another size, test nothing."
            ]
    return []


def _nearest(asked: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """The distances to the nearest of what is known, and which these are, each (n, FIFTH)."""
    found = [torch.cdist(some, known).topk(FIFTH, largest=False) for some in asked.split(CHUNK)]
    return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


def _frames(
    learned: FolderImages, judged: FolderImages, known: Tensor, asked: Tensor, part: str
) -> list[str]:
    files, cells = learned.files + judged.files, torch.cat([known, asked])
    films: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for row, label in enumerate([*learned.labels.tolist(), *judged.labels.tolist()]):
        stem = PurePosixPath(files[row]).stem
        if number := re.fullmatch(r"(.*?)([0-9]+)\D*", stem):
            films[label, number[1]].append((int(number[2]), row))
    for frames in films.values():
        rows = [row for _, row in sorted(frames)]
        pairs = torch.tensor(list(pairwise(rows)))[:: -(-len(rows) // ASKED)]
        if len(pairs) < PAIRS or min(rows) >= len(known) or max(rows) < len(known):
            continue
        one, other = cells[pairs.T]
        if (one - other).norm(dim=1).median() < FRAMES * torch.cdist(one, other).median():
            return [
                f"{printed(files[rows[0]])} and {printed(files[rows[1]])} look alike, as others do "
                "that follow one another by name, of which some are learned from and others "
                f"in the {part}: if they are of one film, or of one thing, it is in both."
            ]
    return []
