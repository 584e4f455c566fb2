"""Questions as data: what a function is called with, what it should give, what mistakes give.

Public checks of an assignment and its grader read the same format. No code that solves a question
is needed to check it, so none is handed out; no code that checks runs where an answer runs.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from vitcheck.values import (
    Layer,
    decode,
    difference,
    encode,
    fresh,
    in_words,
    is_unanswered,
    objection,
)

__all__ = [
    "CHANGED",
    "Assignment",
    "Case",
    "CaseError",
    "Make",
    "Mistake",
    "Question",
    "Verdict",
    "call_case",
    "changed",
    "compare",
    "decode",
    "encode",
    "is_unanswered",
    "outcome",
    "read_cases",
    "run_case",
    "write_cases",
]
FORMAT = 1
UNANSWERED = "not answered yet"
CHANGED = "an input was changed in place; whoever called you still needs it"
CHANGED_MODEL = "a model that you were given was changed: its weights, or its mode"
DETACHED = (
    "the result is right; do gradients reach every input and parameter? Nothing may be detached"
)
LOOSER = (1e-3, 1e-4)  # of gradients: they add up more numbers
START_VALUES = "start_values"
_CALL = ("name", "is_value", "make", "args", "kwargs", "before", "gradients")
_JSON, _TENSORS = "cases.json", "cases.safetensors"


class CaseError(Exception):
    """An answer cannot be called as the question says; the message is for who wrote it."""


@dataclass(frozen=True)
class Make:
    """Build the answer's class and load these weights into it; for evaluation, or for training."""

    name: str
    kwargs: dict
    weights: dict[str, Tensor]
    training: bool = False


@dataclass(frozen=True)
class Mistake:
    """What a known mistake gives, and the question to whoever made it."""

    question: str
    gives: Any


@dataclass(frozen=True)
class Case:
    """One call and its result.

    ``name`` is the function, or with ``make`` the method, that is called with ``args`` and
    ``kwargs``; with ``is_value`` it is a variable whose value is the answer. With ``make``,
    ``start_values(*names)`` is no method: it gives the values of those parameters before any
    weights are loaded. A buffer in the place of a parameter is missing there. ``before`` are the
    arguments of earlier calls: whatever they left behind, this call gives the same. With ``claims``
    many results are right, and :func:`outcome` of them is compared. With ``gradients`` what is
    compared is ``{"result": ..., "gradients": {...}}``, see :func:`call_case`.
    """

    id: str
    stage: str
    name: str
    want: Any
    points: float
    public: bool = False
    is_value: bool = False
    make: Make | None = None
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    before: tuple[tuple, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    mistakes: tuple[Mistake, ...] = ()
    otherwise: str = "the numbers differ"
    claims: str = ""
    gradients: bool = False

    def only_call(self) -> Case:
        """What may lie where answers run: neither what the call should give, nor whether it is
        public, nor what it is worth. How long a tuple is, which the question says, is left."""
        want = _asked(self)
        outline = (None,) * len(want) if isinstance(want, tuple) else None
        call = {part: getattr(self, part) for part in _CALL}
        return Case(
            "case", "", want={"result": outline} if self.gradients else outline, points=0, **call
        )


@dataclass(frozen=True)
class Question:
    """One question with its cases. A ``manual`` one is read by a person, who has the ``rubric``."""

    id: str
    title: str
    points: float
    minutes: int
    difficulty: int
    objective: str
    defines: tuple[str, ...] = ()
    manual: bool = False
    rubric: str | None = None
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True)
class Assignment:
    """All questions of one drawn variant, for the release it was made with."""

    assignment: str
    variant: str
    release: str
    questions: tuple[Question, ...]

    def __getitem__(self, question: str) -> Question:
        for found in self.questions:
            if found.id == question:
                return found
        known = ", ".join(q.id for q in self.questions)
        raise KeyError(f"there is no question {question!r}; there are {known}")

    def only(self, wanted: Callable[[Case], bool]) -> Assignment:
        """The same with those cases only, such as ``lambda case: case.public``."""
        questions = (
            replace(q, cases=tuple(c for c in q.cases if wanted(c))) for q in self.questions
        )
        return replace(self, questions=tuple(questions))


@dataclass(frozen=True)
class Verdict:
    """Whether a result is right, and if not a sentence or question about it. A right one may come
    in another floating type than asked for, which those who use it may not expect."""

    ok: bool
    message: str = ""
    other_type: bool = False


def write_cases(path: Path | io.BytesIO, assignment: Assignment) -> None:
    """Write a zip with ``cases.json`` and ``cases.safetensors``; equal cases give equal bytes.

    Raises:
        ValueError: A case holds what is no value.
    """
    words, tensors = to_parts(assignment)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in ((_JSON, words), (_TENSORS, tensors)):
            member = zipfile.ZipInfo(name)  # with a fixed date
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)


def to_parts(assignment: Assignment) -> tuple[bytes, bytes]:
    """The two files, for whoever puts them elsewhere."""
    tensors: dict[str, Tensor] = {}
    data = {
        "format": FORMAT,
        **{key: getattr(assignment, key) for key in ("assignment", "variant", "release")},
        "questions": [_question_out(question, tensors) for question in assignment.questions],
    }
    return json.dumps(data, indent=1, allow_nan=False).encode(), save(tensors)


def read_cases(source: Path | str | io.BytesIO) -> Assignment:
    """Read what :func:`write_cases` wrote, from a zip, a folder, or an open file.

    Raises:
        ValueError: It is not there, damaged, or of another format.
    """
    what = str(source) if isinstance(source, Path | str) else "the data of the checks"
    try:
        if isinstance(source, Path | str) and Path(source).is_dir():
            parts = [(Path(source) / name).read_bytes() for name in (_JSON, _TENSORS)]
        else:
            with zipfile.ZipFile(source) as archive:
                parts = [archive.read(name) for name in (_JSON, _TENSORS)]
        return from_parts(*parts)
    except FileNotFoundError:
        raise ValueError(f"{what} is not there") from None
    except (OSError, KeyError, zipfile.BadZipFile, TypeError, SafetensorError) as error:
        raise ValueError(f"{what} is damaged: {error}") from error


def from_parts(words: bytes, tensors: bytes) -> Assignment:
    """The other way from :func:`to_parts`.

    Raises:
        ValueError, KeyError, TypeError: They are damaged.
    """
    data, loaded = json.loads(words), load(tensors)
    if data.get("format") != FORMAT:
        raise ValueError(f"these cases have the format {data.get('format')!r}, not {FORMAT}")
    return Assignment(
        data["assignment"],
        data["variant"],
        data["release"],
        tuple(_question_in(question, loaded) for question in data["questions"]),
    )


def to_text(assignment: Assignment) -> str:
    """The zip as one line of letters, for a notebook's cell."""
    file = io.BytesIO()
    write_cases(file, assignment)
    return base64.b85encode(file.getvalue()).decode()


def from_text(text: str) -> Assignment:
    """The other way from :func:`to_text`.

    Raises:
        ValueError: The text was changed.
    """
    try:
        return read_cases(io.BytesIO(base64.b85decode("".join(text.split()))))
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"the data of the checks were changed: {error}") from error


def run_case(namespace: Mapping[str, Any], case: Case) -> Any:
    """Call the answer as the case says, with copies of its inputs; gives what it returned.

    Args:
        namespace: Where the answer's names are.
        case: The call; its result is not looked at.

    Raises:
        CaseError: The name is missing or cannot be called so, the weights do not fit, or an input
            was changed in place. Whatever the answer itself raises is passed on.
    """
    result, inputs = call_case(namespace, case)
    if changed(case, inputs):
        raise CaseError(CHANGED)
    return result


def call_case(namespace: Mapping[str, Any], case: Case) -> tuple[Any, tuple[tuple, dict]]:
    """The same without a look at the inputs: gives the result and ``(args, kwargs)`` after the
    call, for :func:`changed`, which may be asked in another process. What is not called, a value
    or a stub, leaves them as they were. Where the case asks for gradients, those of each learned
    parameter and each input stand beside the result; zeros where none arrives.

    Raises:
        CaseError: The name is missing or cannot be called so, the weights do not fit, or a layer
            was changed.
    """
    untouched = (case.args, case.kwargs)
    learned: dict[str, Tensor] = {}
    found = _look_up(namespace, case.make.name if case.make else case.name)
    if case.is_value:
        return found, untouched
    if case.make:
        found = _built(found, case.make, load=case.name != START_VALUES)
        if found is None:
            return None, untouched
        if case.name == START_VALUES:
            return _start_values(found, *case.args), untouched
        if not hasattr(found, case.name):
            raise CaseError(f"{case.make.name} has no method {case.name}")
        if case.gradients:
            learned = dict(found.named_parameters())
        found = getattr(found, case.name)
    if not callable(found):
        raise CaseError(f"{case.name} should be a function, it is {in_words(found)}")
    for earlier in case.before:
        found(*fresh(earlier))
    args, kwargs = fresh(case.args), fresh(case.kwargs)
    if not case.gradients:
        result = _unpacked(found(*args, **kwargs), case)
        given = [*case.args, *case.kwargs.values()]
        if any(map(_other, [*args, *kwargs.values()], given)):
            raise CaseError(CHANGED_MODEL)
        return result, (args, kwargs)
    with torch.enable_grad():
        args, kwargs, inputs = _tracked(args, kwargs)
        result = _unpacked(found(*args, **kwargs), case)
        return _with_gradients(result, learned | inputs), (args, kwargs)


def changed(case: Case, inputs_after: Any) -> bool:
    """Were the inputs changed in place? Layers are not compared.

    ``inputs_after`` is what :func:`call_case` gave beside the result, or what came back from
    ``encode`` and ``decode``; whatever else it is counts as changed.
    """
    return _differs(inputs_after, (case.args, case.kwargs))


def outcome(result: Any, case: Case) -> Any:
    """What is compared: the result, or what it shows of the case's ``claims``, in words."""
    if not case.claims:
        return result
    from vitcheck.paired_models import judged  # which imports models

    weights, images = case.args
    return judged(result, weights, images, case.claims)


def compare(got: Any, case: Case) -> Verdict:
    """Accept the right result; else name the first mistake that fits, then a wrong shape or type.

    ``got`` is what :func:`run_case` gave, or what came back from ``encode`` and ``decode``.
    """
    if is_unanswered(got):
        return Verdict(False, UNANSWERED)
    got, want, tolerance = outcome(got, case), case.want, (case.rtol, case.atol)
    other_type = bool(_types(got) - _types(want))
    looks = case.make is not None and case.name == START_VALUES
    name, otherwise = "the list of learned parameters" if looks else "the result", case.otherwise
    mistakes = [(mistake.question, mistake.gives) for mistake in case.mistakes]
    if case.gradients:
        got = got if isinstance(got, dict) and set(got) == set(want) else {"result": got}
        right = difference(got["result"], want["result"], *tolerance) is None
        part = "gradients" if right else "result"
        got, want = got.get(part, {}), want[part]
        mistakes = [(asks, gives[part]) for asks, gives in mistakes if isinstance(gives, dict)]
        if right:
            name, otherwise, tolerance = "the list of learned parameters", DETACHED, LOOSER
    said = got if case.claims else otherwise
    words = objection(got, want, mistakes, said, tolerance, name)
    return Verdict(True, other_type=other_type) if words is None else Verdict(False, words)


def _look_up(namespace: Mapping[str, Any], name: str) -> Any:
    if name not in namespace:
        raise CaseError(
            f"there is no {name}; was its cell run, and is the name as the question says?"
        )
    return namespace[name]


def _built(found: Any, make: Make, *, load: bool) -> Any:
    """The object, its weights loaded or only compared in shape; None from a stub, which has no
    parameters yet. Buffers of its own keep what they hold."""
    if not callable(found):
        raise CaseError(f"{make.name} should be a class, it is {in_words(found)}")
    made = found(**fresh(make.kwargs))
    if make.weights:
        if not isinstance(made, nn.Module):
            raise CaseError(f"{make.name} should be a torch.nn.Module")
        own = {name for name, _ in made.named_buffers() if name not in make.weights}
        state = {name: value for name, value in made.state_dict().items() if name not in own}
        have = {name: tuple(weight.shape) for name, weight in state.items()}
        need = {name: tuple(weight.shape) for name, weight in make.weights.items()}
        if not have:
            return None
        if have != need:
            raise CaseError(f"{make.name} should have the parameters {need}, it has {have}")
        if load:
            made.load_state_dict(made.state_dict() | make.weights)
    return made.train(make.training) if hasattr(made, "train") else made


def _asked(case: Case) -> Any:
    """The right result, without its gradients."""
    return case.want["result"] if isinstance(case.want, dict) and case.gradients else case.want


def _unpacked(result: Any, case: Case) -> Any:
    """What unpacks to the values of a tuple, such as a tensor that holds them one after the other,
    an array or a generator, as a tuple."""
    want = _asked(case)
    if not isinstance(want, tuple) or isinstance(result, str | dict | tuple | list):
        return result
    if isinstance(result, Tensor | np.ndarray):
        return tuple(result) if result.shape[:1] == (len(want),) else result
    return tuple(islice(result, len(want) + 1)) if isinstance(result, Iterable) else result


def _types(value: Any) -> set[torch.dtype]:
    """The floating types of a result's tensors."""
    if isinstance(value, dict | tuple | list):
        return set().union(*map(_types, value.values() if isinstance(value, dict) else value))
    return {value.dtype} if _floats(value) else set()


def _floats(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _tracked(args: tuple, kwargs: dict) -> tuple[tuple, dict, dict[str, Tensor]]:
    """Inputs that may be changed in place, and the leaves that the floating ones come from."""
    leaves = {}

    def track(name: str, value: Any) -> Any:
        if not _floats(value):
            return value
        leaves[name] = value.requires_grad_()
        return value.clone()

    args = tuple(track(f"input {i + 1}", value) for i, value in enumerate(args))
    return args, {name: track(name, value) for name, value in kwargs.items()}, leaves


def _with_gradients(result: Any, leaves: dict[str, Tensor]) -> Any:
    """The result, and the gradients of a weighted sum of all its numbers, if it is numbers; what a
    stub gives, as it is."""
    if is_unanswered(result):
        return result
    parts = list(result) if isinstance(result, tuple | list) else [result]
    if not all(map(_floats, parts)):
        return {"result": result, "gradients": {}}
    sums = [(part * torch.linspace(-1, 2, part.numel()).view(part.shape)).sum() for part in parts]
    learned = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    total = sum(sums) + 0 * sum(leaf.sum() for leaf in learned.values())  # reaches each of them
    found = torch.autograd.grad(total, list(learned.values()))
    return {"result": result, "gradients": dict(zip(learned, found, strict=True))}


def _start_values(made: nn.Module, *names: str) -> dict[str, Tensor]:
    learned = {name: value for name, value in made.named_parameters() if value.requires_grad}
    return {name: value for name, value in learned.items() if name in names}


def _other(now: Any, before: Any) -> bool:
    """Is a layer that was given, in evaluation mode, another one after the call?"""
    if not isinstance(before, Layer):
        return False
    return now.training or _differs(now.state_dict(), before.weights)


def _differs(now: Any, before: Any) -> bool:
    if isinstance(before, Layer):
        return False
    if isinstance(before, tuple | list):
        alike = isinstance(now, tuple | list) and len(now) == len(before)
        return not alike or any(map(_differs, now, before))
    if isinstance(before, dict):
        alike = isinstance(now, dict) and set(now) == set(before)
        return not alike or any(_differs(now[name], before[name]) for name in before)
    return difference(now, before, 0, 0) is not None


def _question_out(question: Question, tensors: dict[str, Tensor]) -> dict:
    plain = {key: value for key, value in vars(question).items() if key != "cases"}
    return {**plain, "cases": [_case_out(case, tensors) for case in question.cases]}


def _case_out(case: Case, tensors: dict[str, Tensor]) -> dict:
    def out(value: Any, part: str) -> Any:
        return encode(value, tensors, f"{case.id}.{part}")

    data = dict(vars(case))
    make = case.make
    return data | {
        "make": make and _make_out(make, out),
        "args": out(list(case.args), "args"),
        "kwargs": out(case.kwargs, "kwargs"),
        "before": out([list(args) for args in case.before], "before"),
        "want": out(case.want, "want"),
        "mistakes": [
            {"question": mistake.question, "gives": out(mistake.gives, f"mistake.{i}")}
            for i, mistake in enumerate(case.mistakes)
        ],
    }


_MADE = ("kwargs", "weights")


def _make_out(make: Make, out: Callable[[Any, str], Any]) -> dict:
    about = {"name": make.name, "training": make.training}
    return about | {key: out(vars(make)[key], f"make.{key}") for key in _MADE}


def _make_in(data: dict, tensors: dict[str, Tensor]) -> Make:
    kwargs, weights = (decode(data[key], tensors) for key in _MADE)
    return Make(data["name"], kwargs, weights, data.get("training", False))


def _question_in(data: dict, tensors: dict[str, Tensor]) -> Question:
    cases = tuple(_case_in(case, tensors) for case in data["cases"])
    return Question(**{**data, "defines": tuple(data["defines"]), "cases": cases})


def _case_in(data: dict, tensors: dict[str, Tensor]) -> Case:
    make = data["make"]
    parts = {
        "make": make and _make_in(make, tensors),
        "args": tuple(decode(data["args"], tensors)),
        "kwargs": decode(data["kwargs"], tensors),
        "before": tuple(map(tuple, decode(data.get("before", []), tensors))),
        "want": decode(data["want"], tensors),
        "mistakes": tuple(
            Mistake(mistake["question"], decode(mistake["gives"], tensors))
            for mistake in data["mistakes"]
        ),
    }
    return Case(**{**data, **parts})
