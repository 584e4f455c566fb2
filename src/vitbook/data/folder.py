"""One's own pictures: a folder for each class."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from vitbook import require
from vitbook.data import folder_names
from vitbook.data.folder_names import listed, printed
from vitbook.data.pictures import PIXELS, SMALLEST, PictureError, endings, pixel_key, read_picture
from vitbook.data.room import room
from vitbook.data.splits import PARTS
from vitbook.files import local, utf8

SHARE = 0.2  # of a class for the test; of the rest as much for the validation
FEWEST = {"trainval": 2, "test": 2}  # pictures of a class that are divided; else one for each part
SHOWN = 3  # files that a note names
SEVERAL = 6  # files of one thing at most: more are a series with a common name
# What systems put beside pictures; what begins with a dot is hidden, too.
HIDDEN = {"__MACOSX", "@eaDir", "#recycle", "#snapshot", "@Recycle", "$RECYCLE.BIN", "RECYCLER"}
HIDDEN |= {"Thumbs.db", "desktop.ini", "System Volume Information", "Network Trash Folder"}
HIDDEN |= {"__pycache__", "lost+found"}
SCALED = (
    "Pictures of more than 8 bits are scaled by the bits that each one's largest number needs: "
    "what is equally bright in two of them may not be so here."
)
ALIKE = "called as in the training, but other pictures: if they show the same, it has learned it"
ELSEWHERE = "elsewhere than at the training (renamed, or in another class), kept in its part"
LEFT = "left out"  # what the parts of a run hold for a file that is in none
TWIN = f"{LEFT}: equal to one of another part, pixel by pixel"
ROOT = "root:"  # begins what the parts of a run tell of the folders that their paths are below
COMPARED = 32  # pictures of each of two classes that are looked at, if both have their numbers
SEEN, CELLS = 48, 8  # pixels at which their edges are found, and cells in which they are summed
FLAT = 2  # of 255: edges that differ less from cell to cell are those of noise
CLEARLY, PERHAPS = 5, 2.5  # standard errors
COUNTER = re.compile(r"\D*\d{1,5}")  # names such as img_12 are alike in many classes
# What tools make of one picture: Roboflow x_jpg.rf.HASH, Augmentor class_original_x.jpg_UUID.
MADE = re.compile(r"(.+)\.rf\..*|.+?_original_(.+)\.\w+_[0-9a-f-]{36}")
SERIES = re.compile(r"((?!.*\d{6})\D*\d.*\D)\d{1,4}")  # longer are dates, or of a data set
LARGEST = 2**31  # bytes; no camera writes such a picture


class EmptyPartError(ValueError):
    """A part without a picture, or without one of a class."""


class PictureFile(NamedTuple):
    """A file that may be a picture, its class, its part, and the hash of what is in it."""

    path: Path
    label: int
    part: str
    key: str


class PictureFolder(NamedTuple):
    """What a folder holds before a picture is decoded; ``notes`` as in :class:`FolderImages`.

    ``ready``: its folders say which part a file is in. ``doubt``: why its classes were refused if
    nobody had said that they are classes, or "". ``new``: what a run has not seen.
    """

    root: Path
    classes: tuple[str, ...]
    files: tuple[PictureFile, ...]
    notes: tuple[str, ...]
    ready: bool = False
    doubt: str = ""
    new: frozenset[Path] = frozenset()


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
    folders_are_classes: bool = False,
) -> FolderImages:
    """Read a folder that holds one folder of pictures for each class.

    The parts are always the same for the same files, wherever they lie and whatever they are
    called: a file's place is decided by a hash of what is in it. A fifth of each class is for the
    test, a fifth of the rest for the validation. If the folder holds ``train``, ``test`` and
    perhaps ``val`` with the classes below, in any case (``Training``), these are the parts instead.

    Hidden files and folders are left out, links are followed, each folder is read once. Of files
    that are equal byte by byte one is taken; equal pixels in other files, which may lie in another
    part, are not looked for: ``vitbook train`` leaves them out, and tells of near copies.

    Args:
        root: The folder.
        part: "train", "validation", "trainval" (both) or "test".
        size: S: the shorter side of each picture is scaled to it, and the middle cut out.
        channels: 3, or 1 for grey.
        progress: Whether a bar shows the time that is left; by default, on a terminal.
        folders_are_classes: Take classes called "train", "test", "images" or "masks" for what
            they say; otherwise they are refused, as they seldom are meant.

    Returns:
        FolderImages(images, labels, classes, files, notes).

    Raises:
        ValueError: No such folder or part, fewer than two classes, or a class without enough
            pictures. Single files that cannot be used are notes.
    """
    require.one_of("part", part, PARTS)
    require.whole("size", size)
    found = list_folder(root, folders_are_classes=folders_are_classes)
    return read_files(found, part, size=size, channels=channels, progress=progress)


def list_folder(
    root: str | Path,
    *,
    folders_are_classes: bool = False,
    known: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    decoded: bool = False,
) -> PictureFolder:
    """What ``load_folder`` would read, for all parts.

    Args:
        root, folders_are_classes: As for ``load_folder``.
        known: Parts of files by the hash of what is in them, by their paths below the root and by
            their pixels, as a run had them, or ``LEFT``. They stay, in whichever class the file
            lies today.
        classes: Those that a run has learned: what is called so is a class.
        decoded: Divide only what can be read as a picture, which takes as long as to read it all.

    Returns:
        PictureFolder(root, classes, files, notes, ready, doubt).
    """
    root = Path(root).expanduser()
    odd = _Odd(root)
    if not root.is_dir():
        raise ValueError(f"root must be a folder with a folder for each class, {root} is none")
    os.listdir(root)  # one that is closed is told by the system, and not as an empty one
    places = {"": root}
    if not folders_are_classes and set(classes or ()) != set(_folders(root, _Odd(root))):
        places = _places(root, odd)
    below = {part: _folders(place, odd) for part, place in places.items()}
    names = sorted(set().union(*below.values()))
    if len(names) < 2:
        raise ValueError(
            f"root must hold a folder for each class, at least two; {root} holds "
            f"{listed(names) or 'no folder'}{_gone(names, known or {}) or _deeper(root, names)}"
            f"{what_was_found(odd.notes())}"
        )
    meant = folders_are_classes or classes is not None
    doubt = _doubt(below)
    _require_classes(root, names, "" if meant else doubt)
    files, inner = [], Counter[Path]()
    for part, named in below.items():
        for label, name in enumerate(names):
            for path in sorted(_walk(named[name], odd)) if name in named else ():
                try:
                    if path.stat().st_size > LARGEST:
                        odd.add("left out: larger than 2 GB", path)
                        continue
                    with open(path, "rb") as file:
                        key = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16))
                except OSError:
                    odd.add("left out: cannot be opened", path)
                    continue
                files.append(PictureFile(path, label, part, key.hexdigest()))
                if path.parent != named[name]:
                    odd.add("taken from folders inside those of the classes", path)
                    inner[path.parent] += 1
    same: list[str] = []
    if not doubt and not classes:
        doubt, same = _twice(files, names)
    _require_classes(root, names, "" if meant else doubt)
    files = _once(files, odd)
    cut = not {"train", "validation", "test"} <= places.keys()
    twice = same + _together(files, names, cut) + _alone(below)
    if len(places) == 2 and folder_names.roles([places["test"].name]).get("validation"):
        twice.append(f"{printed(places['test'].name)} is the test: beside train there is no other.")
    if "" in places and (several := [p for p, n in inner.items() if n > 1])[1:]:
        twice.append(
            f"{len(several)} folders inside classes ({listed([odd.name(p) for p in several])}) are "
            "cut into what is learned from and what is tested: if each shows one thing, a film or "
            "a patient, it is in both"
        )
    if decoded:
        files = [file for file in files if _is_picture(file.path, odd)]
    if "validation" not in places:
        files = _divided(files, tuple(places))
    new: list[Path] = []
    if known is not None:
        files, new = _as_known(files, known, odd)
    ready, notes = "" not in places, (*odd.notes(), *twice)
    return PictureFolder(root, tuple(names), tuple(files), notes, ready, doubt, frozenset(new))


def _require_classes(root: Path, names: Sequence[str], doubt: str) -> None:
    if doubt:
        raise ValueError(
            f"the classes of {root} would be {listed(names)}, but {doubt}; if these are the "
            "classes, say so with folders_are_classes=True"
        )


def _is_picture(path: Path, odd: "_Odd") -> bool:
    try:
        read_picture(path, SMALLEST)
        return True
    except ValueError as error:
        odd.add(f"left out: {_why_not(error)}", path)
        return False


def _why_not(error: ValueError) -> str:
    """Why a file that was listed gives no picture."""
    return getattr(error, "kind", "gone since it was listed")


def _doubt(below: Mapping[str, Mapping[str, Path]]) -> str:
    """Why the folders of the parts are perhaps not those of classes."""
    inside: dict[str, set[str]] = defaultdict(set)
    for named in below.values():
        for name, place in named.items():
            inside[name] |= _folders(place, _Odd(place)).keys()
    if doubt := folder_names.doubt(inside):
        return doubt
    alike: dict[str, list[str]] = defaultdict(list)
    plainly = set(map(folder_names.plain, inside))
    for name in sorted(inside):
        whose = folder_names.original(name)
        alike[whose if whose in plainly else folder_names.plain(name)].append(name)
    same = [name for names in alike.values() if len(names) > 1 for name in names]
    why = "differ in capitals, spaces, what is not seen, the coding of accents or the mark of a "
    why += "copy alone: give them one name"
    return f"{listed(same)} {why}" if same else ""


def read_files(
    found: PictureFolder,
    part: str,
    *,
    size: int,
    channels: int = 3,
    progress: bool | None = None,
    all_classes: bool = True,
) -> FolderImages:
    """Decode the pictures of one part; whether each class must have one, says ``all_classes``."""
    root, classes, odd = found.root, found.classes, _Odd(found.root)
    wanted = {"trainval": ("train", "validation")}.get(part, (part,))
    chosen = sorted(file for file in found.files if file.part in wanted)
    pixels, held = room((len(chosen), channels, size, size))
    labels: list[int] = []
    files = []
    hidden = None if progress is None else not progress
    for path, label, _, _ in tqdm(chosen, disable=hidden, unit="picture", desc=part, delay=2):
        try:
            picture = read_picture(path, size, channels)
        except ValueError as error:
            if not isinstance(error, PictureError) and path.is_file():
                raise
            odd.add(f"left out: {_why_not(error)}", path)
            continue
        pixels[len(labels)] = picture.pixels
        labels.append(label)
        files.append(odd.name(path))
        for remark in picture.remarks:
            odd.add(remark, path)
    notes = (*found.notes, *odd.notes(), *([held] if held else []))
    if len([kind for kind in odd.kinds if " bits: scaled to 8" in kind]) > 1:
        notes += (SCALED,)
    empty = [name for label, name in enumerate(classes) if label not in labels]
    if empty and (all_classes or not labels):
        each = "one in each part, two in train where the validation is cut from it,"
        each = each if found.ready else f"at least {FEWEST.get(part, 3)}"
        needs = f": each class needs {each} that can be read" if all_classes else ""
        raise EmptyPartError(
            f"{root} has no picture for the part {part} in {listed(empty)}{needs}"
            f"{what_was_found(notes)}"
        )
    pixels = pixels[: len(labels)]
    return FolderImages(pixels, torch.tensor(labels), classes, tuple(files), notes)


def what_was_found(notes: Sequence[str]) -> str:
    """The end of a refusal: what may explain it."""
    return f". What was found: {' '.join(notes)}" if notes else ""


class _Odd:
    """Files by what is odd about them, and a note for each kind."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kinds: dict[str, list[str]] = defaultdict(list)

    def name(self, path: Path) -> str:
        return name_below(self.root, path)

    def add(self, kind: str, path: Path) -> None:
        self.kinds[kind].append(self.name(path) + "/" * os.path.isdir(path))

    def notes(self) -> list[str]:
        return [note(kind, names) for kind, names in sorted(self.kinds.items())]


def name_below(root: Path, path: Path) -> str:
    """What a file is called in notes and in runs: its path below the root."""
    return utf8(path.relative_to(root).as_posix())


def note(kind: str, names: list[str]) -> str:
    """A sentence on files of one kind."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    what = "folder" if all(name.endswith("/") for name in names) else "file"
    files = f"1 {what}" if len(names) == 1 else f"{len(names)} {what}s"
    return f"{files}, {kind}: {', '.join(map(printed, sorted(names)[:SHOWN]))}{more}."


def _entries(place: Path, odd: _Odd) -> Iterator[Path]:
    """What lies in a folder and is neither hidden nor a broken link, in the order of names."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        odd.add("left out: cannot be opened", place)
        return
    for path in (place / name for name in names):
        if path.name.startswith(".") or path.name in HIDDEN:
            odd.add("left out: hidden", path)
            continue
        try:
            if path.exists():
                yield path
            else:
                odd.add("left out: a broken link", path)
        except OSError:  # a link to a name that is too long, or into a closed folder
            odd.add("left out: cannot be opened", path)


def _folders(place: Path, odd: _Odd) -> dict[str, Path]:
    """The folders in a folder by name; single files beside them belong to no class."""
    found = {}
    for path in _entries(place, odd):
        if path.is_dir() and place.resolve().is_relative_to(path.resolve()):
            odd.add("left out: a link to a folder above", path)
        elif path.is_dir() and folder_names.doubt({path.name: ()}) and _empty(path):
            odd.add("left out: empty", path)
        elif path.is_dir():
            found[utf8(path.name)] = path
        else:
            odd.add("left out: beside the folders of the classes", path)
    return found


def _empty(place: Path) -> bool:
    with suppress(OSError):  # a closed one is told where it is read
        return not os.listdir(place)
    return False


def _walk(place: Path, odd: _Odd, seen: set[str] | None = None) -> Iterator[Path]:
    """All files below a folder of a class that may be pictures; links are what they lead to."""
    seen = set() if seen is None else seen
    seen.add(os.path.realpath(place))
    known = endings()
    for path in _entries(place, odd):
        if path.is_dir():
            if odd.root.resolve().is_relative_to(path.resolve()):
                odd.add("left out: a link to a folder above", path)
            elif os.path.realpath(path) in seen:  # else a link to a folder above would never end
                odd.add("left out: a link to a folder that was read", path)
            else:
                yield from _walk(path, odd, seen)
        elif not path.is_file():
            odd.add("left out: not a file but a pipe or a device", path)
        elif path.suffix.lower() not in known:
            odd.add("left out: not the ending of a picture that can be read here", path)
        else:
            yield path


def _places(root: Path, odd: _Odd) -> dict[str, Path]:
    """The folders that hold those of the classes, by part; "" where the parts are to be made."""
    names = [path.name for path in _entries(root, _Odd(root)) if path.is_dir()]
    roles = folder_names.roles(names)
    whole = {role: root / only[0] for role, only in roles.items() if len(only) == 1}
    if "train" not in whole or len(whole) < 2 or len(whole) < len(roles):
        return {"": root}
    whole = {role: _only(place) for role, place in whole.items()}
    inside = {role: _folders(place, _Odd(root)) for role, place in whole.items()}
    if not inside["train"]:
        return {"": root}
    if bare := [whole[role].name for role, folders in inside.items() if not folders]:
        raise ValueError(
            f"{whole['train']} holds a folder for each class, {', '.join(bare)} none: where no "
            f"classes are known nothing can be tested (predict asks about such pictures); name "
            f"{whole['train']}, and a fifth of each class in it is kept for the test"
        )
    for path in _entries(root, odd):
        if not any(place.is_relative_to(path) for place in whole.values()):
            lost = list(_walk(path, _Odd(root))) if path.is_dir() else []
            for one in lost or [path]:
                odd.add("left out: beside the folders of the parts", one)
    if "test" not in whole:  # two folders: the second is the test
        whole = {"train": whole["train"], "test": whole["validation"]}
    return whole


def _only(place: Path) -> Path:
    """The folder of a part, or the only one in it, as in seg_train/seg_train/buildings."""
    found = list(_entries(place, _Odd(place)))
    while len(found) == 1 and found[0].is_dir():
        inside = list(_entries(found[0], _Odd(place)))
        if not inside or not all(path.is_dir() for path in inside):
            break
        place, found = found[0], inside
    return place


def _gone(names: list[str], known: Mapping[str, str]) -> str:
    """Which folders a run had beside these."""
    then = {one.split("/")[0] for one in known if "/" in one and not one.startswith(ROOT)}
    gone = sorted(then - set(names)) if then & set(names) else []
    return f", no more {listed(gone)}: put back what was moved, or name where it is" if gone else ""


def _deeper(root: Path, classes: list[str]) -> str:
    """Which folder the user may have meant."""
    at = root
    while len(classes) == 1 and (at / local(classes[0])).is_dir():
        at = at / local(classes[0])
        classes = list(_folders(at, _Odd(at)))
    if not classes:
        inner = f"; {at} holds none" if at != root else ""
        return f"{inner}: a picture's class is what its folder is called"
    seldom = len(classes) < 2 or _doubt({"": _folders(at, _Odd(at))})
    return "" if seldom else f"; {at} holds {listed(classes)}: name that one"


def _divided(files: list[PictureFile], places: tuple[str, ...]) -> list[PictureFile]:
    """Test and validation cut from each class, in the order of hashes."""
    groups: dict[tuple[int, str], list[PictureFile]] = defaultdict(list)
    for file in files:
        groups[file.label, file.part].append(file)
    divided = []
    for part in places:
        for label in sorted({label for label, own in groups if own == part}):
            group = sorted(groups[label, part], key=lambda file: (file.key, file.path))
            parts = _cut(len(group), part)
            divided += [f._replace(part=p) for f, p in zip(group, parts, strict=False)]
    return divided


def _cut(number: int, part: str) -> list[str]:
    """The parts of so many files of one class, in the order of their hashes."""
    if part == "test":
        return ["test"] * number
    tested = 0 if part == "train" else max(1, round(SHARE * number))
    kept = max(1, round(SHARE * (number - tested)))
    return ["test"] * tested + ["validation"] * kept + ["train"] * number


def _as_known(
    files: list[PictureFile], known: Mapping[str, str], odd: _Odd
) -> tuple[list[PictureFile], list[Path]]:
    """Each file in the part that a run had it in; new ones where the folder says, and which.

    A file counts as that of its name, whatever its ending, if that one is gone.
    """
    kept, new, alike = [], [], []
    roots = {one for one in known if one.startswith(ROOT)}
    then = {one for one in known if "/" in one} - roots
    gone = sorted(
        then - {odd.name(file.path) for file in files}, key=lambda one: known[one] != "test"
    )
    stems = {os.path.splitext(one)[0]: known[one] for one in gone}  # of two, what was learned
    sizes = {int(one.split(":")[1]) for one in known if one.startswith(PIXELS)}
    pixels = cache(lambda path: _by_pixels(path, sizes, known))
    by_path = not roots or root_key(odd.root) in roots or any(file.key in known for file in files)
    by_path = by_path or any(pixels(file.path) for file in files)  # else only the names agree
    lost = sum(known[one] != "test" for one in gone)
    for file in files:
        name = odd.name(file.path)
        part, named = known.get(file.key), known.get(name, stems.get(os.path.splitext(name)[0]))
        if part == LEFT:
            odd.add(TWIN, file.path)
            continue
        if part is None and by_path and (part := named):
            odd.add("changed since the training, kept in its part", file.path)
        elif part is None and (part := pixels(file.path)):
            odd.add("written anew since the training, kept in its part", file.path)
        elif part is None and named:
            odd.add(ALIKE, file.path)
            alike.append(file.path)
        elif part is None:
            new.append(file.path)
        elif name not in known and gone and pixels(file.path):
            odd.add(ELSEWHERE, file.path)
        elif part != file.part:
            odd.add("kept in the part that the training had it in", file.path)
        lost -= name not in known and part not in (None, "test")
        kept.append(file if part is None else file._replace(part=part))
    some = "1 that it learned from is" if lost == 1 else f"{lost} that it learned from are"
    perhaps = f", as {some} gone: if they are the same, it has learned from them"
    for path in new:
        odd.add(f"new since the training{perhaps if lost > 0 else ''}", path)
    return kept, new + alike


def root_key(root: Path) -> str:
    """What the parts of a run hold for a folder that was divided into them."""
    return f"{ROOT}{utf8(root.resolve().as_posix())}"


def _twice(files: list[PictureFile], classes: Sequence[str]) -> tuple[str, list[str]]:
    """Why two classes show the same things, as copies, masks and depths do, or ""; and doubts.

    Names tell it if the pictures do not gainsay them, numbers if most pictures say it, too.
    """
    doubts = []
    names = [(file.path.stem, file) for file in files]
    telling = [(name, file) for name, file in names if not COUNTER.fullmatch(name)]
    numbers = [("-".join(re.findall(r"\d+", name)), file) for name, file in names]
    for what, marked in (
        ("of the same pictures", [(file.key, file) for file in files]),
        ("files of the same names", telling),
        ("files of the same numbers", numbers),
    ):
        for one, other, pairs in _shared(marked, Counter(file.label for file in files)):
            alike, of, errors = (0, 0, 0.0) if what.startswith("of") else _look_alike(pairs)
            told = f"{printed(classes[one])} and {printed(classes[other])} hold {len(pairs)} {what}"
            told += f", of which {alike} of {of} compared are most like each other" if of else ""
            told += ": are these the same things twice, copies, or pictures and their masks?"
            told_by_names = not of or (
                errors > PERHAPS and 10 * alike > of
            )  # bursts are alike, too
            sure = 2 * alike > of if marked is numbers else told_by_names
            if sure:
                return told, []
            if errors > CLEARLY or marked is telling:
                doubts.append(told)
    return "", doubts[:1]  # of the two classes that have most in common


def _shared(
    marked: Iterable[tuple[str, PictureFile]], sizes: Mapping[int, int]
) -> Iterator[tuple[int, int, list[tuple[Path, Path]]]]:
    """Pairs of classes in which most files of one have a mark that one of the other has, too."""
    holders: dict[str, dict[int, Path]] = defaultdict(dict)
    for mark, file in marked:
        holders[mark][file.label] = file.path
    alike = defaultdict[tuple[int, int], list[tuple[Path, Path]]](list)
    for found in holders.values():
        if len(found) <= SHOWN:  # of pictures, masks and depths, say
            for one, other in combinations(sorted(found), 2):
                alike[one, other].append((found[one], found[other]))
    for (one, other), pairs in sorted(alike.items(), key=lambda item: -len(item[1])):
        if 2 * len(pairs) > min(sizes[one], sizes[other]):
            yield one, other, pairs


def _look_alike(pairs: list[tuple[Path, Path]]) -> tuple[int, int, float]:
    """How many pictures and those of their marks in the other class look most alike, of how many.

    Compared is where their edges are, coarsely, without what a class has in common: masks and
    depths have those of their pictures.

    Returns:
        The two numbers, 0 of 0 if too few can be compared; and by how many standard errors pairs
        are more alike than others.
    """
    thumbs = []
    for pair in pairs[:: max(1, len(pairs) // COMPARED)]:
        with suppress(ValueError):  # what is no picture is told where it is read
            thumbs.append(torch.stack([_edges(path) for path in pair]))
    if len(thumbs) < COMPARED // 4:
        return 0, 0, 0.0
    own = torch.stack(thumbs, dim=1)  # (2, n, cells)
    own = own - own.mean(dim=1, keepdim=True)
    own = own - own.mean(dim=2, keepdim=True)
    if own.std(dim=2).median(dim=1).values.min() < FLAT:
        return 0, 0, 0.0
    one, other = torch.nn.functional.normalize(own, dim=2)
    alike = one @ other.T  # (n, n)
    others = alike[~torch.eye(len(alike), dtype=torch.bool)]
    row = torch.arange(len(alike))
    same = int(((alike.argmax(dim=0) == row) & (alike.argmax(dim=1) == row)).sum())
    errors = (alike.diag().mean() - others.mean()) / others.std() * len(alike) ** 0.5
    return same, len(alike), float(errors)


def _edges(path: Path) -> Tensor:
    """How much of an edge is in each cell of a picture, (CELLS * CELLS,)."""
    x = read_picture(path, SEEN, channels=1).pixels[0].float()
    edges = (x[1:, 1:] - x[1:, :-1]).abs() + (x[1:, 1:] - x[:-1, 1:]).abs()
    return torch.nn.functional.adaptive_avg_pool2d(edges[None], CELLS).flatten()


def _together(files: list[PictureFile], classes: Sequence[str], cut: bool) -> list[str]:
    """Sentences on classes whose files are called as several of one thing: x.png, x_mask.png.

    Where no part is to be cut, variants of a picture stay together.
    """
    stems: dict[Path, set[str]] = defaultdict(set)
    for file in files:
        stems[file.path.parent].add(file.path.stem)
    things: dict[tuple[int, Path, str], list[str]] = defaultdict(list)
    for file in files:
        stem, beside = file.path.stem, stems[file.path.parent]
        known = (one for one in _originals(stem) if one in beside)
        made = MADE.fullmatch(stem)
        name = made[1] or made[2] if made else stem
        series = SERIES.fullmatch(name)  # x1_crop2: the second number counts views of the first
        thing = next(known, (series[1] if series else name) if cut else stem)
        things[file.label, file.path.parent, thing].append(file.path.name)
    sizes, several = Counter(file.label for file in files), defaultdict[int, list[str]](list)
    for (label, _, _), names in things.items():
        several[label] += names if 1 < len(names) <= min(SEVERAL, sizes[label] - 1) else ()
    told = {classes[label]: some for label, some in several.items() if 2 * len(some) > sizes[label]}
    if not told:
        return []
    shown = ", ".join(printed(name) for name in next(iter(told.values()))[:2])
    return [
        f"{listed(told)}: files called as if they showed a thing twice ({shown}): masks teach "
        "nothing of a class, and of a picture's variants some would be learned and others tested."
    ]


def _originals(stem: str) -> Iterator[str]:
    """What a file's name says without its end, its beginning, or a word in it."""
    marks = list(re.finditer(r"[\W_]", stem))
    yield from (stem[: mark.start()] for mark in marks)
    ends = [0, *(mark.end() for mark in marks)]
    for start, end in combinations(ends, 2):
        if not re.search(r"\d", stem[start:end]):
            yield stem[:start] + stem[end:]


def _alone(below: Mapping[str, Mapping[str, Path]]) -> list[str]:
    """Sentences on the classes that one part holds and another does not."""
    every = set().union(*below.values())
    return [
        f"There is no {listed(lacking)} in {part}."
        for part, named in below.items()
        if (lacking := sorted(every - set(named)))
    ]


def _by_pixels(path: Path, sizes: Iterable[int], known: Mapping[str, str]) -> str | None:
    """The part in which a run had these pixels, at the sizes at which runs saw theirs."""
    with suppress(ValueError):  # what is no picture is told where it is read
        for size in sizes:
            if part := known.get(pixel_key(read_picture(path, size).pixels)):
                return part
    return None


def _once(files: list[PictureFile], odd: _Odd) -> list[PictureFile]:
    """Each content once; what lies in two classes is left out: which is right, is not known."""
    same: dict[str, list[PictureFile]] = defaultdict(list)
    for one in files:
        same[one.key].append(one)
    kept = []
    for group in same.values():
        if len(group) > 1:  # empty ones are none of two classes
            group = [file for file in group if _is_picture(file.path, odd)]
        if len({file.label for file in group}) > 1:
            for file in group:
                odd.add("left out: the same file lies in two classes", file.path)
            continue
        kept += group[:1]
        for file in group[1:]:
            odd.add("left out: copies of another file", file.path)
    return kept
