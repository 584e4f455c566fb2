"""Weights in files of others: what a file holds, and which of it a model takes.

No code in a file runs: torch's own restricted reader is used, and an object of a class that it
does not know becomes an empty one.
"""

import json
import pickle
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vitbook.files import CHECKPOINT, what_instead
from vitbook.models.names import to_ours

SHOWN = 3  # names in a sentence
ALIKE = 0.9  # of the tensors of the best: as good a choice
FOREIGN_CLASSES = 100  # that a file may name
# What of several is meant, where a file does not say: what its training meant to be used.
PREFERRED = (r"ema|average", r"teacher", r"", r"student|online")
# Files of a folder, the first that is there; a run's, then those of the hub.
IN_FOLDER = (
    "checkpoint.safetensors",
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
# Names of the patch kernel, by which the weights of a ViT are known whatever stands before them.
KERNELS = (
    "patch_embed.proj.weight",
    "conv_proj.weight",
    "stem.proj.weight",
    "stem.0.weight",
    "embeddings.patch_embeddings.projection.weight",
    "embeddings.patch_embedding.weight",
)

Found = dict[str, dict[str, Tensor]]


def read_weights(path: Path) -> Found:
    """Every state dict of a file, by the name under which it stands in it ("" for the file).

    Args:
        path: A safetensors file, one of torch, the index of shards, or a folder that holds one.

    Raises:
        ValueError: There is no such file, or no weights are in it; the message says what is.
    """
    if path.is_dir():
        path = next(
            (path / name for name in IN_FOLDER if (path / name).is_file()), path / IN_FOLDER[0]
        )
    if not path.is_file():
        raise ValueError(
            f"--weights must be a file, or the folder of a run, but there is no {path}"
        )
    if instead := what_instead(path):
        raise ValueError(f"{path} holds no weights: {instead}")
    try:
        if is_safetensors(path):
            return {"": open_safetensors(path)[0]}
        if path.suffix == ".json":
            return {"": _shards(path)}
        whole = _torch_file(path)
    except (pickle.UnpicklingError, AttributeError, TypeError, KeyError):
        raise ValueError(_code(path)) from None
    except (ValueError, RuntimeError, EOFError, IndexError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as weights ({_first_line(error)}); a state dict saved "
            "by safetensors.torch.save_file or torch.save can"
        ) from None
    if found := dict(state_dicts(whole)):
        return found
    if isinstance(whole, _Empty) or any(isinstance(x, _Empty) for x in _values(whole)):
        raise ValueError(_code(path))
    holds = f"the names {some(whole)}" if isinstance(whole, Mapping) else type(whole).__name__
    raise ValueError(f"{path} holds no state dict, names with a tensor each; it has {holds}")


def is_safetensors(path: Path) -> bool:
    """Whether a file is one by its first bytes, a length and a JSON object, or by its name."""
    with open(path, "rb") as file:
        return file.read(9)[8:] == b"{" or path.suffix == ".safetensors"


def open_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file (of a checkpoint only the model's), and its metadata.

    Raises:
        ValueError: It is none.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            start = "model." if metadata.get("format") == CHECKPOINT else ""
            names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118
            return {name.removeprefix(start): file.get_tensor(name) for name in names}, metadata
    except SafetensorError as error:
        raise ValueError(f"path must be a safetensors file, {path} is none: {error}") from error


def state_dicts(whole: Any, name: str = "", depth: int = 3) -> Iterator[tuple[str, dict]]:
    """The mappings in a checkpoint whose values are tensors, but for those of an optimizer."""
    if not isinstance(whole, Mapping) or "optim" in name:
        return
    tensors = {key: x for key, x in whole.items() if isinstance(key, str) and isinstance(x, Tensor)}
    if len(tensors) > len(whole) / 2:  # a number of epochs may stand beside
        yield name, tensors
    for key, value in whole.items() if depth else ():
        yield from state_dicts(value, f"{name}.{key}" if name else str(key), depth - 1)


def take(found: Found, own: Iterable[str], where: str) -> tuple[dict[str, Tensor], list[str]]:
    """What of a file has the names of a model, and sentences on what was taken and left.

    Args:
        found: Of :func:`read_weights`.
        own: The names of the model's tensors.
        where: The file, for sentences.

    Raises:
        ValueError: None of it has; the message tells the names there are.
    """
    own = set(own)
    fits = {
        (name, prefix): count
        for name, state in found.items()
        for prefix, count in _prefixes(state, own).items()
    }
    if not fits:
        held = "; ".join(f"{name or 'it'} has {some(state)}" for name, state in found.items())
        raise ValueError(f"{where} has no name of the model, which has {some(own)}; {held}")
    return _best(found, fits, where)


def take_ours(found: Found, own: Iterable[str], where: str) -> tuple[dict[str, Tensor], list[str]]:
    """``take`` for a model of this package: weights of torchvision, timm or transformers, too.

    What has no names that are known comes back whole, to be refused by name where it is loaded.
    """
    own, fits = set(own), {}
    for name, state in found.items():
        for prefix in {"", *_prefixes(state, {*KERNELS, *own})}:
            try:
                fits[name, prefix] = len(own & to_ours(_without(state, prefix)).keys())
            except (ValueError, RuntimeError):
                continue
    fits = {place: count for place, count in fits.items() if count}
    return _best(found, fits, where) if fits else (next(iter(found.values())), [])


def _best(found: Found, fits: dict[tuple[str, str], int], where: str) -> tuple[dict, list[str]]:
    most = max(fits.values())
    equal = [place for place, count in fits.items() if count > ALIKE * most]
    equal = [
        (n, p) for n, p in equal if not any(n == m and p != q and p.startswith(q) for m, q in equal)
    ]
    name, prefix = min(equal, key=lambda place: (_rank("".join(place)), -fits[place]))
    state, notes = _without(found[name], prefix), []
    words = [f"{n or 'the file'}{f' with the prefix {p}' if p else ''}" for n, p in equal]
    chosen = words[equal.index((name, prefix))]
    if len(equal) > 1:
        notes.append(f"{where} holds {' and '.join(words)}: {chosen} is taken")
    elif name or prefix:
        notes.append(f"{where}: {chosen} is taken")
    if prefix and (left := [n for n in found[name] if not n.startswith(prefix)]):
        notes.append(f"{where}: left out, without this prefix: {some(left)}")
    kinds = {x.dtype for x in state.values() if x.is_floating_point()}
    if kinds and all(kind.itemsize < 4 for kind in kinds):
        notes.append(f"{where} is in {' and '.join(sorted(map(str, kinds)))}")
    return state, notes


def _prefixes(state: Mapping[str, Tensor], own: set[str]) -> Counter[str]:
    """What stands before names of the model, and before how many."""
    counts: Counter[str] = Counter()
    for name in state:
        places = [0, *(m.end() for m in re.finditer(r"\.", name))]
        counts.update(name[:at] for at in places if name[at:] in own)
    return counts


def _without(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): x for n, x in state.items() if n.startswith(prefix)}


def _rank(place: str) -> int:
    matches = (i for i, words in enumerate(PREFERRED) if words and re.search(words, place))
    return next(matches, PREFERRED.index(""))


def _shards(index: Path) -> dict[str, Tensor]:
    """The tensors of all files that an index names."""
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("JSON, and no index of shards") from None
    if missing := [name for name in names if not (index.parent / name).is_file()]:
        raise ValueError(f"the index names {some(missing)}, which do not lie beside it")
    found: dict[str, Tensor] = {}
    for name in names:
        shard = index.parent / Path(name).name
        found |= open_safetensors(shard)[0] if is_safetensors(shard) else _torch_file(shard)
    return found


class _Empty:
    """Stands for an object of a class that is not known here: nothing of it is run or kept."""

    def __init__(self, *arguments: object, **named: object):
        pass

    def __setstate__(self, state: object) -> None:
        pass


class _EmptyMapping:
    """The same for one that is filled like a dict: its values are kept."""

    def __new__(cls, *arguments: object, **named: object) -> Any:
        return OrderedDict()


def _torch_file(path: Path) -> Any:
    """What torch's restricted reader gives, with empty objects for what it does not know."""
    names: list[str] = []
    kind: type = _Empty
    while True:
        # Arrays of numpy are never filled like a dict. A name without its module is a builtin.
        kinds: list[Any] = [(_Empty if n.startswith("numpy") else kind, n) for n in names]
        kinds += [(of, f"builtins.{name}") for of, name in kinds]
        try:
            with torch.serialization.safe_globals(kinds):
                return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            named = re.search(r"Unsupported global: GLOBAL (\S+) was not", str(error))
            if named is not None and named[1] not in names and len(names) < FOREIGN_CLASSES:
                names.append(named[1])
            elif "Can only SETITEM" in str(error) and kind is _Empty:
                kind = _EmptyMapping
            else:
                raise


def _values(whole: Any) -> list:
    return list(whole.values()) if isinstance(whole, Mapping) else []


def _code(path: Path) -> str:
    return (
        f"{path} holds more than tensors, a whole model perhaps, and code in it is not run; "
        "save its weights alone, torch.save(model.state_dict(), ...)"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def some(names: Iterable[object]) -> str:
    """The first names, and how many more there are."""
    words = [str(name) for name in names]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
