"""Files that are whole or not there at all."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from vitbook.files import write_atomically
from vitbook.models.weights import cast_weights


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and the folders above it; whoever reads sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def write_json(path: Path, content: dict) -> None:
    """Write a JSON object, each entry and each item of a list of objects on a line of its own.

    NaN and infinity are refused.
    """
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(map(_dumps, value)) + "\n ]"
        else:
            text = _dumps(value)
        lines.append(f" {_dumps(key)}: {text}")
    write_bytes(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def half_precision(weights: dict[str, Tensor]) -> bytes:
    """A state dict as safetensors, floating-point entries in float16."""
    cast = cast_weights(weights, torch.float16)
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in cast.items()})


def _dumps(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
