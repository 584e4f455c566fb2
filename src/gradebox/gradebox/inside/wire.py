"""What crosses between grader and worker: JSON and the bytes of a safetensors file, nothing else.

A frame is 8 bytes (the lengths of the two parts), a JSON object, and the tensors it names. Values
are written by :func:`vitcheck.values.encode`. A student's code may have written what the grader
reads here: it becomes numbers, texts and tensors, or a :class:`WireError`; it never becomes code.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from vitcheck.values import Layer, Other, decode, encode

PREFIX = struct.Struct(">II")
MOST_JSON = 4_000_000  # bytes


class WireError(ValueError):
    """A frame that does not hold what a frame may hold."""


def pack(header: dict, blob: bytes = b"") -> bytes:
    """One frame."""
    text = json.dumps(header).encode()
    return PREFIX.pack(len(text), len(blob)) + text + blob


def sizes(prefix: bytes, most: int) -> tuple[int, int]:
    """The two lengths that 8 bytes announce, refused before anything of that size is read."""
    text, blob = PREFIX.unpack(prefix)
    if text > MOST_JSON or blob > most:
        raise WireError(f"a reply of {text + blob:,} bytes is too large")
    return text, blob


def header(text: bytes) -> dict:
    """The JSON object of a frame.

    Raises:
        WireError: it is something else.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a reply that is no JSON ({type(error).__name__})") from None
    if not isinstance(found, dict):
        raise WireError("a reply that is no JSON object")
    return found


def pack_value(header: dict, value: Any) -> bytes:
    """A frame with the value that a student's code gave; what is no value is put into words.

    Raises:
        ValueError: it is nested too deeply or has too many items.
    """
    tensors: dict[str, Tensor] = {}
    plain = encode(value, tensors, "value", strict=False)
    return pack({**header, "value": plain}, save(tensors) if tensors else b"")


def unpack_value(plain: object, blob: bytes) -> Any:
    """The value of a frame that anybody may have written.

    Raises:
        WireError: it is not what :func:`pack_value` writes.
    """
    try:
        value = decode(plain, load(blob) if blob else {})
        return _without_layers(value)
    except WireError:
        raise
    except Exception as error:  # whatever a hostile file makes safetensors say
        raise WireError(f"a reply that holds no value ({type(error).__name__})") from None


def _without_layers(value: Any) -> Any:
    if isinstance(value, Layer):
        raise WireError("a layer is no result")
    if isinstance(value, Other):
        return Other(str(value.words)[:200])
    for item in value.values() if isinstance(value, dict) else value if _many(value) else ():
        _without_layers(item)
    return value


def _many(value: Any) -> bool:
    return isinstance(value, list | tuple)
