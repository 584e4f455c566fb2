"""Weights in files of others: what a file holds, and which of it a model takes.

No code in a file runs: torch's own restricted reader is used, and an object of a class that it
does not know becomes an empty one.
"""

import json
import pickle
import re
import tarfile
import warnings
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from vitbook.files import CHECKPOINT, printable, what_instead
from vitbook.models.fitting import IDLE
from vitbook.models.names import renamed, to_ours

SHOWN = 3  # names in a sentence
DEPTH = 6  # of mappings in mappings
ALIKE = 0.9  # of the tensors of the best: as good a choice
FOREIGN_CLASSES = 100  # that a file may name
# What of several is meant, where a file does not say: what its training meant to be used.
PREFERRED: tuple[str, ...] = (r"(?<![a-z])ema(?![a-z])|average", r"teacher")
PREFERRED += (r"^(state_dict|model|params|module|\.)+$", r"")
PREFERRED += (r"student|online|momentum|encoder_k",)  # of MoCo its authors take the other encoder
# What has the names of weights and is none.
NO_WEIGHTS = r"(?<![a-z])(grad(ient)?|mask|fisher|delta|moment)s?(_dict|_diag)?(?=\.|$)|exp_avg"
PREFERRED += (rf"{NO_WEIGHTS}|(?<![a-z])grad",)
TIME = re.compile(r"(?:epoch|step|iter)\D*(\d+)")  # the last of several is taken
CODE = re.compile(r"Unsupported global|Can only|reduce for|is blocked")  # torch does not run it
CUT = re.compile("not fully covered|invalid header length")  # words of safetensors
OPTIMIZER = re.compile(r"(?<![a-z])optim(izers?)?(?![a-z])|param_groups")
# What an optimizer keeps of one tensor.
MOMENTS = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg"}
# What scripts call the number of heads, and parts of their settings that are of another model.
HEADS = {"num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads"}
OTHER_PART = re.compile(r"(?<![a-z])text|decoder|predictor")
HEAD = re.compile(r"(heads?|classifier|fc|visual_projection)\b")
# Tensors that are fitted to the images and classes: another shape is no sign of another model.
FITTED = re.compile(r"(head|classifier|fc)\b|positions\.table|pos_embed|.*patch_embed\.|stem\.")
READABLE = "a state dict saved by safetensors.torch.save_file or torch.save can be read"
# Words in the names of what stands beside weights, which are not those that the model used.
ADDED = re.compile(r"lora_|base_layer|parametrizations|weight_(orig|mask)\b")
MERGE = "save the weights with what was added to them (LoRA, pruning, norms) merged into them"
# What stands in the middle of names, where parts of a model were wrapped one by one.
WRAPPED = re.compile(r"_(fsdp|checkpoint)_wrapped_module\.|(?<=\d\.)_orig_mod\.")
AS_FLOAT = "read as float32"
SUM = "crc32"  # what the metadata of our files call the sum of their tensors
TIMM = "--timm NAME trains a model of their kind"
LENT = "a run lends what its model was built with: leave out the options that say otherwise"
# What the sentences of a refusal name and the command has no option for; depth it has.
NO_OPTION = re.compile(
    r"(layer_scale|pre_norm|final_norm|num_registers|qkv_bias) decides|channels=|old_grid"
)
SHARD = re.compile(r".*-\d{5}-of-(?!00001\.)\d{5}\.\w+")
# Files of a folder, the first that is there; a run's, then those of the hub.
IN_FOLDER = (
    "checkpoint.safetensors",
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
# Others that hold weights, too, if they are no shard.
OF_WEIGHTS = re.compile(r"(?!.*-\d{5}-of-\d{5}\.)(.*\.safetensors|.*model.*\.(bin|pth?))")
SHARDED = (
    "torch.distributed.checkpoint saved it in parts; "
    "torch.distributed.checkpoint.format_utils.dcp_to_torch_save({}, 'weights.pth') joins them"
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
LEGACY = re.compile(rb"\x80[\x02\x03]\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.")  # torch.save until 1.5
# How other files begin that are named as weights, and what they are.
BEGINNINGS = {
    b"\x89HDF": "a file of HDF5, Keras's perhaps",
    b"GGUF": "a file of GGUF",
    b"\x93NUMPY": "an array of numpy",
    b"\x1f\x8b": "packed by gzip; unpack it",
    b"BZh": "packed by bzip2; unpack it",
    b"\xfd7zXZ": "packed by xz; unpack it",
    b"7z\xbc\xaf": "packed by 7-Zip; unpack it",
    b"Rar!": "packed by RAR; unpack it",
    b"\x80": "a pickle that torch.save did not write",
}


class Found(dict[str, dict[str, Tensor]]):
    """The tensors of a file by the mapping that holds them ("" for the file itself), sentences on
    it, its grid, where it says how many heads, and whether it is the checkpoint of a run."""

    notes: tuple[str, ...] = ()
    grid: tuple[int, int] | None = None
    heads: tuple[tuple[str, int], ...] = ()
    of_run = False


def read_weights(path: Path) -> Found:
    """Every tensor of a file, by the name of the mapping that holds it ("" for the file).

    Args:
        path: A safetensors file, one of torch, the index of shards, or a folder that holds one.

    Raises:
        ValueError: There is no such file, or no weights are in it; the message says what is.
    """
    path, notes = _in_folder(path) if path.is_dir() else (path, [])
    if not path.is_file():
        raise ValueError(
            f"--weights must be a file, or the folder of a run, but there is no {path}"
        )
    if path.suffix == ".distcp":
        raise ValueError(f"{path} is one of several: {SHARDED.format(repr(str(path.parent)))}")
    if SHARD.fullmatch(path.name):
        raise ValueError(f"{path} is one of several files: name the folder or the index of them")
    whole, metadata = _shards(path, notes) if path.suffix == ".json" else _whole(path, notes)
    if not (found := Found(state_dicts(whole))):
        code = [_class(x) for x in (whole, *_values(whole)) if isinstance(x, _Empty)]
        if code:
            raise ValueError(_code(path, f"objects of {some(dict.fromkeys(code))}"))
        holds = (
            f"the names {some(whole) or '(none)'}"
            if isinstance(whole, Mapping)
            else type(whole).__name__
        )
        holds += ", an optimizer's state: name the file of the model" if _optimizer(whole) else ""
        raise ValueError(f"{path} holds no state dict, names with a tensor each; it has {holds}")
    for name, value in whole.items():
        if isinstance(value, _Empty) and _rank(str(name)) < _rank(""):
            notes.append(f"{path}: {name} is left out, {_class(value)} with code, which is not run")
    found.notes, found.grid = tuple(notes), grid_of(metadata)
    found.heads = tuple(heads_in(metadata) + heads_in(whole))
    found.of_run = metadata.get("format") == CHECKPOINT
    return found


def heads_in(whole: Any, name: str = "", depth: int = 5) -> list[tuple[str, int]]:
    """In which part of somebody's settings it is said how many heads a model has, and how many."""
    with suppress(ValueError, RecursionError):  # of text that is no JSON
        whole = json.loads(whole) if isinstance(whole, str) and whole.startswith("{") else whole
    whole = whole.state if isinstance(whole, _Empty) else whole
    found = []
    for key, value in whole.items() if isinstance(whole, Mapping) and depth else ():
        place = f"{name}.{key}" if name else str(key)
        if key in HEADS and re.fullmatch(r"\d+", str(value)):
            found.append((name, int(value)))
        elif not OTHER_PART.search(place):
            found += heads_in(value, place, depth - 1)
    return found


def _optimizer(whole: Any) -> bool:
    """Whether there is the state of an optimizer in what a file holds."""
    return isinstance(whole, Mapping) and any(
        OPTIMIZER.search(str(name).lower()) or name in MOMENTS or _optimizer(value)
        for name, value in whole.items()
    )


def _in_folder(folder: Path) -> tuple[Path, list[str]]:
    """The file of weights in a folder, and a sentence where there are several."""
    names = [name for name in IN_FOLDER if (folder / name).is_file()]
    lies = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    if not names:
        if any(name.endswith(".distcp") for name in lies):
            raise ValueError(
                f"{folder} holds no file of weights: {SHARDED.format(repr(str(folder)))}"
            )
        raise ValueError(
            f"there is no {' or '.join(IN_FOLDER[::2])} in {folder}: name the file of the weights; "
            f"it holds {some(lies) or 'nothing'}"
        )
    others = [name for name in lies if OF_WEIGHTS.fullmatch(name) and not _optimizer({name: 0})]
    names = list(dict.fromkeys(names + others))
    several = f"{folder} holds {' and '.join(names)}: {names[0]} is taken"
    return folder / names[0], [several] if len(names) > 1 else []


def _whole(path: Path, notes: list[str]) -> tuple[Any, dict[str, str]]:
    """All that a file of safetensors or of torch holds, and the text beside it; a note if what a
    file of torch holds is not what was written."""
    if instead := what_instead(path) or _no_weights(path):
        readable = "" if ";" in instead else f"; {READABLE}"
        raise ValueError(f"{path} holds no weights: {instead}{readable}")
    try:
        if is_safetensors(path):
            return open_safetensors(path)
        whole = _torch_file(path)
        notes += _checksums(path)
        return whole, {}
    except Exception as error:  # readers meet damage with errors of every kind
        if CUT.search(str(error)) or _without_end(path):
            raise ValueError(
                f"{path} cannot be read as weights: it is cut, perhaps; download it again"
            ) from None
        if isinstance(error, pickle.UnpicklingError) and CODE.search(str(error)):
            raise ValueError(_code(path, "more than tensors, a whole model perhaps")) from None
        raise ValueError(
            f"{path} cannot be read as weights ({_first_line(error)}); {READABLE}"
        ) from None


def _no_weights(path: Path) -> str:
    """What a file is by its first bytes, if no weights of torch or safetensors can be in it."""
    with open(path, "rb") as file:
        start = file.read(512)
    if start[8:9] == b"{" or LEGACY.match(start):
        return ""
    if start.startswith(b"PK\x03\x04"):
        return _in_zip(path)
    for beginning, what in BEGINNINGS.items():
        if start.startswith(beginning):
            return f"it is {what}"
    if tarfile.is_tarfile(path):
        return "it is a tar archive; unpack it"
    words = " ".join(start.decode("utf-8", "replace").split())[:60]
    if words.isprintable() and "\ufffd" not in words:
        return f'it is text, "{words}"'
    of = "ONNX, as it is called" if path.suffix == ".onnx" else f"another kind, {start[:8]!r}"
    return f"its beginning is of {of}, and not of torch or safetensors"


def _in_zip(path: Path) -> str:
    """What a zip archive is, if torch.save did not write it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return ""  # cut, perhaps: told where torch meets it
    if any("/code/" in name for name in names):
        return "it is a program of TorchScript; save torch.jit.load(...).state_dict() of it"
    if any(re.fullmatch(r"[^/]+/data\.pkl", name) for name in names):
        return ""
    if any(name.endswith("archive_format") for name in names):
        return "it is a program of torch.export"
    return f"it is a zip archive of {some(names)}"


def _checksums(path: Path) -> list[str]:
    """A sentence on what has not the checksum that was written with it, which torch passes over."""
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        wrong = archive.testzip()
    other = "has another checksum than is written: it is damaged, or was saved without checksums"
    return [f"{path}: {wrong} {other}"] if wrong else []


def _without_end(path: Path) -> bool:
    """Whether a file begins as a zip archive and lacks what ends one."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04" and not zipfile.is_zipfile(path)


def is_safetensors(path: Path) -> bool:
    """Whether a file is one by its first bytes, a length and a JSON object."""
    with open(path, "rb") as file:
        return file.read(9)[8:] == b"{"


def grid_of(metadata: Mapping[str, str]) -> tuple[int, int] | None:
    """(rows, columns) of patches, where the text beside the weights tells them."""
    grid = re.fullmatch(r"(\d+)x(\d+)", metadata.get("grid", ""))
    return (int(grid[1]), int(grid[2])) if grid else None


def open_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file (of a checkpoint only the model's), and its metadata.

    Raises:
        ValueError: It is none, or its tensors are not those that were written.
    """
    try:
        with open(path, "rb") as opened:  # whose number is a name where the path is no UTF-8
            place = path if printable(str(path)) == str(path) else f"/dev/fd/{opened.fileno()}"
            with safe_open(place, framework="pt") as file:
                metadata = file.metadata() or {}
                start = "model." if metadata.get("format") == CHECKPOINT else ""
                names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118
                held = {name.removeprefix(start): file.get_tensor(name) for name in names}
    except SafetensorError as error:
        why = what_instead(path) or error
        raise ValueError(f"path must be a safetensors file, {path} is none: {why}") from error
    require_whole(held, metadata.pop(SUM, None), path)
    return held, metadata


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """How many bytes tensors have, and a sum that tells these from others."""
    size = crc = 0
    for name in sorted(tensors):
        held = tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data
        size, crc = size + len(held), zlib.crc32(held, crc)
    return f"{size} bytes, {crc:08x}"


def require_whole(tensors: Mapping[str, Tensor], written: str | None, path: Path) -> None:
    """Refuse tensors with another sum than was written, unless they were cast or chosen since."""
    now = checksum(tensors) if written else None
    if now and written and now != written and now.split()[0] == written.split()[0]:
        raise ValueError(
            f"{path} is damaged: its numbers are not those that were written (checksum {written}, "
            f"now {now}); restore a copy, or train again into another folder"
        )


def state_dicts(whole: Any, name: str = "", depth: int = DEPTH) -> Iterator[tuple[str, dict]]:
    """The tensors in each mapping or list of a checkpoint, but for those of an optimizer."""
    whole = dict(enumerate(whole)) if name and isinstance(whole, (list, tuple)) else whole
    if not isinstance(whole, Mapping) or OPTIMIZER.search(name.lower()):
        return
    tensors = {  # a nested one has no shape
        key: x for key, x in whole.items() if isinstance(x, Tensor) and not x.is_nested
    }
    if MOMENTS & tensors.keys():
        return
    if tensors:
        yield name, renamed(tensors, lambda key: WRAPPED.sub("", str(key)))
    for key, value in whole.items() if depth else ():
        yield from state_dicts(value, f"{name}.{key}" if name else str(key), depth - 1)


def take(
    found: Mapping[str, dict[str, Tensor]], own: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], list[str]]:
    """What of a file has the names of a model, and sentences on what was taken and left.

    Args:
        found: Of :func:`read_weights`.
        own: The model's tensors.
        where: The file, for sentences.

    Raises:
        ValueError: None of it has, or what has is no plain tensor; the message tells the names.
    """
    fits = {
        (name, prefix): _fit(_without(state, prefix), own)
        for name, state in found.items()
        for prefix in _prefixes(state, own)
    }
    if not fits and len(found) > 1:  # a mapping for each part of the model, perhaps
        whole = Found({"": _flat(found)})
        whole.notes = getattr(found, "notes", ())
        return take(whole, own, where)
    if not fits:
        names = f"which has {some(own)}; it has {some(_flat(found))}"
        raise ValueError(f"{where} has no name of the model, {names}")
    return _best(found, fits, own, where)


def take_ours(
    found: Mapping[str, dict[str, Tensor]], own: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], list[str]]:
    """``take`` for a model of this package: weights of torchvision, timm or transformers, too.

    What has no names that are known comes back whole, to be refused by name where it is loaded.
    """
    fits, wrong = {}, None
    for name, state in found.items():
        shapes = {key: torch.empty(tuple(x.shape), device="meta") for key, x in state.items()}
        for prefix in dict.fromkeys(("", *_prefixes(state, {**dict.fromkeys(KERNELS), **own}))):
            try:
                fits[name, prefix] = _fit(to_ours(_without(shapes, prefix)), own)
            except ValueError as error:
                wrong = error
            except RuntimeError as error:
                raise ValueError(f"{where} is of no model: {_first_line(error)}") from None
    fits = {place: fit for place, fit in fits.items() if fit[0]}
    if wrong and max((same for same, _ in fits.values()), default=0) < ALIKE * len(own):
        raise ValueError(f"{where} cannot be taken: {wrong}")
    if fits:
        return _best(found, fits, own, where)
    return (_flat(found) if len(found) > 1 else next(iter(found.values()))), []


def _flat(found: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """All tensors by the names on the way to them."""
    return {f"{m}.{n}" if m else n: x for m, held in found.items() for n, x in held.items()}


def _fit(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> tuple[int, int]:
    """How many names of the model there are, and how many are missing, too many, or of another
    shape."""
    same = sum(name in state for name in own)
    firm = [name for name in {**own, **state} if not FITTED.match(name) and not IDLE.match(name)]
    shapes = ([getattr(x.get(name), "shape", None) for x in (state, own)] for name in firm)
    return same, sum(theirs != ours for theirs, ours in shapes)


def _best(
    found: Mapping[str, dict[str, Tensor]],
    fits: dict[tuple[str, str], tuple[int, int]],
    own: Mapping[str, Tensor],
    where: str,
) -> tuple[dict, list[str]]:
    most = max(count for count, _ in fits.values())
    equal = [place for place, (count, _) in fits.items() if count > ALIKE * most]
    equal = [
        (n, p) for n, p in equal if not any(n == m and p != q and p.startswith(q) for m, q in equal)
    ]
    few = 2 * most < len(own)  # will be refused: with the names of what is largest
    name, prefix = min(
        equal,
        key=lambda at: (
            _blank(_without(found[at[0]], at[1])),
            -len(_without(found[at[0]], at[1])) if few else fits[at][1],
            _rank(".".join(at)),
            -max(map(int, TIME.findall(".".join(at))), default=0),
            -fits[at][0],
        ),
    )
    state, notes = _without(found[name], prefix), list(getattr(found, "notes", ()))
    words = [f"{n or 'the file'}{f' with the prefix {p}' if p else ''}" for n, p in equal]
    chosen = words[equal.index((name, prefix))]
    if len(equal) > 1:
        several = f"{where} holds {' and '.join(words)}: {chosen} is taken"
        notes.append(f"{several}; to take another, save it alone")
    elif name or prefix:
        notes.append(f"{where}: {chosen} is taken")
    starts = {m: tuple(start for n, start in equal if n == m) for m in found}
    left = _flat(
        {m: {n: x for n, x in found[m].items() if not n.startswith(starts[m])} for m in found}
    )
    if head := _head_beside(state, left, f"{name}.{prefix}" if name else prefix, own):
        notes.append(f"{where}: {some(head.values())} beside it: taken, too")
        state |= {n: left.pop(place) for n, place in head.items()}
    if left:
        notes.append(f"{where}: left out: {some(left)}")
    state, kinds = _plain(state, own, where)
    if re.search(NO_WEIGHTS, name.lower()) or _is_mask(state):
        what = f"{name or 'a file'} of 0 and 1 alone" if _is_mask(state) else name
        raise ValueError(f"{where} holds no weights: {what} is none (a mask, say, or gradients)")
    return state, notes + kinds


def _head_beside(
    state: Mapping[str, Tensor], left: Mapping[str, Tensor], place: str, own: Iterable[str]
) -> dict[str, str]:
    """Where the head of a backbone without one stands, beside it or above it, by its own names."""
    if any(HEAD.match(name) for name in state):
        return {}
    above = [place[: match.end()] for match in re.finditer(r"\.|^", place)]
    return {n: a + n for n in own if HEAD.match(n) for a in above if a + n in left}


def _plain(
    state: Mapping[str, Tensor], own: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], list[str]]:
    """Weights are dense tensors of real numbers; those of less than 32 bits as float32, and said.

    Raises:
        ValueError: One is something else; the message tells its name and what it is.
    """
    plain, kinds, odd = {}, dict[str, None](), dict[str, list[str]]()
    no_numbers = not any(tensor.is_meta for tensor in own.values())
    for name, x in state.items():
        what = ""
        if type(x) not in (Tensor, nn.Parameter) and type(x).__module__.startswith("torch."):
            what = f"{type(x).__name__}, no plain tensor"
        elif x.layout is not torch.strided or x.is_quantized or x.is_complex():
            what = f"{x.dtype}, {x.layout}" if x.layout is not torch.strided else str(x.dtype)
        elif x.is_meta and no_numbers:
            what = "a shape without numbers (meta)"
        elif not x.numel() and x.ndim != 3:
            what = f"empty, of the shape {tuple(x.shape)}: kept in other files, perhaps"
        elif not x.numel() and name not in own:
            continue  # (1, 0, D), of no registers
        elif x.is_floating_point() and x.dtype.itemsize < 4:
            kinds[str(x.dtype)] = None
            try:
                x = x.float()
            except RuntimeError:
                what = str(x.dtype)
        plain[name] = x
        if what:
            odd.setdefault(what, []).append(name)
    if odd:
        sentences = (f"{some(names)}: {what}" for what, names in odd.items())
        raise ValueError(f"{where} holds no weights that can be loaded: {'; '.join(sentences)}")
    return plain, [f"{where} is in {' and '.join(kinds)}: {AS_FLOAT}"] if kinds else []


def _blank(state: Mapping[str, Tensor]) -> bool:
    """Whether there is nothing but zeros, as in a mean over a training that has not begun."""
    plain = [x.detach() for x in state.values() if type(x) in (Tensor, nn.Parameter)]
    plain = [x for x in plain if x.layout is torch.strided and not x.is_quantized]
    return not any(x.is_meta or str(x.dtype).endswith("x2") or x.any() for x in plain)  # x2: packed


def _is_mask(state: Mapping[str, Tensor]) -> bool:
    """Whether every matrix has no number but 0 and 1, and both are there."""
    matrices = [x for x in state.values() if x.ndim > 1]
    if any(x.is_meta or not ((x == 0) | (x == 1)).all() for x in matrices):
        return False
    return any(x.any() for x in matrices) and not all(x.all() for x in matrices)


def their_names(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """What tensors are called in a file, by our names for them; of those that we join, all."""
    names = ["", *weights]  # 0 stands for what the file does not have
    numbered = {n: torch.full((1,) * x.ndim, i) for i, (n, x) in enumerate(weights.items(), 1)}
    with suppress(ValueError, RuntimeError):  # what is of no model has no names of ours
        ours = {name: x.flatten().tolist() for name, x in to_ours(numbered).items()}
        return {name: " + ".join(names[i] for i in of if i) for name, of in ours.items()}
    return {}


def called(text: str, names: Mapping[str, str]) -> str:
    """A sentence with the tensors called as a file calls them."""
    return re.sub(r"[\w.]*\w", lambda word: names.get(word[0], word[0]), text)


@contextmanager
def telling(
    notes: list[str], weights: Mapping[str, Tensor] | None = None, of_run: bool = False
) -> Iterator[None]:
    """Say in a refusal what had been taken of a file, too, and what else the command can do.

    With ``weights``, as they were taken, tensors are called as they are there.
    """
    try:
        yield
    except ValueError as error:
        advice = [TIMM] if re.search(r"decides|channels=|old_grid", str(error)) else []
        advice = [f"what no option sets: {TIMM}"] if NO_OPTION.search(str(error)) else advice
        advice = [MERGE] if ADDED.search(str(error)) else advice
        advice = [LENT] if of_run and "holds nan" not in str(error) else advice
        said = called(str(error), their_names(weights or {}))
        raise ValueError("; ".join([said, *advice, *notes])) from None


def _prefixes(state: Mapping[str, Tensor], own: Mapping[str, Any]) -> Counter[str]:
    """What stands before names of the model, and before how many."""
    counts: Counter[str] = Counter()
    for name in state:
        places = [0, *(m.end() for m in re.finditer(r"\.", name))]
        counts.update(name[:at] for at in places if name[at:] in own)
    return counts


def _without(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): x for n, x in state.items() if n.startswith(prefix)}


def _rank(place: str) -> int:
    matches = (i for i, words in enumerate(PREFERRED) if words and re.search(words, place.lower()))
    return next(matches, PREFERRED.index(""))


def _shards(index: Path, notes: list[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of all files that an index names; notes as of ``_whole``."""
    if instead := what_instead(index):
        raise ValueError(f"{index} holds no weights: {instead}")
    try:
        place = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted({str(name) for name in place.values()})
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise ValueError(f"{index} holds no weights, and is no index of shards") from None
    if missing := [name for name in names if not (index.parent / name).is_file()]:
        raise ValueError(f"the index names {some(missing)}, which do not lie beside it")
    found: dict[str, Tensor] = {}
    for name in names:
        held = _whole(index.parent / name, notes)[0]
        if not isinstance(held, Mapping):
            raise ValueError(f"{index.parent / name} holds no state dict but {type(held).__name__}")
        found |= {k: x for k, x in held.items() if k not in found or place.get(k) == name}
    if lost := [name for name in place if name not in found]:
        raise ValueError(f"{index} names {some(lost)}, which no file of its list holds")
    return found, {}


class _Empty:
    """Stands for an object of a class that is not known here: nothing of it is run."""

    state: Any = None

    def __init__(self, *arguments: object, **named: object):
        pass

    def __setstate__(self, state: object) -> None:
        self.state = state


FILLED = {"append": list, "SETITEM": OrderedDict}  # words of torch -> what it would fill


def _torch_file(path: Path) -> Any:
    """What torch's restricted reader gives, with empty objects for what it does not know."""
    kinds: dict[str, type] = {}  # a class of its own for each name: an error tells which
    while True:
        known: list[Any] = [(kind, name) for name, kind in kinds.items()]
        known += [(kind, f"builtins.{name}") for kind, name in known]  # as those are reported
        try:
            with (
                torch.serialization.safe_globals(known),
                warnings.catch_warnings(action="ignore"),  # to who saved it, not to who reads it
                open(path, "rb") as file,
            ):
                return torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            said = str(error)
            named = re.search(r"Unsupported global: GLOBAL (\S+) was not", said)
            filled = re.search(r"Can only (append|SETITEM).*got <class '(\S+)'>", said)
            if named and named[1] not in kinds and len(kinds) < FOREIGN_CLASSES:
                kinds[named[1]] = type(named[1], (_Empty,), {"__module__": "builtins"})
            elif filled and kinds.get(filled[2], nn.Module).__base__ is _Empty:
                make = FILLED[filled[1]]  # what is filled like a list or a dict keeps its values
                kinds[filled[2]] = type(filled[2], (), {"__new__": lambda *_, make=make: make()})
            else:
                raise


def _values(whole: Any) -> list:
    return list(whole.values()) if isinstance(whole, Mapping) else []


def _class(thing: _Empty) -> str:
    return "numpy (arrays)" if (name := type(thing).__name__).startswith("numpy") else name


def _code(path: Path, what: str) -> str:
    return (
        f"{path} holds {what}, and code in it is not run; "
        "save its weights alone, torch.save(model.state_dict(), ...)"
    )


def _first_line(error: Exception) -> str:
    said = str(error).rpartition("WeightsUnpickler error: ")[2].strip()  # else that of torch
    return (said.splitlines() or [type(error).__name__])[0].split(". ")[0]


def some(names: Iterable[object]) -> str:
    """The first names, and how many more there are."""
    words = [str(name) for name in names]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
