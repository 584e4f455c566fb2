"""What crosses between grader and worker: JSON and the bytes of a safetensors file, nothing else.

A frame is 8 bytes (the lengths of the two parts), a JSON object, and the tensors it names. Values
are written by :func:`vitcheck.values.encode`. A student's code may have written what the grader
reads here: it becomes numbers, texts and tensors, or a :class:`WireError`; it never becomes code.
"""

import json
import re
import struct
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from gradebox.words import quoted
from vitcheck.values import ITEMS, Layer, Other, decode, encode

PREFIX = struct.Struct(">II")
MOST_JSON = 4_000_000  # bytes
# How a worker calls what is no value; whoever writes something else speaks for himself.
OWN = re.compile(
    r"\.\.\.|a (tensor|numpy array) of shape \([\d, ]{,60}\)|a (list|tuple|dict) of \d{1,20}"
    r"|a whole number of more than 300 digits",
    re.ASCII,
)


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
        _count(plain)
        names = blob[8 : 8 + int.from_bytes(blob[:8], "little")]
        if len(names) > MOST_JSON or names.count(b"[") > 2 * ITEMS:  # two lists for each tensor
            raise WireError("a reply of too many tensors")
        value = decode(plain, load(blob) if blob else {})
        return _from_outside(value)
    except WireError:
        raise
    except Exception as error:  # whatever a hostile file makes safetensors say
        raise WireError(f"a reply that holds no value ({type(error).__name__})") from None


def _count(plain: object) -> None:
    """Refuse more than a worker writes down, before anything is made of it."""
    left, seen = [plain], 0
    while left:
        one, seen = left.pop(), seen + 1
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if seen > 3 * ITEMS:  # a value, its kind, and the list in it
            raise WireError("a reply of too many values")


def _from_outside(value: Any) -> Any:
    """Without layers, and with other words than a worker's own in quotes."""
    if isinstance(value, Layer):
        raise WireError("a layer is no result")
    if isinstance(value, Other) and not OWN.fullmatch(value.words):
        return Other(f"something that your notebook calls {quoted(value.words)}")
    if isinstance(value, dict):
        return {name: _from_outside(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_from_outside, value))
    return value
