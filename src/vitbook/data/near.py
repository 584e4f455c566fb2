"""Pictures that are nearly ones of another part or class: saved anew, or of one film.

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
# A copy is as near in parts of the distance to the fifth, and of its contrast: in 612 draws of 20
# to 4,000 pictures of CIFAR-10, MNIST and Fashion-MNIST 11 were, ten of them the same frog, horse
# or garment, often mirrored, and a 1 of MNIST like another one. Of many, worse are seen.
NEAR, CONTRAST = 0.25, 0.1
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


def near_labels(learned: FolderImages) -> list[str]:
    """A sentence where pictures that are learned from look like copies of ones of other classes."""
    known, labels = _cells(learned.images), learned.labels
    rows = _some(known)
    first, fifth, neighbours = _nearest(known[rows], known, labels[rows][:, None] == labels)
    copies = _surely(known[rows], first, fifth).nonzero().flatten().tolist()
    if not copies:
        return []
    one, other = (learned.files[at[copies[0]]] for at in (rows, neighbours))
    return [
        f"At least {len(copies)} of {len(rows)} pictures that are learned from look like one of "
        f"another class ({printed(one)} like {printed(other)}): which class is right?"
    ]


def _copies(
    learned: tuple[str, ...], judged: tuple[str, ...], known: Tensor, asked: Tensor, part: str
) -> list[str]:
    rows = _some(asked)
    first, fifth, neighbours = _nearest(asked[rows], known)
    surely = _surely(asked[rows], first, fifth)
    for near, least in ((first < WORSE * fifth, max(MOST * len(rows), FIFTH)), (surely, 0)):
        copies = near.nonzero().flatten().tolist()
        if len(copies) > least:
            one = printed(judged[rows[copies[0]]])
            other = printed(learned[neighbours[copies[0]]])
            some = "" if len(copies) == len(rows) else "At least "
            return [
                f"{some}{len(copies)} of {len(rows)} pictures of the {part} look like one that is "
                f"learned from ({one} like {other}): "
                "copies that were saved anew, mirrored, turned or at another size, test nothing."
            ]
    return []


def _some(cells: Tensor) -> Tensor:
    return torch.arange(0, len(cells), -(-len(cells) // ASKED))


def _surely(asked: Tensor, first: Tensor, fifth: Tensor) -> Tensor:
    """Which pictures are copies, one by one, of the nearest."""
    colours = asked.unflatten(1, (-1, CELLS * CELLS))
    contrast = (colours - colours.mean(dim=2, keepdim=True)).flatten(1).norm(dim=1)
    return (first < NEAR * fifth) & (first < CONTRAST * contrast)


def _nearest(
    asked: Tensor, known: Tensor, but: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """How far the nearest and the fifth of what is known are, and which is the nearest (n,).

    The pictures as they are, mirrored and turned, whichever is nearest; ``but`` are not compared.
    """
    square, found = asked.unflatten(1, (-1, CELLS, CELLS)), []
    but = torch.zeros(len(asked), len(known), dtype=torch.bool) if but is None else but
    if len(known) < FIFTH:
        known, but = known.new_zeros(FIFTH, known.shape[1]), but.new_ones(len(asked), FIFTH)
    for view in (torch.rot90(x, k, (2, 3)) for x in (square, square.flip(3)) for k in range(4)):
        parts = zip(view.flatten(1).split(CHUNK), but.split(CHUNK), strict=True)
        far = [torch.cdist(x, known).masked_fill(no, torch.inf) for x, no in parts]
        nearest = [x.topk(FIFTH, largest=False) for x in far]
        found.append([torch.cat([x[i] for x in nearest]) for i in (0, 1)])
    distances, neighbours = (torch.stack(one) for one in zip(*found, strict=True))
    row, view = torch.arange(len(asked)), distances[:, :, 0].argmin(dim=0)
    first, *_, fifth = distances[view, row].T
    return first, fifth.where(fifth.isfinite(), 0), neighbours[view, row, 0]


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
