"""Values: written down as plain data without pickle, compared, and named in a sentence.

Checks of chapters (``trial``) and of assignments (``cases``) compare and speak alike: both ask
:func:`objection`.

A value is a number, a string, a truth value, ``None``, a list of values, or an object with one key:
``{"tensor": key}``, ``{"turned": key, "axes": [...]}`` (a tensor whose axes have another order in
memory), ``{"tuple": [...]}``, ``{"dict": {...}}``, ``{"float": "nan"}``, ``{"module": ...}`` (a
layer that is given to a function), ``{"other": "a generator"}``. The tensors themselves stand
beside it under their keys, as in a safetensors file.
"""

import importlib
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

DEPTH, ITEMS = 12, 10_000  # of lists within lists; nothing that is asked for comes near
PACKAGES = ("vitbook.", "torch.nn.")  # where a layer may come from


@dataclass(frozen=True)
class Other:
    """What is no value, in words: "a generator"."""

    words: str


@dataclass(frozen=True)
class Layer:
    """A layer to be built: the path of its class, its arguments, its weights."""

    path: str
    kwargs: dict = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)

    def build(self) -> nn.Module:
        """The layer itself, in evaluation mode.

        Raises:
            ValueError: The path leads to no layer of vitbook or torch.nn.
        """
        module, _, name = self.path.rpartition(".")
        if not f"{module}.".startswith(PACKAGES):
            raise ValueError(f"a layer must come from vitbook or torch.nn, got {self.path}")
        found = getattr(importlib.import_module(module), name, None)
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise ValueError(f"{self.path} is no layer")
        layer = found(**self.kwargs)
        layer.load_state_dict(self.weights)
        return layer.eval()


def encode(value: Any, tensors: dict[str, Tensor], key: str, *, strict: bool = True) -> Any:
    """Turn a value into JSON; its tensors go into ``tensors`` under keys that begin with ``key``.

    Args:
        value: What a function got or gave.
        tensors: Receives the tensors.
        key: Where this value stands ("q1-2.args").
        strict: Refuse what is no value. Otherwise it becomes ``{"other": "what it is"}``.

    Raises:
        ValueError: Too deep, too many items, or (strict) no value.
    """
    return _Encoder(tensors, key, strict).encode(value, key, 0)


class _Encoder:
    def __init__(self, tensors: dict[str, Tensor], key: str, strict: bool):
        self.tensors, self.key, self.strict, self.items = tensors, key, strict, 0

    def encode(self, value: Any, key: str, depth: int) -> Any:
        self.items += 1
        if depth > DEPTH or self.items > ITEMS:
            raise ValueError(f"{self.key} is too large to be written down")
        value = value if isinstance(value, Tensor) else _plain_number(value)
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Tensor) and _plain(value):
            return self.tensor(value.detach().cpu(), key)
        if isinstance(value, list | tuple):
            items = [self.encode(v, f"{key}.{i}", depth + 1) for i, v in enumerate(value)]
            return {"tuple": items} if isinstance(value, tuple) else items
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            named = {n: self.encode(v, f"{key}.{n}", depth + 1) for n, v in value.items()}
            return {"dict": named}
        if isinstance(value, Layer):
            for name, weight in value.weights.items():
                self.tensors[f"{key}.{name}"] = weight.detach().clone().contiguous()
            names = {"weights": key, "names": list(value.weights)}
            return {"module": value.path, "kwargs": value.kwargs, **names}
        if self.strict:
            raise ValueError(f"{key} holds {in_words(value)}, which is no value")
        return {"other": value.words if isinstance(value, Other) else in_words(value)}

    def tensor(self, value: Tensor, key: str) -> Any:
        """A file has its numbers in order; that of its axes in memory stands beside them."""

        def step(axis: int) -> int:  # along an axis of length one it may be any
            return value.stride(axis) if value.shape[axis] > 1 else 0

        axes = sorted(range(value.ndim), key=step, reverse=True)
        turned = not value.is_contiguous() and value.permute(axes).is_contiguous()
        kept = value.permute(axes) if turned else value
        self.tensors[key] = kept.clone(memory_format=torch.contiguous_format)
        return {"turned": key, "axes": axes} if turned else {"tensor": key}


def decode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The value that :func:`encode` wrote. Nothing in it runs: a layer stays a :class:`Layer`.

    Raises:
        ValueError: It is not what ``encode`` writes, or a tensor is missing.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    try:
        match value:
            case {"tensor": key}:
                return tensors[key]
            case {"turned": key, "axes": list(axes)}:
                return _turned_back(tensors[key], axes)
            case {"tuple": list(items)}:
                return tuple(decode(item, tensors) for item in items)
            case {"dict": dict(items)}:
                return {name: decode(item, tensors) for name, item in items.items()}
            case {"float": str(words)}:
                return float(words)
            case {"other": str(words)}:
                return Other(words)
            case {"module": str(path), "kwargs": dict(kwargs), "weights": str(key)}:
                weights = {name: tensors[f"{key}.{name}"] for name in value.get("names", [])}
                return Layer(path, kwargs, weights)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the tensor {error} is missing") from None
    raise ValueError(f"this is no value: {str(value)[:80]}")


def _turned_back(value: Tensor, axes: list) -> Tensor:
    if len(axes) != value.ndim or set(axes) != set(range(value.ndim)):
        raise ValueError(f"this is no value: axes {str(axes)[:80]}")
    return value.permute([axes.index(axis) for axis in range(value.ndim)])


def fresh(value: Any) -> Any:
    """A copy that a function may change, which lies in memory as the value does; a :class:`Layer`
    becomes the layer itself."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(fresh(item) for item in value)
    if isinstance(value, dict):
        return {name: fresh(item) for name, item in value.items()}
    return value.build() if isinstance(value, Layer) else value


def objection(
    got: Any,
    want: Any,
    mistakes: Iterable[tuple[str, Any]],
    otherwise: str,
    tolerance: float | tuple[float, float],
    name: str = "the result",
) -> str | None:
    """None where ``got`` is right, else what to say about it.

    The right result is looked at first, in any floating type: nobody who has it can be accused of a
    mistake that happens to give the same.

    Args:
        got: What an answer gave.
        want: The right result.
        mistakes: (question, result) of each known mistake; the first one that ``got`` agrees with
            has its question asked. None of them is looked at where ``got`` is right.
        otherwise: What to say where shape and type are right and the numbers are not.
        tolerance: Of the right result and of the mistakes alike: relative and absolute, or one
            number for both.
        name: What a sentence about shape or type calls ``got``.
    """
    rtol, atol = tolerance if isinstance(tolerance, tuple) else (tolerance, tolerance)
    wrong = difference(got, want, rtol, atol, name)
    if wrong is None:
        return None
    for question, gives in mistakes:
        if difference(got, gives, rtol, atol) is None:
            return question
    return wrong or otherwise


def is_unanswered(got: Any) -> bool:
    """Is this what a stub returns?"""
    if isinstance(got, tuple | list) and any(item is ... for item in got):
        return True
    return got is None or got is ... or (isinstance(got, Other) and got.words == "...")


def difference(
    got: Any, want: Any, rtol: float, atol: float, name: str = "the result"
) -> str | None:
    """None where both agree, "" where only numbers differ, else what is wrong with shape or type.

    Any floating type will do, any type of whole numbers (NumPy's own is not the same everywhere), a
    list for a tuple, and a tensor or array of one number for a number.
    """
    if isinstance(want, Tensor):
        return _tensor_difference(got, want, rtol, atol, name)
    if isinstance(want, bool | int | float):
        return _number_difference(got, want, rtol, atol, name)
    if isinstance(want, str):
        same = isinstance(got, str) and got.strip().lower() == want.strip().lower()
        return None if same else "" if isinstance(got, str) else _kinds(got, "a string", name)
    if isinstance(want, list | tuple):
        numbers = all(isinstance(item, bool | int | float) for item in want)
        if isinstance(got, Tensor) and got.shape == (len(want),) and numbers:
            got = got.tolist()  # of that length only: a huge one would become millions of objects
        if not isinstance(got, list | tuple) or len(got) != len(want):
            return _kinds(got, f"{len(want)} values in a list or tuple", name)
        pairs = [(f"entry {i} of {name}", g, w) for i, (g, w) in enumerate(zip(got, want))]  # noqa: B905
    elif isinstance(want, dict):
        if not isinstance(got, dict):
            return _kinds(got, f"a dictionary with the keys {', '.join(want)}", name)
        if lacking := set(want) - set(got):
            return f"{name} lacks {', '.join(sorted(lacking))}"[:300]
        if more := set(got) - set(want):
            return f"{name} should not have {', '.join(sorted(map(_quoted, more))[:4])}"
        pairs = [(f"{name}[{key!r}]", got[key], want[key]) for key in want]
    else:
        return None if got is want else _kinds(got, in_words(want), name)
    found = [difference(g, w, rtol, atol, part) for part, g, w in pairs]
    wrong = [words for words in found if words is not None]
    return max(wrong, key=bool) if wrong else None  # a wrong shape before a wrong number


def in_words(value: Any) -> str:
    """What a value is, for a message: "a tensor of shape (2, 3)"."""
    if value is ...:
        return "..."
    if isinstance(value, Other):
        return value.words
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {value.shape}"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to write it out
        return "a whole number of more than 300 digits"
    if isinstance(value, str):
        return f"str {_quoted(value)}"
    if isinstance(value, bool | int | float):
        return f"{type(value).__name__} {value!a}"[:80]
    return "None" if value is None else f"a value of the type {type(value).__name__}"


def _quoted(text: str) -> str:
    """A text that an answer gave: cut, and in quotes that it cannot close."""
    return '"' + ascii(text[:60])[1:-1][:60].replace('"', "'") + '"'


def _plain(value: Tensor) -> bool:
    kind = value.layout is torch.strided and not value.is_quantized and not value.is_complex()
    return kind and value.device.type in ("cpu", "cuda", "mps")


def _kinds(got: Any, expected: str, name: str) -> str:
    return f"{name} should be {expected}, got {in_words(got)}"


def wrong_number(got: Any, name: str) -> str | None:
    """What to say about a ``got`` that is not one finite number, or None."""
    got = _plain_number(got)
    if isinstance(got, bool) or not isinstance(got, int | float):
        return _kinds(got, "one number", name)
    if isinstance(got, float) and not math.isfinite(got):
        kind = "NaN; where does it come from?" if math.isnan(got) else "infinite"
        return f"{name} is {kind}"
    return None


def wrong_tensor(
    got: Any, shape: tuple[int, ...], family: str, name: str, *, finite: bool = True
) -> str | None:
    """What to say about a ``got`` that is not a tensor of that shape and family, or None."""
    if not isinstance(got, Tensor):
        return _kinds(got, f"a tensor of shape {tuple(shape)}", name)
    if tuple(got.shape) != tuple(shape):
        return f"{name} has the shape {tuple(got.shape)}, expected {tuple(shape)}"
    if family_of(got.dtype) != family:
        return f"{name} has the type {got.dtype}, expected {family}"
    if finite and got.is_floating_point():
        for kind, words in ((torch.isnan, "NaN"), (torch.isinf, "infinite numbers")):
            if bool(kind(got).any()):
                return f"{name} holds {words}; where do they come from?"
    return None


def family_of(dtype: torch.dtype) -> str:
    """What is told apart of the types of a tensor, in words."""
    if dtype is torch.bool:
        return "torch.bool"
    return "floating-point numbers" if dtype.is_floating_point else "whole numbers"


def _plain_number(got: Any) -> Any:
    """Python's own number for a tensor of one and for a number of NumPy, SymPy or ``fractions``;
    anything else as it is."""
    if isinstance(got, Tensor) and got.numel() == 1:
        return got.item()
    if isinstance(got, bool | np.bool_):
        return bool(got)
    if isinstance(got, numbers.Rational) and got.denominator == 1:
        return int(got.numerator)
    return float(got) if isinstance(got, numbers.Real) else got


def _number_difference(
    got: Any, want: bool | int | float, rtol: float, atol: float, name: str
) -> str | None:
    got = _plain_number(got)
    if isinstance(want, bool):
        return (
            (None if got == want else "")
            if isinstance(got, bool)
            else _kinds(got, "True or False", name)
        )
    if isinstance(want, int) and isinstance(got, int) and not isinstance(got, bool):
        return None if got == want else ""  # however large
    if wrong := wrong_number(got, name):
        return None if not math.isfinite(want) and _close(got, want, rtol, atol) else wrong
    if isinstance(want, int):
        return None if got == want else ""
    return None if _close(got, want, rtol, atol) else ""


def _close(got: Any, want: float, rtol: float, atol: float) -> bool:
    try:
        got = float(got)
    except (OverflowError, TypeError, ValueError):  # a whole number beyond every float
        return False
    one, other = torch.tensor([got, want], dtype=torch.float64)
    return bool(torch.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def _tensor_difference(got: Any, want: Tensor, rtol: float, atol: float, name: str) -> str | None:
    if want.ndim == 0 and isinstance(got, int | float):
        try:
            got = torch.tensor(got)
        except (OverflowError, ValueError, RuntimeError):  # a whole number beyond every tensor
            return ""
    finite = not want.is_floating_point() or bool(want.isfinite().all())
    shape, family = tuple(want.shape), family_of(want.dtype)
    if wrong := wrong_tensor(got, shape, family, name, finite=finite):
        return wrong
    if not want.is_floating_point():
        return None if torch.equal(got.long(), want.long()) else ""
    agree = torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol, equal_nan=True)
    return None if agree else ""
