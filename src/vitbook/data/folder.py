"""One's own pictures: a folder for each class."""

from collections import defaultdict
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from vitbook import require
from vitbook.data.pictures import PictureError, read_picture
from vitbook.data.splits import PARTS

ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
SHARE = 0.2  # of a class for the test; of the rest as much for the validation
READY = {"train": ("train",), "validation": ("validation", "val", "valid"), "test": ("test",)}
SHOWN = 3  # files that a note names


class FolderImages(NamedTuple):
    """One part of a folder of pictures.

    Args:
        images: uint8 (n, C, S, S).
        labels: Class numbers (n,), places in ``classes``.
        classes: The names of all classes, in their order.
        files: Where each image comes from, as a path below the folder.
        notes: A sentence for each kind of picture that was left out or changed.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    files: tuple[str, ...]
    notes: tuple[str, ...]


def load_folder(
    root: str | Path,
    part: str = "trainval",
    *,
    size: int,
    channels: int = 3,
    progress: bool | None = None,
) -> FolderImages:
    """Read a folder that holds one folder of pictures for each class.

    The parts are always the same for the same files, wherever they lie and whatever they are
    called: a file's place is decided by a hash of what is in it. A fifth of each class is for the
    test, a fifth of the rest for the validation. If the folder holds ``train``, ``test`` and
    perhaps ``val`` with the classes below, these are the parts instead.

    Args:
        root: The folder.
        part: "train", "validation", "trainval" (both) or "test".
        size: S: the shorter side of each picture is scaled to it, and the middle cut out.
        channels: 3, or 1 for grey.
        progress: Whether a bar shows the time that is left; by default, on a terminal.

    Returns:
        FolderImages(images, labels, classes, files, notes).

    Raises:
        ValueError: No such folder or part, fewer than two classes, or a class without enough
            pictures. Single files that cannot be used are notes.
    """
    root = Path(root).expanduser()
    require.one_of("part", part, PARTS)
    require.whole("size", size)
    if not root.is_dir():
        raise ValueError(f"root must be a folder with a folder for each class, {root} is none")
    found, classes, notes = _divided(root)
    wanted = {"trainval": ("train", "validation")}.get(part, (part,))
    chosen = sorted((path, label) for path, label, where in found if where in wanted)
    images, labels, files = [], [], []
    remarks: dict[str, list[str]] = defaultdict(list)
    hidden = None if progress is None else not progress
    for path, label in tqdm(chosen, disable=hidden, unit="picture", desc=part, delay=2):
        name = path.relative_to(root).as_posix()
        try:
            picture = read_picture(path, size, channels)
        except PictureError as error:
            remarks["left out: " + _kind(str(error))].append(name)
            continue
        images.append(picture.pixels)
        labels.append(label)
        files.append(name)
        for remark in picture.remarks:
            remarks[remark].append(name)
    empty = [name for label, name in enumerate(classes) if label not in labels]
    if empty:
        raise ValueError(
            f"{root} has no picture for the part {part} in {', '.join(empty)}: each class needs "
            "at least three that can be read"
        )
    notes += [_note(kind, names) for kind, names in sorted(remarks.items())]
    return FolderImages(
        torch.stack(images), torch.tensor(labels), tuple(classes), tuple(files), tuple(notes)
    )


def _divided(root: Path) -> tuple[list[tuple[Path, int, str]], list[str], list[str]]:
    """All files that may be pictures with their class and part; the classes; notes."""
    below = {path.name for path in root.iterdir() if path.is_dir()}
    ready = {part: next((n for n in names if n in below), None) for part, names in READY.items()}
    if not (ready["train"] and (ready["test"] or ready["validation"])):
        places: dict[str, Path] = {"": root}
    else:
        if ready["test"] is None:  # two folders: the second is the test
            ready = {"train": ready["train"], "test": ready["validation"]}
        places = {part: root / name for part, name in ready.items() if name}
    classes = sorted({name for place in places.values() for name in _folders(place)})
    if len(classes) < 2:
        raise ValueError(
            f"root must hold a folder for each class, at least two; {root} holds "
            f"{', '.join(classes) or 'no folder'}"
        )
    files, notes = _files(places, classes)
    files, told = _once(files, root)
    notes += told
    if "validation" in places:
        return [(path, label, part) for path, label, part, _ in files], classes, notes
    divided: list[tuple[Path, int, str]] = []
    for label in range(len(classes)):
        for part in places:
            members = sorted(
                (key, path) for path, own, p, key in files if (own, p) == (label, part)
            )
            divided += [(path, label, p) for path, p in _cut([p for _, p in members], part)]
    return divided, classes, notes


def _cut(paths: list[Path], part: str) -> list[tuple[Path, str]]:
    """Give the files of one class, in the order of their hashes, to the parts."""
    if part == "test":
        return [(path, "test") for path in paths]
    tested = 0 if part == "train" else max(1, round(SHARE * len(paths)))
    kept = max(1, round(SHARE * (len(paths) - tested)))
    names = ["test"] * tested + ["validation"] * kept + ["train"] * len(paths)
    return list(zip(paths, names, strict=False))


def _files(
    places: dict[str, Path], classes: list[str]
) -> tuple[list[tuple[Path, int, str, str]], list[str]]:
    """(file, class, part, hash of its content) of all pictures, and a note on other files."""
    files, others = [], []
    for part, place in places.items():
        for label, name in enumerate(classes):
            for path in sorted((place / name).rglob("*")):
                if path.is_dir() or path.name.startswith("."):
                    continue
                if path.suffix.lower() not in ENDINGS:
                    others.append(path.name)
                    continue
                key = blake2b(path.read_bytes(), digest_size=16).hexdigest()
                files.append((path, label, part, key))
    return files, [_note("left out: not the ending of a picture", others)] if others else []


def _once(
    files: list[tuple[Path, int, str, str]], root: Path
) -> tuple[list[tuple[Path, int, str, str]], list[str]]:
    """Each content once; what lies in two classes is left out: which is right, is not known."""
    same: dict[str, list[tuple[Path, int, str, str]]] = defaultdict(list)
    for one in files:
        same[one[3]].append(one)
    kept, copies, torn = [], [], []
    for group in same.values():
        if len({label for _, label, _, _ in group}) > 1:
            torn += [path.relative_to(root).as_posix() for path, *_ in group]
            continue
        kept.append(group[0])
        copies += [path.relative_to(root).as_posix() for path, *_ in group[1:]]
    notes = [_note("left out: copies of another file", copies)] if copies else []
    if torn:
        notes.append(_note("left out: the same file lies in two classes", torn))
    return kept, notes


def _folders(place: Path) -> list[str]:
    return [p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith(".")]


def _kind(message: str) -> str:
    """A message without what only one file has, so that files of one kind share a note."""
    return "too small" if "fewer than" in message else "cannot be read as a picture"


def _note(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    files = "1 file" if len(names) == 1 else f"{len(names)} files"
    return f"{files}, {kind}: {', '.join(names[:SHOWN])}{more}."
