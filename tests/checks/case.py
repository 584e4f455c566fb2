"""What a check is tried with beside its own answers: a `Case`, in the tables beside this file."""

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
    """What a check cannot know of itself: other right answers, and wrong ones of no known kind.

    The right answer and the mistakes that the check was given are tested without being named here,
    and so is the solution of its page: another way to the same numbers is no other answer.
    An answer is what the learner hands to the check; a tuple of them where the check takes several.

    Args:
        check: the check.
        also: other right answers ("a list", "float64 inside"): name -> answer.
        wrong: name -> (answer, words of the message that it must be met with).
        stubs: answers that are "not answered yet".
    """

    check: Callable
    also: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, tuple[Any, str]] = field(default_factory=dict)
    stubs: tuple = (stub,)


def hand_in(check, answer) -> None:
    several = len(inspect.signature(check).parameters) > 1 and isinstance(answer, tuple)
    check(*(answer if several else (answer,)))


def in_float64(answer):
    """The same answer, with every float tensor that it gives in float64."""
    if isinstance(answer, torch.Tensor):
        return answer.double() if answer.is_floating_point() else answer
    if isinstance(answer, list | tuple):
        return type(answer)(map(in_float64, answer))
    if isinstance(answer, dict):
        return {key: in_float64(value) for key, value in answer.items()}
    if isinstance(answer, type) and issubclass(answer, nn.Module):
        return type(answer.__name__, (answer,), {"forward": in_float64(answer.forward)})
    if not callable(answer) or isinstance(answer, type | nn.Module):
        return answer
    return functools.wraps(answer)(lambda *args, **kwargs: in_float64(answer(*args, **kwargs)))
