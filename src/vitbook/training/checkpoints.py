"""Checkpoints: all of a run in one safetensors file that is whole at any moment. Never pickle."""

import json
import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

FORMAT = "vitbook checkpoint 1"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader finds the old or the new one, whatever happens between.

    Raises:
        OSError: It could not be written (a full disk, say); the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name has to reach the disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


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
    return save(tensors, {"format": FORMAT, "notes": json.dumps(notes)})


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
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} is a safetensors file but not a checkpoint of this program, which has the "
            f"format {FORMAT!r}; its metadata says {metadata.get('format')!r}"
        )
    return tensors, json.loads(metadata["notes"])


def restore(
    tensors: dict[str, Tensor], path: Path, model: nn.Module, optimizer: Optimizer | None = None
) -> None:
    """Put a checkpoint's tensors back into a model, and the moments into its optimizer.

    Raises:
        ValueError: The weights are not those of such a model; the message names the first one.
    """
    found = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
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
    if optimizer is None:
        return
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            state.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def load_weights(path: str | Path, model: nn.Module) -> None:
    """Read only the weights of a checkpoint into a model of the same shape.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, no checkpoint, or one of another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}; train first, or name another run")
    tensors, _ = unpack(path.read_bytes(), path)
    restore(tensors, path, model)
