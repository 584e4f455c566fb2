"""Numbers that prose takes from a run: ``glue`` stores one where the book's builder reads it."""

from __future__ import annotations

import math
import re
from numbers import Number
from typing import Any

_PREFIX = "application/papermill.record/"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NOTHING = object()


def glue(name: Any = _NOTHING, value: Any = _NOTHING, /, **values: Any) -> None:
    """Keep values under names that the text of the same page can quote.

    ``glue("mean_entropy", entropy)`` or ``glue(mean_entropy=entropy)`` in a cell, then
    the role ``glue:text`` with ``mean_entropy:.2f`` in the prose. Nothing is shown: neither in the
    page nor in JupyterLab or Colab, and outside a notebook (a script, plain Python) nothing happens
    at all.

    Args:
        name: what the text of the page calls the value: lower-case letters, digits and underscores.
        value: a number, a string, or a tensor or array that holds exactly one number.
        **values: the same as keywords, several at once.

    Raises:
        TypeError: for a name without a value, and for values that are not one number or string.
        ValueError: for a name of another form, and for NaN or infinite numbers.
    """
    if (name is _NOTHING) != (value is _NOTHING):
        raise TypeError("glue takes a name and a value, as glue('entropy', x) or entropy=x")
    pairs = {} if name is _NOTHING else {name: value}
    if name in values:
        raise ValueError(f"name {name!r} is given twice")
    pairs.update(values)
    if not pairs:
        raise TypeError("glue takes at least one name and value")
    plain = {_require_name(key): _plain(key, item) for key, item in pairs.items()}
    for key, item in plain.items():
        _publish(key, item)


def _require_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            "name must be lower-case letters, digits and underscores, beginning with a letter, "
            f"got {name!r}"
        )
    return name


def _plain(name: str, value: Any) -> int | float | str:
    """The Python number or string inside ``value``."""
    if not isinstance(value, str | Number) or hasattr(value, "item"):
        shape = tuple(getattr(value, "shape", ()))
        if not hasattr(value, "item") or math.prod(shape) != 1:
            what = f"shape {shape}" if shape else type(value).__name__
            raise TypeError(f"{name} must be one number or string, got {what}")
        value = value.item()
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be one number or string, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def _publish(name: str, value: int | float | str) -> None:
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is None:
        return
    shell.display_pub.publish(
        data={_PREFIX + "text/plain": repr(value)},
        metadata={"scrapbook": {"name": name, "mime_prefix": _PREFIX}},
    )
