"""Files that are whole or not there at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor


def write_bytes(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: whoever reads sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


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
    kept = {
        name: (value.half() if value.is_floating_point() else value).detach().cpu().contiguous()
        for name, value in weights.items()
    }
    if bad := [k for k, v in kept.items() if v.is_floating_point() and not v.isfinite().all()]:
        raise ValueError(f"weights {', '.join(bad)} do not fit into {torch.float16}")
    return save(kept)


def _dumps(value) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
