"""What a check has to prove: one `Case` for each, in the tables beside this file."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


def stub(*args, **kwargs):
    """What an exercise shows before anybody has answered it."""
    return ...


@dataclass(frozen=True)
class Case:
    """One check with answers that must pass, and answers that must be refused with a reason.

    An answer is what the learner hands to the check; a tuple of them where the check takes several.

    Args:
        check: the check.
        right: an answer that passes. It must also pass when it gives float64.
        also: other right ways ("loops", "einsum", "float64 inside"): name -> answer.
        mistakes: name -> (answer, words of the message that it must be met with); at least three.
        stubs: answers that are "not answered yet".
    """

    check: Callable
    right: Any
    mistakes: dict[str, tuple[Any, str]]
    also: dict[str, Any] = field(default_factory=dict)
    stubs: tuple = (stub,)

    def run(self, answer) -> None:
        several = len(inspect.signature(self.check).parameters) > 1 and isinstance(answer, tuple)
        self.check(*(answer if several else (answer,)))


def in_float64(answer):
    """The same answer, with every float tensor that it gives in float64."""
    if isinstance(answer, torch.Tensor):
        return answer.double() if answer.is_floating_point() else answer
    if isinstance(answer, list | tuple):
        return type(answer)(in_float64(item) for item in answer)
    if isinstance(answer, dict):
        return {key: in_float64(value) for key, value in answer.items()}
    if isinstance(answer, type) and issubclass(answer, nn.Module):
        forward = in_float64(answer.forward)
        return type(answer.__name__, (answer,), {"forward": forward})
    if callable(answer) and not isinstance(answer, type | nn.Module):

        @functools.wraps(answer)
        def wide(*args, **kwargs):
            return in_float64(answer(*args, **kwargs))

        return wide
    return answer


def reads(answers: dict[str, str], **changed: str):
    """A learner's reading of a table: these answers, but for the ones whose place is named (_0)."""
    names = list(answers)
    other = {names[int(place[1:])]: answer for place, answer in changed.items()}
    return lambda: {**answers, **other}
