"""What is told of weights outside of their names and shapes: in their file, beside it, by a run."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from torch import nn

from vitbook.command.architectures import arguments_of
from vitbook.models.foreign import Found, heads_in, read_weights, some

CHECKPOINT_FILE = "checkpoint.safetensors"
EPS = 1e-5  # of a norm; no smaller one shows in what it gives
# Files beside weights that tell how images were normalized, and what they call mean and std.
STATISTICS_FILES = {
    "preprocessor_config.json": ("image_mean", "image_std"),  # of transformers
    "config.json": ("mean", "std"),  # of timm
}


def lending_run(weights: Path) -> Path | None:
    """The folder of the run that weights are of: its own, that of its head, or the file in one."""
    folder = weights.parent if weights.name == CHECKPOINT_FILE else weights
    if not (folder / CHECKPOINT_FILE).is_file():
        return None
    return next((run for run in (folder, folder.parent) if (run / "run.json").is_file()), None)


def beside(path: Path, name: str) -> dict:
    """What a file of JSON in the folder of weights holds; {} where there is none."""
    found: Any = None
    with suppress(OSError, ValueError, RecursionError):
        place = (path if path.is_dir() else path.parent) / name
        found = json.loads(place.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}


def heads_told(found: Found, path: Path) -> tuple[str, int] | None:
    """Who says how many heads weights had, the file itself or one beside it, and how many."""
    told = [(f"{path}{place and f' ({place})'}", heads) for place, heads in found.heads]
    for folder, name in ((path, "config.json"), (lending_run(path), "run.json")):
        known = heads_in(beside(folder, name)) if folder else []
        known.sort(key=lambda one: "vision" not in one[0])
        told += [(f"the {name} beside {path}", heads) for _, heads in known]
    return told[0] if told else None


def heads_lent(given: dict) -> dict:
    """The number of heads of weights that are no run's, where they need one and tell it."""
    weights, kind = given.get("weights"), given.get("architecture", "vit")
    if not weights or given.get("timm") or "num_heads" not in arguments_of(kind) - given.keys():
        return {}
    told = heads_told(read_weights(Path(weights)), Path(weights))
    return {"num_heads": told[1]} if told else {}


def require_told(model: nn.Module, found: Found, path: Path) -> list[str]:
    """Sentences on what names and shapes of weights do not tell, and nothing beside them.

    Raises:
        ValueError: Another number of heads is told than the model has.
    """
    heads = {part.num_heads for part in model.modules() if hasattr(part, "num_heads")}
    if not heads:
        return []
    told, notes = heads_told(found, path), []
    if told is None:
        notes += [
            f"no file says how many heads they had: {some(heads)}, as in the model, are taken"
        ]
    elif heads != {told[1]}:
        raise ValueError(
            f"{told[0]} says {told[1]} heads, the model has {some(heads)}: num_heads={told[1]}"
        )
    config = beside(path, "config.json")
    vision = config.get("vision_config")
    config = vision if isinstance(vision, dict) else config
    if (gelu := config.get("hidden_act", "gelu")) != "gelu":
        notes.append(f"the config.json beside says {gelu}, the model has gelu")
    ours = {part.eps for part in model.modules() if isinstance(part, nn.LayerNorm)}
    eps = config.get("layer_norm_eps")
    if isinstance(eps, float) and eps > EPS and ours != {eps}:
        notes.append(
            f"the config.json beside says layer_norm_eps {eps:g}, the model has {some(ours)}"
        )
    return notes


def statistics_told(path: Path) -> tuple[dict, str]:
    """Mean and std of the images that weights were trained on, and a sentence on who says them."""
    for name, keys in STATISTICS_FILES.items():
        config = beside(path, name)
        nested = config.get("pretrained_cfg")
        config = nested if isinstance(nested, dict) else config
        mean, std = (config.get(key) for key in keys)
        if config.get("do_normalize") is False:
            mean, std = [0.0] * 3, [1.0] * 3
        if mean is None and std is None:
            continue
        said = f"the {name} beside {path} says mean {mean} and std {std}"
        if _three(mean) and _three(std) and 0 not in std:
            return {"mean": mean, "std": std}, f"{said}: taken"
        return {}, f"{said}, no three numbers in 0 to 1: not taken"
    return {}, ""


def _three(numbers: Any) -> TypeGuard[list]:
    """Whether there is a number for each of three channels, in the scale of [0, 1]."""
    return (
        isinstance(numbers, list)
        and len(numbers) == 3
        and all(type(x) in (int, float) and 0 <= x <= 1 for x in numbers)
    )


def of_other_timm(name: str, path: Path) -> list[str]:
    """A sentence where the file beside weights names another model of timm."""
    theirs = beside(path, "config.json").get("architecture")
    if not isinstance(theirs, str) or theirs.partition(".")[0] == name.partition(".")[0]:
        return []
    return [f"the config.json beside {path} says {theirs}, and not {name}: is this its kind?"]
