"""How a check speaks: stages in order, and at the first one that fails a question, not an answer.

A check is a function decorated with ``staged``. It receives a ``Trial`` and then the learner's
answers, draws its inputs from the trial, and asks about one property after the other.
"""

from __future__ import annotations

import functools
import inspect
import types
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

_HERE = str(Path(__file__).parent)
_calls: Counter[str] = Counter()


class CheckFailed(AssertionError):  # noqa: N818  a learner reads this name: it says what happened
    """An answer did not pass. ``stage`` says where, ``question`` what to think about."""

    def __init__(self, what: str, stage: str, question: str):
        self.what, self.stage, self.question = what, stage, question
        super().__init__(f"{what}, {stage}: {question}" if stage else f"{what}: {question}")


class _Unanswered(Exception):  # noqa: N818
    """The stub is still there."""


class Trial:
    """One run of one check: the present stage, inputs drawn for this run, and the questions.

    Args:
        what: The thing that is checked, as the exercise calls it.
        seed: Decides the inputs.
    """

    def __init__(self, what: str, seed: int):
        self.what = what
        self.current = ""
        self.generator = torch.Generator().manual_seed(seed)

    def stage(self, name: str) -> None:
        """Begin the stage ``name``; failures from here on are reported under it."""
        self.current = name

    def integer(self, low: int, high: int) -> int:
        """A whole number with low <= number <= high."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def randn(self, *shape: int) -> Tensor:
        """Normal numbers of that shape, others at each run."""
        return torch.randn(*shape, generator=self.generator)

    def fail(self, question: str) -> NoReturn:
        """Stop here with a question or a hint."""
        raise CheckFailed(self.what, self.current, question)

    def ask(self, condition: bool | Tensor, question: str) -> None:
        """Stop with ``question`` unless the condition (a bool, or a tensor of them) holds."""
        if not bool(torch.as_tensor(condition).all()):
            self.fail(question)

    def tensor(
        self,
        value: Any,
        shape: tuple[int, ...],
        *,
        dtype: torch.dtype | None = None,
        name: str = "the result",
    ) -> Tensor:
        """Stop unless ``value`` is a finite tensor of that shape (and dtype); return it.

        Without a dtype any floating-point type will do, and what is returned is float32: a check
        computes with it as with its own inputs.
        """
        if value is None or value is ...:
            raise _Unanswered
        if not isinstance(value, Tensor):
            self.fail(f"{name} should be a tensor of shape {tuple(shape)}, got {_kind(value)}")
        if tuple(value.shape) != tuple(shape):
            self.fail(f"{name} has the shape {tuple(value.shape)}, expected {tuple(shape)}")
        if value.dtype != dtype if dtype else not value.is_floating_point():
            self.fail(f"{name} has the type {value.dtype}, expected {dtype or 'torch.float32'}")
        if not bool(torch.isfinite(value).all()):
            kind = "NaN" if bool(torch.isnan(value).any()) else "infinite numbers"
            self.fail(f"{name} holds {kind}; where do they come from?")
        return value if dtype else value.float()

    def number(self, value: Any, *, name: str = "the result") -> float:
        """Stop unless ``value`` is one finite number; return it as a float."""
        if value is None or value is ...:
            raise _Unanswered
        numeric = isinstance(value, int | float) or hasattr(value, "__float__")
        if not numeric or getattr(value, "ndim", 0) != 0:
            self.fail(f"{name} should be one number, got {_kind(value)}")
        self.ask(torch.isfinite(torch.tensor(float(value))), f"{name} is {float(value)}")
        return float(value)

    def close(
        self,
        got: Any,
        want: Tensor | float,
        question: str,
        *,
        tolerance: float = 1e-5,
        name: str = "the result",
    ) -> None:
        """Stop with ``question`` unless ``got`` agrees with ``want``, a tensor or a number.

        The tolerance is absolute and relative at once. Shape and type are looked at first.
        """
        self.match(got, want, {}, otherwise=question, tolerance=tolerance, name=name)

    def match(
        self,
        got: Any,
        want: Tensor | float,
        mistakes: dict[str, Any],
        *,
        otherwise: str,
        tolerance: float = 1e-5,
        name: str = "the result",
    ) -> None:
        """Accept ``got`` where it agrees with ``want``; else name the first mistake that fits.

        The right answer is looked at first: nobody who has it can be accused of a mistake that
        happens to give the same.

        Args:
            got: The learner's answer, a tensor or a number.
            want: The right one, of the same kind.
            mistakes: Question -> what the mistake gives (or a list of such values, where several
                slips deserve the same question). A mistake of another shape never fits.
            otherwise: The question for all other wrong answers.
            tolerance: Absolute and relative at once, for the right answer and the mistakes alike.
            name: What the messages about shape and type call the answer.
        """
        if isinstance(want, Tensor):
            exact = None if want.is_floating_point() else want.dtype
            got = self.tensor(got, want.shape, dtype=exact, name=name)
        else:
            got = torch.tensor(self.number(got, name=name), dtype=torch.float64)
        if _agree(got, want, tolerance):
            return
        for question, mistaken in mistakes.items():
            several = mistaken if isinstance(mistaken, list) else [mistaken]
            if any(_agree(got, value, tolerance) for value in several):
                self.fail(question)
        self.fail(otherwise)

    def answers(self, given: Any, questions: Collection[str]) -> dict[str, Any]:
        """Stop unless ``given`` is a dictionary with an answer to each of ``questions``; return it.

        A ``...`` among the answers ends the check as unanswered.
        """
        if not isinstance(given, dict):
            self.fail(f"return a dictionary from question to answer, not {_kind(given)}")
        if any(answer is ... for answer in given.values()):
            raise _Unanswered
        for question in questions:
            if question not in given:
                self.fail(f"the question {question!r} has lost its answer; put it back")
        for question in given:
            if question not in questions:
                self.fail(f"{question!r} is not one of the questions; was one of them changed?")
        return given

    def pair(self, value: Any, name: str = "the result") -> tuple[Any, Any]:
        """Stop unless ``value`` is a tuple of two; return it."""
        if (
            value is None
            or value is ...
            or (isinstance(value, tuple) and any(item is ... for item in value))
        ):
            raise _Unanswered
        if not isinstance(value, tuple | list) or len(value) != 2:
            self.fail(f"{name} should be a pair (two values), got {_kind(value)}")
        return value[0], value[1]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the learner's function; a stub's None or ``...`` ends the check as unanswered.

        Also stops when the function changes one of its input tensors in place.
        """
        inputs = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        before = [a._version for a in inputs]
        result = function(*args, **kwargs)
        if result is None or result is ...:
            raise _Unanswered("it returned None" if result is None else "")
        if [a._version for a in inputs] != before:
            self.fail("did you change an input in place? Whoever called you still needs it.")
        return result


def staged(what: str, *, ok: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function ``(trial, *answers)`` into a check ``(*answers)`` that a learner calls.

    A right answer prints one line, "ok: " and ``ok``; a stub (None, ``...``, or a
    ``NotImplementedError``) prints "not answered yet"; a mistake raises ``CheckFailed`` with the
    stage and a question; an exception in the learner's code raises ``CheckFailed`` from it, with
    the learner's own traceback.

    Args:
        what: The thing that is checked, as the exercise calls it ("causal_mask").
        ok: What is now known to hold, in a few words.
    """

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def run(*answers: Any, **options: Any) -> None:
            __tracebackhide__ = True
            bound.bind(*answers, **options)  # too few answers: Python's own message
            _calls[check.__qualname__] += 1
            seed = zlib.crc32(f"{check.__qualname__} {_calls[check.__qualname__]}".encode())
            trial = Trial(what, seed)
            try:
                if any(answer is None or answer is ... for answer in answers):
                    raise _Unanswered
                check(trial, *(_guarded(trial, answer) for answer in answers), **options)
            except _Unanswered as stub:
                hint = f" ({stub}: does it end with return?)" if str(stub) else ""
                print(f"not answered yet: {what}{hint}")
                return
            except CheckFailed as failed:
                failure = failed.with_traceback(None)
            except NotImplementedError:
                print(f"not answered yet: {what}")
                return
            except Exception as error:
                if "ellipsis" in str(error):  # a `...` was left inside an answer
                    print(f"not answered yet: {what} (a `...` is left)")
                    return
                failure = _broken(trial, error, check)
            else:
                print(f"ok: {ok}")
                return
            raise failure

        del run.__wrapped__
        _trial, *others = inspect.signature(check).parameters.values()
        bound = inspect.Signature(others)
        run.__signature__ = bound  # type: ignore[attr-defined]
        return run

    return decorate


def _guarded(trial: Trial, answer: Any) -> Any:
    """A plain function, called through ``Trial.call``; anything else as it is."""
    if isinstance(answer, types.FunctionType | types.MethodType | functools.partial):
        return functools.partial(trial.call, answer)
    return answer


def _broken(trial: Trial, error: Exception, check: Callable[..., None]) -> CheckFailed:
    """The sentence for an exception; its traceback begins at the learner's first frame."""
    where = error.__traceback__
    while where and (
        where.tb_frame.f_code is check.__code__
        or where.tb_frame.f_code.co_filename.startswith(_HERE)
    ):
        where = where.tb_next
    own = where is not None and "site-packages" not in where.tb_frame.f_code.co_filename
    says = f"{type(error).__name__}: {error}"
    text = f"your code stopped with {says}" if own else f"your answer could not be used: {says}"
    failure = CheckFailed(trial.what, trial.current, text)
    failure.__cause__ = error.with_traceback(where) if own else error
    return failure


def _agree(got: Tensor, want: Any, tolerance: float) -> bool:
    want = torch.as_tensor(want, dtype=torch.float64)
    if got.shape != want.shape:
        return False
    return torch.allclose(got.double(), want, rtol=tolerance, atol=tolerance)


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {value.shape}"
    return f"{type(value).__name__} {value!r}"
