"""A run on one's own pictures (``--data folder``), and where it starts from."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.book.intervals import wilson_interval
from vitbook.command.any_model import classifiers, load_whole, timm_model
from vitbook.command.beside import lending_run, of_other_timm, require_told, statistics_told
from vitbook.data.folder import (
    LEFT,
    TWIN,
    EmptyPartError,
    FolderImages,
    PictureFolder,
    list_folder,
    name_below,
    note,
    read_files,
    root_key,
    what_was_found,
)
from vitbook.data.folder_names import listed as named
from vitbook.data.near import near_labels, near_ones
from vitbook.data.pictures import pixel_key
from vitbook.data.room import NormalizedImages
from vitbook.data.transforms import STATISTICS
from vitbook.models.foreign import (
    called,
    read_weights,
    take,
    take_ours,
    telling,
    their_names,
)
from vitbook.models.transfer import adapt
from vitbook.training import processes

PARTS = 4  # updates in an epoch at least, if the batch size is not given
LISTED = 20  # classes that are told with their numbers
CHUNK = 32  # pictures that are summed at once
UNEVEN = 5  # times as many pictures of one class as of another are worth a word
USES = dict.fromkeys(("trainval", "train"), "to learn from")
USES |= {"validation": "to choose by", "test": "to test"}
WARMUP = 5  # one update in so many at most: a small folder has fewer than the recipe's warm-up
NO_PARTS = (
    "The run is of a time when parts were not kept: if files were moved or deleted since, it may "
    "have learned from some of these."
)
LEARNED = "The run, or one that lent it weights, has learned from the part {}: it is no test."
ALONE = (
    "{} is of a run whose folder it is not in, so it may have learned from what is tested here; "
    "that folder, if named, says what it has learned"
)
UNKNOWN = "{} does not say what it has learned from: what is tested here may be among that"
NONE_LEARNED = (
    "None of these files was at the training: a fifth of them are the test, for the others ask "
    "with --part trainval."
)
UNSEEN = (
    "Whether new pictures of the part {} are copies of learned ones was not seen: none of these "
    "is in {}."
)
PARTS_FILE = "parts.json"  # which part each picture was in, by the hash of what is in its file
NEEDS_ROOT = "root must say which folder holds a folder of pictures for each class (--root DIR)"


def describe(
    settings: dict,
    root: str | None,
    given: dict,
    folders_are_classes: bool = False,
    lender: dict | None = None,
) -> tuple[dict, dict[str, FolderImages], tuple[str, ...]]:
    """What the pictures themselves settle, the pictures by part, and sentences on odd ones.

    Args:
        settings: Of the run.
        root: The folder of pictures.
        given: What the user said, which stays.
        folders_are_classes: As for :func:`~vitbook.data.load_folder`.
        lender: Settings of the run whose weights are lent: what it learned is never a test.

    Returns:
        The names of the classes, mean and standard deviation of the channels, the size of the
        images (a model of timm brings its statistics and, if none was said, its size), a batch
        size that gives a small folder some updates in each epoch, a warm-up that leaves most of
        the updates after it, and the part of each file, by the hash of what is in it, its path
        and its pixels at that size.
    """
    if root is None:
        raise ValueError(NEEDS_ROOT)
    found = {"image_size": settings["image_size"]}
    told, origin = _normalization(settings, lender or {})
    if settings["timm"]:
        known = timm_model(settings["timm"], pretrained=False).pretrained_cfg
        found = {"image_size": given.get("image_size", known["input_size"][-1])}
        _try_size(settings["timm"], found["image_size"])
        found |= {name: [float(x) for x in known[name]] for name in ("mean", "std")} | told
    size = found["image_size"]
    require.whole("shift", settings["shift"], at_least=0, at_most=size - 1)
    parts = ("trainval",) if settings["learn_from"] == "trainval" else ("train", "validation")
    before = (lender or {}).get("parts", {})
    learned_before = learned_by(lender) if lender and before else None
    listing: dict = {"folders_are_classes": folders_are_classes, "known": before or None}
    try:
        listed, pictures = _read(root, parts, size, listing)
    except EmptyPartError:  # of files that are no pictures, perhaps
        listed, pictures = _read(root, parts, size, listing | {"decoded": True})
    if folders_are_classes and not listed.doubt:
        raise ValueError(
            f"folders_are_classes=True must be left out: no folder of {root} is called as if it "
            "were no class"
        )
    found["learned_before"] = learned_before
    found["parts"] = before | {root_key(listed.root): "root"}
    found["parts"] |= {file.key: file.part for file in listed.files}
    pictures, twins = _apart(listed, pictures, found["parts"])
    learned = pictures[parts[0]]  # the others only judge: they lend it no numbers
    if "batch_size" not in given:
        b, world = min(settings["batch_size"], len(learned.images) // PARTS), processes.world()
        found["batch_size"] = max(b // world, 1) * world
    epoch = len(learned.images) // found.get("batch_size", settings["batch_size"])
    updates = settings.get("steps") or settings["epochs"] * epoch
    if "warmup_steps" not in given:
        found["warmup_steps"] = min(settings["warmup_steps"], updates // WARMUP)
    if not settings["timm"]:
        found |= told or _statistics(learned.images)
    near = {part: near_ones(learned, pictures[part], part) for part in list(pictures)[1:]}
    if before and root_key(listed.root) not in before:
        for part, copies in near.items():
            copies += _near_lent(lender or {}, pictures[part], part, size)
    found["near"] = near
    twins += chain(near_labels(learned), *near.values())
    notes = dict.fromkeys(note for part in pictures.values() for note in (*part.notes, *twins))
    notes |= dict.fromkeys(origin)
    labels = {part: found.labels for part, found in pictures.items()}
    counted = _counted(listed.classes, labels, settings["class_weights"])
    if learned_before == "trainval" and "validation" in parts:
        notes[LEARNED.format("validation")] = None
    return found | {"classes": list(listed.classes)}, pictures, (counted, *notes)


def _near_lent(lender: dict, judged: FolderImages, part: str, size: int) -> list[str]:
    """Sentences on near copies of what lent weights learned from, in another folder."""
    root = lender.get("root")
    try:
        known = read_pictures(lender | {"image_size": size}, learned_by(lender), root)
    except (ValueError, OSError):
        return [UNSEEN.format(part, root or "the folder of the run that lends its weights")]
    return near_ones(known, judged, part)


def _read(
    root: str, parts: tuple[str, ...], size: int, listing: dict
) -> tuple[PictureFolder, dict[str, FolderImages]]:
    """What lies in a folder, and the pictures of the parts and of the test."""
    listed = list_folder(root, **listing)
    if listing["known"] and listed.files and not any(file.part == "test" for file in listed.files):
        raise ValueError(
            f"every picture of {root} is one that the run has learned from whose weights are "
            "lent: none is left for a test; add pictures that it has not seen"
        )
    return listed, {
        part: read_files(listed, part, size=size, all_classes=part != "validation")
        for part in (*parts, "test")
    }


def _apart(
    listed: PictureFolder, pictures: dict[str, FolderImages], parts: dict[str, str]
) -> tuple[dict[str, FolderImages], list[str]]:
    """The pictures without those of which an earlier part has every pixel; which these are.

    The others are put down in ``parts`` by their names and their pixels, too; what is left out has
    no part, and no file that could not be read has one by its name.
    """
    files_by_name = {name_below(listed.root, file.path): file for file in listed.files}
    apart, twins, both, notes = {}, [], [], []
    labels: dict[str, int] = {}
    for part, found in pictures.items():
        own = ("train", "validation") if part == "trainval" else (part,)
        keep = []
        for row, name in enumerate(found.files):
            key, label = pixel_key(found.images[row]), int(found.labels[row])
            file = files_by_name[name]
            if parts.setdefault(key, file.part) in own:
                keep.append(row)
                parts[name] = file.part
            else:
                twins.append(name)
                parts[file.key] = LEFT
            if labels.setdefault(key, label) != label:
                both.append(name)
        if len(keep) < len(found.files):
            found = _rows(found, keep)
        apart[part] = found
        none = _without_picture(found)
        if not keep or (none and part in ("train", "trainval")):
            raise ValueError(
                f"all pictures of {named(none)} in the part {part} of {listed.root} are equal, "
                "pixel by pixel, to some of another part; bring others"
                f"{what_was_found(found.notes)}"
            )
        if none and part == "test":
            notes.append(f"No picture of {named(none)} is left in the part test.")
    wrong = "equal to one of another class, pixel by pixel, so that one is wrong"
    return apart, notes + [
        note(what, some) for what, some in ((TWIN, twins), (wrong, both)) if some
    ]


def _rows(found: FolderImages, rows: list[int]) -> FolderImages:
    files = tuple(found.files[row] for row in rows)
    return found._replace(images=found.images[rows], labels=found.labels[rows], files=files)


def require_outside(out: Path, root: str | None) -> None:
    """Refuse to write where pictures are learned from."""
    place = os.path.realpath(out)  # resolve() fails on a link that leads to itself
    if root and Path(place).is_relative_to(os.path.realpath(root)):
        raise ValueError(
            f"out must lie outside of root: {out} would be taken for one of its classes or pictures"
        )


def _without_picture(found: FolderImages) -> list[str]:
    """The classes of which a part has no picture."""
    return [name for i, name in enumerate(found.classes) if not (found.labels == i).any()]


def learned_by(run: dict) -> str:
    """The part that a run, or one that lent it weights, has learned from, by its settings."""
    ever = (run["learn_from"], run.get("learned_before"))
    return "trainval" if "trainval" in ever else "train"


def learned_parts(run: dict) -> set[str]:
    """The parts in which there is something that it has learned from."""
    whole = learned_by(run) == "trainval"
    return {"train", "trainval", "validation"} if whole else {"train", "trainval"}


def _normalization(settings: dict, lender: dict) -> tuple[dict, list[str]]:
    """Mean and std of the images that lent weights learned from, and what is known of these."""
    if not (weights := settings["weights"]):
        return {}, []
    known = dict(zip(("mean", "std"), STATISTICS.get(lender.get("data", ""), ()), strict=False))
    known |= {name: lender[name] for name in ("mean", "std") if name in lender}
    if len(known.get("mean", ())) == 3:
        return known, [f"mean and std of the channels are those of the run of {weights}"]
    known, said = statistics_told(Path(weights))
    whose = settings["timm"] or "the pictures here"
    unsaid = f"no file says mean and std of the images of {weights}: those of {whose} are taken"
    return known, [said or unsaid] + [UNKNOWN.format(weights)] * (not lender)


def _statistics(pixels: Tensor) -> dict:
    """Mean and standard deviation of each channel, in the scale of [0, 1]; exact sums of bytes."""
    n = pixels[:, 0].numel()
    total = squares = torch.zeros(pixels.shape[1], dtype=torch.int64)
    for part in pixels.split(CHUNK):
        x = part.to(torch.int64)
        total, squares = total + x.sum(dim=(0, 2, 3)), squares + (x * x).sum(dim=(0, 2, 3))
    mean = total.double() / n
    std = ((squares.double() - n * mean * mean) / (n - 1)).sqrt() / 255
    return {
        "mean": [round(x, 4) for x in (mean / 255).tolist()],
        "std": [round(max(x, 0.01), 4) for x in std.tolist()],
    }


def _counted(classes: tuple[str, ...], labels: dict[str, Tensor], weighted: bool) -> str:
    """The classes with their numbers of pictures by part, and whether they are far from even."""
    counts = [torch.bincount(y, minlength=len(classes)).tolist() for y in labels.values()]
    each = [
        f"{name} {' + '.join(map(str, numbers))}"
        for name, *numbers in list(zip(classes, *counts, strict=True))[:LISTED]
    ]
    each += [f"and {len(classes) - LISTED} more"] if len(classes) > LISTED else []
    uses = " + ".join(USES[part] for part in labels)
    text = f"{len(classes)} classes (pictures {uses}): {', '.join(each)}"
    learned, *_, tests = counts
    if max(learned) >= UNEVEN * min(learned):
        share = tests[learned.index(max(learned))] / sum(tests)
        text += (
            f". They are uneven, {max(learned)} to {min(learned)}: who always answers the "
            f"largest is right {100 * share:.0f} % of the time, so look at the accuracy by class "
            "(results)"
        )
        text += "" if weighted else "; with --class-weights each counts alike"
    return text


def no_better(accuracy: float, labels: Tensor, part: str) -> list[str]:
    """A sentence where the answers are not clearly better than that all are of one class."""
    n, most = len(labels), int(torch.bincount(labels).max())
    if wilson_interval(round(n * accuracy), n).low > most / n:
        return []
    return [
        f"{round(n * accuracy)} of {n} right is not clearly more than the {most} of who always "
        f"answers the largest class of the {part}: is what the folders are called to be seen in "
        "their pictures, were there enough, and was the training long enough?"
    ]


def prepared(pictures: FolderImages, settings: dict) -> tuple[NormalizedImages, Tensor]:
    """Pictures as the model of the run takes them, and their labels."""
    images = NormalizedImages(pictures.images, settings["mean"], settings["std"])
    return images, pictures.labels


def read_pictures(settings: dict, part: str, root: str | None) -> FolderImages:
    """One part of the pictures. A file that the run had in a part is in no other, ever after."""
    return _read_again(settings, part, root)[1]


def read_asked(settings: dict, part: str, root: str | None) -> FolderImages:
    """The same; notes tell what was learned, and which pictures are near copies of that."""
    listed, found = _read_again(settings, part, root)
    new = {name_below(listed.root, path) for path in listed.new}
    rows = [row for row, name in enumerate(found.files) if name in new]
    told: list[str] = []
    if len(rows) < len(found.files):  # some are of the training
        if part in learned_parts(settings):
            return found._replace(notes=(LEARNED.format(part), *found.notes))
        told += settings.get("near", {}).get(part, [])
    elif len(new) == len(listed.files) and not listed.ready:
        told.append(NONE_LEARNED)
    files = tuple(file for file in listed.files if file.path not in listed.new)
    try:
        learned, size = listed._replace(files=files), settings["image_size"]
        if rows:
            known = read_files(learned, learned_by(settings), size=size, all_classes=False)
            told += near_ones(known, _rows(found, rows), f"{part} that are new")
    except EmptyPartError:
        told.append(UNSEEN.format(part, listed.root))
    return found._replace(notes=(*found.notes, *told))


def _read_again(settings: dict, part: str, root: str | None) -> tuple[PictureFolder, FolderImages]:
    if root is None:
        raise ValueError(NEEDS_ROOT)
    if not Path(root).expanduser().is_dir():
        raise ValueError(
            f"root must be the folder of the run's pictures, {root} is none; if they were moved, "
            "say where they are (--root DIR)"
        )
    known, classes = settings.get("parts"), settings["classes"]
    listed = list_folder(root, known=known, classes=classes)
    if list(listed.classes) != settings["classes"]:
        raise ValueError(
            f"{root} holds the classes {named(listed.classes)}, the run learned "
            f"{named(settings['classes'])}"
        )
    found = read_files(listed, part, size=settings["image_size"], all_classes=False)
    notes = found.notes
    if "parts" not in settings:
        notes += (NO_PARTS,)
    if empty := _without_picture(found):
        notes += (f"No picture of {named(empty)} is in the part {part}.",)
    return listed, found._replace(notes=notes)


def model_of_timm(settings: dict, *, pretrained: bool = False) -> Any:
    """The model of timm that a run names, with a head for its classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        return timm_model(
            settings["timm"],
            pretrained=pretrained,
            num_classes=len(settings["classes"]),
            img_size=settings["image_size"],
        )


@torch.no_grad()
def _try_size(name: str, size: int) -> None:
    """Refuse a size of images that a model of timm does not take."""
    try:
        with torch.random.fork_rng(devices=[]):
            model = timm_model(name, pretrained=False, img_size=size).eval()
        model(torch.zeros(1, 3, size, size))
    except (ValueError, RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name} takes no images of {size} pixels: {reason}") from None


def start_from(model: Any, settings: dict) -> list[str]:
    """Put the weights that a run starts from into its model; a sentence for each adapted part."""
    if settings["weights"] is None:
        model.load_state_dict(model_of_timm(settings, pretrained=True).state_dict())
        return [f"starts from timm's weights of {settings['timm']}; head drawn anew"]
    where = settings["weights"]
    found, own = read_weights(Path(where)), model.state_dict()
    alone = [ALONE.format(where)] if found.of_run and not lending_run(Path(where)) else []
    if settings["timm"] is None:
        weights, notes = take_ours(found, own, where)
        notes = alone + notes
        with telling(notes, weights, of_run=found.of_run):
            adapted = adapt(model, weights, old_grid=found.grid)
            names = their_names(weights)
            adapted = [called(note, names) for note in adapted]
            return notes + adapted + require_told(model, found, Path(where))
    weights, notes = take(found, own, where)
    notes = alone + notes + of_other_timm(settings["timm"], Path(where))
    heads = tuple(f"{name}." for name in classifiers(model))
    head = {name for name in own if name.startswith(heads)}
    weights = {name: x for name, x in weights.items() if name not in head}
    with telling(notes, of_run=found.of_run):
        notes = notes + load_whole(model, weights | {name: own[name] for name in head}, where)
    return [*notes, f"starts from {where}; head drawn anew"]


def head_of(model: Any) -> nn.Module:
    """The last layer, or the last layers (distilled ones), which alone are trained at first."""
    head = model.get_classifier() if hasattr(model, "get_classifier") else model.head
    head = nn.ModuleList(head) if isinstance(head, (tuple, list)) else head
    if not list(head.parameters()):
        raise ValueError(f"{type(model).__name__} has no head that could be trained first")
    return head
