"""The run that a folder holds: its settings, and the model that was trained."""

import argparse
import json
import sys
import textwrap
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

import vitbook
from vitbook.command import own_pictures
from vitbook.command.architectures import arguments_of
from vitbook.command.beside import CHECKPOINT_FILE, heads_lent, lending_run
from vitbook.command.idle import refuse_idle_data
from vitbook.command.own_pictures import PARTS_FILE
from vitbook.command.recipes import MODELS, SHAPES, build_model, load_part, settings_of
from vitbook.data.folder_names import printed
from vitbook.data.room import Images
from vitbook.files import local, utf8, write_atomically
from vitbook.layers.positions import default_options
from vitbook.models.fitting import WRITTEN
from vitbook.models.foreign import AS_FLOAT, grid_of
from vitbook.models.weights import load_weights, read_weights
from vitbook.training import TrainConfig
from vitbook.training.run_folder import difference, fingerprint

FORMAT = 4  # 0.1.0 wrote 3
# How a file shows that it is not what was written.
DAMAGE: tuple[type[Exception], ...] = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
DAMAGE += (KeyError, TypeError, AttributeError)
OTHERS = "The pictures of the part {} or their classes are others than before{}: "
OTHER_TEST = OTHERS + (
    "losses and accuracies of now are not to be compared with the earlier ones, of metrics.csv."
)
OTHERS_LEARNED = OTHERS + "the run has learned from the earlier ones."
HELD = {"trainval": {"train", "validation"}}  # what a part is made of
SHOWN = 60  # letters of a setting in a sentence
# What of a model its tensors do not tell.
UNTOLD = ("num_heads", "positions", "layers", "norm_first", "position_base", "centred_positions")


def stored_run(out: Path) -> dict:
    """The settings of a run, and the folder of its data."""
    path = out / "run.json"
    if not path.is_file():
        raise ValueError(f"{out} holds no run: there is no {path}; train one with --out {out}")
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        settings, format = run["settings"], run.get("format")
        if format not in (3, FORMAT):
            raise ValueError(
                f"{path} has format {format}, this vitbook reads 3 and {FORMAT}: use it with the "
                "vitbook that wrote it, or train again into another folder"
            )
        settings, root = _complete(settings, format), run["root"]
        for name in ("classes", "mean", "std") if settings["data"] == "folder" else ():
            if not isinstance(settings[name], list):
                raise TypeError(f"{name} is no list")
        if not isinstance(root, str | None):
            raise TypeError("root is no text")
        root = root and local(root)
        path = out / PARTS_FILE
        if path.is_file():
            settings["parts"] = dict(json.loads(path.read_text(encoding="utf-8")).items())
        path = out / CHECKPOINT_FILE
        kept = kept_notes(path).get("settings")
        learned = _complete(kept, format) if kept else {}
    except DAMAGE as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}: {error}); train again into another folder"
        ) from None
    now = settings_told(settings)["settings"]
    if "parts" in learned and "parts" not in now:
        raise ValueError(
            f"{out / PARTS_FILE} is missing: it says which pictures the run has learned from; put "
            "it back, or train again into another folder"
        )
    if changed := [n for n, value in learned.items() if n in now and now[n] != value]:
        told = ", ".join(f"{n} was {_short(learned[n])}, now {_short(now[n])}" for n in changed)
        raise ValueError(
            f"{out} was changed since its training, which the checkpoint remembers: {told}; put "
            "back what was, or train again into another folder"
        )
    return {"settings": settings, "root": root}


def _complete(settings: dict, format: int) -> dict:
    """All settings of a run of an older version, too."""
    if format == 3 and settings.get("positions") == "sincos_2d":  # without what it is made of
        side = SHAPES[settings["data"]]["image_size"] // settings["patch_size"]
        settings = {"position_base": 2.0 * side, "centred_positions": True} | settings
    return settings_of(settings)


def settings_told(settings: dict) -> dict:
    """The settings as a checkpoint keeps them, of the parts a sum that tells them from others."""
    told = json.loads(json.dumps(settings, sort_keys=True))
    if "parts" in told:
        told["parts"] = f"{zlib.crc32(json.dumps(told['parts']).encode()):08x}"
    return {"settings": told}


def kept_notes(checkpoint: Path) -> dict:
    """What a checkpoint keeps beside the weights, where there is one that does."""
    with suppress(OSError, SafetensorError), safe_open(checkpoint, "pt") as file:
        return json.loads((file.metadata() or {}).get("notes", "{}"))
    return {}  # of what is damaged the reader of its weights tells


def _short(value: Any) -> str:
    return textwrap.shorten(str(value), SHOWN)


def write_run(out: Path, settings: dict, root: str | None) -> None:
    """Keep what describes a run beside its weights."""
    out.mkdir(parents=True, exist_ok=True)
    root = None if root is None else utf8(str(Path(root).resolve()))
    if "parts" in settings:
        write_atomically(
            out / PARTS_FILE, (json.dumps(settings["parts"], indent=0) + "\n").encode()
        )
    settings = {name: value for name, value in settings.items() if name != "parts"}
    run = {"vitbook": vitbook.__version__, "format": FORMAT, "settings": settings, "root": root}
    write_atomically(out / "run.json", (json.dumps(run, indent=2) + "\n").encode())


def lender_of(given: dict) -> dict:
    """The settings of the run whose weights are to be started from; {} if they are of none."""
    weights = given.get("weights")
    return learned_with(Path(weights)) if given.get("data") == "folder" and weights else {}


def learned_with(weights: Path) -> dict:
    """The settings and root of the run that weights are of, by folder or checkpoint; {} of none."""
    if run := lending_run(weights):
        stored = stored_run(run)
        return stored["settings"] | {"root": stored["root"]}
    checkpoint = weights / CHECKPOINT_FILE if weights.is_dir() else weights
    with suppress(ValueError, *DAMAGE):  # a checkpoint alone: which parts there were is not in it
        if kept := kept_notes(checkpoint).get("settings"):
            return {n: value for n, value in _complete(kept, FORMAT).items() if n != "parts"}
    return {}


def require_same_function(settings: dict, stored: dict) -> None:
    """Refuse a model that would not do with the weights of a run what the run's model does.

    Raises:
        ValueError: It differs in what the tensors do not tell; the message names that.
    """
    usual = default_options(settings["positions"]) if "positions" in settings else {}
    of_timm = settings.get("timm") or stored.get("timm")
    names: tuple[str, ...] = ("timm",) if of_timm else UNTOLD
    now, was = ({**usual, **kind} for kind in (settings, stored))
    other = [
        f"{name} was {was[name]}, now {now[name]}"
        for name in names
        if None not in (was.get(name), now.get(name)) and was[name] != now[name]
    ]
    if stored and other:
        raise ValueError(
            f"the weights of {settings['weights']} belong to another model: {', '.join(other)}; "
            "leave out what says so, or train from other weights"
        )


def lent_settings(given: dict, stored: dict) -> dict:
    """What a run lends whose weights are to be started from: the model's sizes.

    What is said of the model's kind, of its size by a name, or of a model of timm, says it alone.
    Weights of others may lend the number of their heads.
    """
    if not stored:
        return heads_lent(given)
    if stored.get("timm"):
        theirs = {name: stored[name] for name in ("timm", "image_size")}
        return {} if "architecture" in given else theirs
    kind = given.get("architecture", stored["architecture"])
    if given.get("timm") or kind != stored["architecture"]:
        return {}
    lent = {"architecture", "model", *arguments_of(kind)}
    lent -= MODELS["tiny"].keys() if "model" in given else set()
    return {name: value for name, value in stored.items() if name in lent}


def same_settings(stored: dict, given: dict, out: Path) -> dict:
    """The settings of the run that is resumed; what was said again must not differ."""
    other = [name for name, value in given.items() if stored.get(name) != value]
    if other:
        differences = ", ".join(f"{n} was {stored.get(n)}, now {given[n]}" for n in other)
        raise ValueError(f"the run in {out} was made otherwise: {differences}; leave these out")
    return stored


def run_of(options: argparse.Namespace) -> tuple[dict, str | None]:
    """Settings of the run that was named, and the folder of the data, which may be said anew."""
    run = stored_run(Path(options.run))
    refuse_idle_data(options, run["settings"]["data"])
    return run["settings"], getattr(options, "root", None) or run["root"]


def trained_model(options: argparse.Namespace) -> tuple[dict, str | None, nn.Module]:
    """Settings, folder of the data and model, ready to be used, of the run that was named."""
    settings, root = run_of(options)
    model = build_model(settings)
    checkpoint = Path(options.run) / CHECKPOINT_FILE
    if not checkpoint.is_file():
        raise FileNotFoundError(
            f"there is no checkpoint {checkpoint}: its training was stopped before the first; "
            f"train --resume --out {options.run} goes on with it"
        )
    weights, metadata = read_weights(checkpoint)
    notes = load_weights(model, weights, old_grid=grid_of(metadata))
    if adapted := [note for note in notes if not note.endswith((AS_FLOAT, WRITTEN))]:
        raise ValueError(f"checkpoint {checkpoint} is not of this run: {'; '.join(adapted)}")
    notes = [note.replace("weights", str(checkpoint), 1) for note in notes] + _left(metadata)
    for note in notes:
        print(printed(f"vitbook: {note}"), file=sys.stderr)
    model.to(device_type(options.device)).eval()
    return settings, root, model


def asked_part(
    options: argparse.Namespace,
) -> tuple[dict, nn.Module, tuple[Images, Tensor], list[str], tuple[str, ...]]:
    """Settings and model of a run, and a part of its data as ``read_part`` gives it."""
    settings, root, model = trained_model(options)
    return settings, model, *read_part(options, settings, root)


def read_part(
    options: argparse.Namespace, settings: dict, root: str | None
) -> tuple[tuple[Images, Tensor], list[str], tuple[str, ...]]:
    """The part of a run's data that was asked for, a title for each image, and what a reader has
    to know of them, which is printed, too."""
    known: tuple[Images, Tensor]
    part = options.part
    if settings["data"] == "folder":
        pictures = own_pictures.read_asked(settings, part, root)
        known, titles = own_pictures.prepared(pictures, settings), list(pictures.files)
        notes = [*pictures.notes]
        notes += changed(options.run, settings, root, part, known)
    else:
        known = load_part(settings, part, root)
        titles = [f"{part} image {i}" for i in range(len(known[1]))]
        learned = own_pictures.learned_parts(settings)
        notes = [own_pictures.LEARNED.format(part)] if part in learned else []
    for note in notes:
        print(printed(note))
    return known, titles, tuple(notes)


def changed(
    run: str, settings: dict, root: str | None, asked: str, known: tuple[Images, Tensor]
) -> list[str]:
    """Sentences where what was learned from or judged by, and is asked for, is not that of then."""
    learned, notes, checkpoint = settings["learn_from"], [], Path(run) / CHECKPOINT_FILE
    for part in (learned, "test" if learned == "trainval" else "validation"):
        if HELD.get(part, {part}) & HELD.get(asked, {asked}):
            now = fingerprint(*(known if part == asked else load_part(settings, part, root)))
            if part != learned:
                notes += other_test(checkpoint, now, part)
            elif other := difference(_unordered(kept_notes(checkpoint).get("data", {})), now):
                notes.append(OTHERS_LEARNED.format(part, f" ({other})"))
    return notes


def other_test(checkpoint: Path, now: dict, part: str) -> list[str]:
    """A sentence where the fingerprint of what is judged by is not that of the training."""
    before = kept_notes(checkpoint).get("tested", {})
    if isinstance(before, int):  # of an older run, which kept a sum alone
        return [] if before == now["labelled"] else [OTHER_TEST.format(part, "")]
    other = difference(_unordered(before), now)
    return [OTHER_TEST.format(part, f" ({other})")] if other else []


def _unordered(fingerprint: dict) -> dict:
    return {name: value for name, value in fingerprint.items() if name != "crc32"}


def _left(metadata: dict[str, str]) -> list[str]:
    """A sentence where the training that wrote a checkpoint was stopped before its end."""
    notes = json.loads(metadata.get("notes", "{}"))
    if not notes:
        return []
    done = notes["step"]
    total = TrainConfig(**notes["config"]).total_steps(notes["data"]["shape"][0])
    stopped = f"the training stopped after {done:,} of {total:,} updates; --resume goes on with it"
    return [stopped] if done < total else []


def device_type(name: str) -> str:
    """ "cpu" or "cuda", from what was asked."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch sees no GPU (--device cuda); use --device cpu")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
