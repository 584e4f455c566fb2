"""Arrays as text in a script, which a page can load without a server."""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

KINDS = {"u8": "u1", "f16": "<f2", "f32": "<f4"}


def packed(values: Any, kind: str = "f16") -> dict:
    """An array as ``{"shape", kind: base64, "sum": CRC-32 of its bytes}``, little-endian.

    Args:
        kind: "u8" for bytes; "f16", which is what records hold; "f32" for what was never rounded.

    Raises:
        ValueError: A number does not fit.
    """
    array = np.asarray(values)
    with np.errstate(over="ignore"):  # said below, in words
        array = array.astype(KINDS[kind])
    if not np.isfinite(array).all():
        raise ValueError("values must be finite in half precision, below 65,504")
    data = array.tobytes()
    return {
        "shape": list(array.shape),
        kind: base64.b64encode(data).decode(),
        "sum": zlib.crc32(data),
    }


def model(settings: Mapping[str, Any], weights: Mapping[str, Any]) -> dict:
    """A VisionTransformer as vit.js reads it: its arguments and its state dict, with the table of
    positions where that is computed and not learned."""
    from vitbook.layers.positions import FixedPositions
    from vitbook.models.vit import VisionTransformer

    built = VisionTransformer(**settings)
    built.load_state_dict(dict(weights))
    arrays = {name: packed(array.numpy()) for name, array in built.state_dict().items()}
    if isinstance(built.positions, FixedPositions):  # worked out, so no part of a saved model
        arrays["positions.table"] = packed(built.positions.table.numpy(), "f32")
    return {"settings": dict(settings), "weights": arrays}


def script(name: str, data: Mapping[str, Any]) -> str:
    """The text of a data script."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f"vitbook.live.data({json.dumps(name)}, {text});\n"
