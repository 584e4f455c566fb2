"""Checkpoints: all of a run in one safetensors file that is whole at any moment. Never pickle."""

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from vitbook.files import CHECKPOINT
from vitbook.layers.encoder import name_today
from vitbook.models.foreign import SUM, checksum, require_whole

SUMS = {SUM: "model.", "crc32 of the optimizer": "optimizer."}


def pack(model: nn.Module, optimizer: Optimizer, notes: dict) -> bytes:
    """Weights, AdamW's moments and notes as the bytes of one safetensors file.

    Args:
        model: Its state goes in as ``model.<name>``.
        optimizer: Its state goes in as ``optimizer.<number of the parameter>.<name>``.
        notes: Anything JSON can hold; kept in the file's metadata.
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    sums = {word: checksum(_below(start, tensors)) for word, start in SUMS.items()}
    return save(tensors, {"format": CHECKPOINT, "notes": json.dumps(notes)} | sums)


def _below(start: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(start): x for name, x in tensors.items() if name.startswith(start)}


def unpack(data: bytes, path: Path) -> tuple[dict[str, Tensor], dict]:
    """The tensors and the notes in the bytes of a checkpoint; the path is for the message only."""
    try:
        tensors = load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except (SafetensorError, ValueError) as error:
        raise ValueError(
            f"checkpoint {path} is damaged ({error}); delete it and train again, or restore a copy"
        ) from None
    if metadata.get("format") != CHECKPOINT:
        raise ValueError(
            f"{path} is a safetensors file but not a checkpoint of this program, which has the "
            f"format {CHECKPOINT!r}; its metadata says {metadata.get('format')!r}"
        )
    for word, start in SUMS.items():
        require_whole(_below(start, tensors), metadata.get(word), path)
    return tensors, json.loads(metadata["notes"])


def restore(tensors: dict[str, Tensor], path: Path, model: nn.Module, optimizer: Optimizer) -> None:
    """Put a checkpoint's tensors back into a model, and the moments into its optimizer.

    Raises:
        ValueError: The weights are not those of such a model; the message names the first one.
    """
    found = {name_today(name): x for name, x in _below("model.", tensors).items()}
    wanted = model.state_dict()
    for name in sorted(found.keys() | wanted.keys()):
        there = tuple(found[name].shape) if name in found else "nothing"
        here = tuple(wanted[name].shape) if name in wanted else "nothing"
        if there != here:
            raise ValueError(
                f"checkpoint {path} is of another model: it holds {there} as {name}, this model "
                f"needs {here}; build the model with the arguments it was trained with"
            )
    model.load_state_dict(found)
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _below("optimizer.", tensors).items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
