"""How a check speaks: stages in order, and at the first one that fails a question, not an answer.

A check is a function decorated with ``staged``, which is given a right answer and the known
mistakes, each written once, as a function of the same inputs. The check itself receives a ``Trial``
and the learner's answer, draws inputs, and has what the answer gives compared; or it asks about one
property after the other.
"""

import contextlib
import functools
import inspect
import types
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import torch
from torch import Tensor

from vitcheck.values import (
    difference,
    family_of,
    in_words,
    is_unanswered,
    objection,
    wrong_number,
    wrong_tensor,
)

# Question -> an answer with the mistake that it is asked about, or a list of such answers.
Mistakes = Mapping[str, Any]

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
        right: A right answer, of the same kind as the learner's.
        mistakes: (question, answer) of each known mistake.
    """

    def __init__(
        self, what: str, seed: int, right: Any = None, mistakes: Sequence[tuple[str, Any]] = ()
    ):
        self.what, self.right, self.mistakes = what, right, mistakes
        self.current = ""
        self.generator = torch.Generator().manual_seed(seed)
        self._accepted: list[Callable[[Any], bool]] = []

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

    def compare(
        self,
        answer: Any,
        *inputs: Any,
        otherwise: str,
        part: int | str | Callable[[Any], Any] | None = None,
        tolerance: float = 1e-5,
        name: str = "the result",
    ) -> None:
        """Accept what an answer gives where the right one gives the same; else ask a question.

        The right answer is looked at first: nobody who has it can be accused of a mistake that
        happens to give the same. If several mistakes give the same, that one is asked about first
        which also gives what was accepted earlier in this run.

        Args:
            answer: The learner's function; or what it gave, if it was called already.
            inputs: What it is called with, and so are the right answer and the mistakes.
            otherwise: The question for all other wrong answers.
            part: Look only at this entry (index or key) of what was given, or at what this function
                makes of it: an order, a sum.
            tolerance: Absolute and relative at once, for the right answer and the mistakes alike.
            name: What the messages about shape and type call the result.
        """
        got, want = _given(answer, inputs), _given(self.right, inputs)
        if is_unanswered(got):
            raise _Unanswered
        if isinstance(part, int):
            self.several(got, len(want), name)
        if callable(part) and difference(got, want, tolerance, tolerance):
            part = None  # not only numbers differ, and that is said of the whole

        def seen(result: Any) -> Any:
            if part is None:
                return result
            return part(result) if callable(part) else result[part]

        def gives(mistake: Any) -> Any:
            with contextlib.suppress(Exception):  # it cannot be called so: it gives nothing
                return seen(_given(mistake, inputs))
            return None

        got = seen(got)
        mistakes = ((question, gives(one)) for question, one in self._by_likelihood())
        self._say(objection(got, seen(want), mistakes, otherwise, tolerance, name))
        self._accepted.append(lambda one: difference(got, gives(one), tolerance, tolerance) is None)

    def _say(self, words: str | None) -> None:
        """Stop with these words, if there are any."""
        if words is not None:
            self.fail(words)

    def _by_likelihood(self) -> Iterator[tuple[str, Any]]:
        """The mistakes, first those that gave the same as all that was accepted in this run."""

        def refuted(mistake: tuple[str, Any]) -> bool:
            return not all(gave_the_same(mistake[1]) for gave_the_same in self._accepted)

        yield from sorted(self.mistakes, key=refuted)  # an iterator: no work for a right answer

    def tensor(
        self,
        value: Any,
        shape: tuple[int, ...],
        *,
        dtype: torch.dtype = torch.float32,
        name: str = "the result",
    ) -> Tensor:
        """Stop unless ``value`` is a finite tensor of that shape and kind of type; return it.

        Any floating type will do where one is expected, and what is returned is then float32: a
        check computes with it as with its own inputs.
        """
        if is_unanswered(value):
            raise _Unanswered
        self._say(wrong_tensor(value, shape, family_of(dtype), name))
        return value.float() if dtype.is_floating_point else value

    def number(self, value: Any, *, name: str = "the result") -> float:
        """Stop unless ``value`` is one finite number; return it as a float."""
        if is_unanswered(value):
            raise _Unanswered
        self._say(wrong_number(value, name))
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
        mistakes: Mapping[str, Any],
        *,
        otherwise: str,
        tolerance: float = 1e-5,
        name: str = "the result",
    ) -> None:
        """Like ``compare``, for what no answer gives as such: a sum, a gradient, what was kept.

        Args:
            got: What was found, a tensor or a number.
            want: What it should be.
            mistakes: Question -> what it is with that mistake, or a list of such values.
            otherwise: The question for all other wrong answers.
            tolerance: Absolute and relative at once, for the right answer and the mistakes alike.
            name: What the messages about shape and type call it.
        """
        if is_unanswered(got):
            raise _Unanswered
        self._say(objection(got, want, _flat(mistakes), otherwise, tolerance, name))

    def answers(self, given: Any, questions: Collection[str]) -> dict[str, Any]:
        """Stop unless ``given`` is a dictionary with an answer to each of ``questions``; return it.

        A ``...`` among the answers ends the check as unanswered.
        """
        if not isinstance(given, dict):
            self.fail(f"return a dictionary from question to answer, not {in_words(given)}")
        if is_unanswered([*given.values()]):
            raise _Unanswered
        for question in questions:
            if question not in given:
                self.fail(f"the question {question!r} has lost its answer; put it back")
        for question in given:
            if question not in questions:
                self.fail(f"{question!r} is not one of the questions; was one of them changed?")
        return given

    def several(self, value: Any, count: int, name: str = "the result") -> tuple[Any, ...]:
        """Stop unless ``value`` is a tuple or list of so many; return it as a tuple."""
        if is_unanswered(value):
            raise _Unanswered
        if not isinstance(value, tuple | list) or len(value) != count:
            expected = "a pair (two values)" if count == 2 else f"a tuple of {count} values"
            self.fail(f"{name} should be {expected}, got {in_words(value)}")
        return tuple(value)

    def pair(self, value: Any, name: str = "the result") -> tuple[Any, Any]:
        """Stop unless ``value`` is a tuple or list of two; return them."""
        first, second = self.several(value, 2, name)
        return first, second

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


def staged(
    what: str,
    *,
    ok: str,
    right: Any = None,
    mistakes: Mistakes = MappingProxyType({}),
    in_part: Mapping[Any, Mistakes] = MappingProxyType({}),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function ``(trial, *answers)`` into a check ``(*answers)`` that a learner calls.

    A right answer prints one line, "ok: " and ``ok``; a stub (None, ``...``, or a
    ``NotImplementedError``) prints "not answered yet"; a mistake raises ``CheckFailed`` with the
    stage and a question; an exception in the learner's code raises ``CheckFailed`` from it, with
    the learner's own traceback.

    The right answer and the mistakes are what ``Trial.compare`` compares with. The tests find them
    on the check (``check.right``, ``check.mistakes``) and hand in each of them.

    Args:
        what: The thing that is checked, as the exercise calls it ("causal_mask").
        ok: What is now known to hold, in a few words.
        right: A right answer, of the kind that a learner hands in: a function, mostly.
        mistakes: Question -> an answer with the mistake that it is asked about, or a list of such
            answers.
        in_part: Mistakes in one entry of what an answer gives (index of a tuple, key of a
            dictionary), for each entry: they give this entry only, the others are right.
    """
    known = _flat(mistakes)
    for key, some in in_part.items():
        known += [(question, _with_entry(right, key, entry)) for question, entry in _flat(some)]

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def run(*answers: Any, **options: Any) -> None:
            __tracebackhide__ = True
            bound.bind(*answers, **options)  # too few answers: Python's own message
            _calls[check.__qualname__] += 1
            seed = zlib.crc32(f"{check.__qualname__} {_calls[check.__qualname__]}".encode())
            trial = Trial(what, seed, right, known)
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
        vars(run).update(right=right, mistakes=known)
        return run

    return decorate


def _flat(mistakes: Mistakes) -> list[tuple[str, Any]]:
    """(question, answer) of each mistake, lists of answers taken apart."""
    return [
        (question, answer)
        for question, answers in mistakes.items()
        for answer in (answers if isinstance(answers, list) else [answers])
    ]


def _with_entry(right: Callable[..., Any], key: Any, entry: Any) -> Callable[..., Any]:
    """The right answer, but for one entry of what it gives."""

    def answer(*inputs: Any) -> Any:
        given = right(*inputs)
        changed: Any = dict(given) if isinstance(given, dict) else list(given)
        changed[key] = _given(entry, inputs)
        return changed if isinstance(given, dict) else tuple(changed)

    return answer


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


def _given(answer: Any, inputs: tuple[Any, ...]) -> Any:
    """What an answer gives: a function is called, anything else is the answer itself."""
    return answer(*inputs) if callable(answer) else answer
