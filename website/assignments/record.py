"""From a test cell of a master to a case: the call is recorded, its result is computed."""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vitcheck.cases import Case, Make, run_case
from vitcheck.paired_models import SHOWN
from vitcheck.values import encode, fresh
from website.assignments.draw import Draw
from website.assignments.master import MasterError, Question, Test
from website.assignments.patience import patience

Names = dict[str, Any]


def names_after(*sources: str) -> Names:
    """The names that these cells leave behind, run one after the other."""
    names: Names = {"__name__": "__assignment__"}
    for source in sources:
        with patience():
            exec(compile(source, "<cell>", "exec"), names)
    return names


def case_of(question: Question, number: int, names: Names, draw: Draw) -> Case:
    """The case that a test cell describes, with the result of the right answer.

    Args:
        question: whose test it is.
        number: which of its tests, from 0.
        names: what the set-up, earlier answers and the right answer define.
        draw: the chance that belongs to this case.

    Raises:
        MasterError: the cell does not come down to one call of what the question defines.
    """
    test, id_ = question.tests[number], f"{question.name}-{number + 1}"
    try:
        with patience():
            call = _value(question, test) or _call(question, test, names, draw)
            case = Case(
                id=id_,
                stage=test.name,
                want=None,
                points=test.points,
                public=not test.hidden,
                rtol=test.rtol,
                atol=test.atol,
                otherwise=test.otherwise,
                claims=test.claims,
                gradients=test.training,
                **call,
            )
            want = SHOWN if case.claims else run_case(names, case)
        encode(want, {}, "the result")
        return replace(case, want=want)
    except MasterError as error:
        raise MasterError(f"{id_}: {error}") from None
    except Exception as error:
        raise MasterError(f"{id_}: {type(error).__name__}: {error}") from error


def _value(question: Question, test: Test) -> dict | None:
    """The test is the name of a value, such as ``answer``."""
    if test.code in question.defines:
        return {"name": test.code, "is_value": True}
    return None


def _call(question: Question, test: Test, names: Names, draw: Draw) -> dict:
    calls: list[dict] = []
    scope = dict(names)
    for name in question.defines:
        if callable(names.get(name)):
            scope[name] = _recorder(name, names[name], calls, draw, test)
    scope["draw"] = draw
    body = ast.parse(test.code).body
    if not body or not isinstance(body[-1], ast.Expr):
        raise MasterError("the last line of a test is the call")
    exec(compile(test.code, "<test>", "exec"), scope)
    if len(calls) != 1:
        raise MasterError(f"one call of {' or '.join(question.defines)}, not {len(calls)}")
    return calls[0]


def _recorder(name: str, found: Any, calls: list[dict], draw: Draw, test: Test) -> Callable:
    if not isinstance(found, type):
        return lambda *args, **kwargs: _write(calls, {"name": name, "make": None}, args, kwargs)

    def build(**kwargs: Any) -> _Made:
        made = found(**fresh(kwargs))
        weights = draw.weights(made) if hasattr(made, "state_dict") else {}
        for weight in weights:
            if weight.startswith(tuple(test.tiny)):
                weights[weight] = weights[weight] / 1000
        return _Made(Make(name, kwargs, weights, test.training), calls)

    return build


class _Made:
    """Stands for an object of the answer's class, and writes down what is called."""

    def __init__(self, make: Make, calls: list[dict]):
        self._make, self._calls = make, calls

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.__getattr__("forward")(*args, **kwargs)

    def __getattr__(self, method: str) -> Callable:
        call = {"name": method, "make": self._make}
        return lambda *args, **kwargs: _write(self._calls, call, args, kwargs)


def _write(calls: list[dict], call: dict, args: tuple, kwargs: dict) -> None:
    """Write down the last call, and those of the same function or object before it."""
    last = calls[-1] if calls else {"name": None}
    same = last["name"] == call["name"] and last["make"] is call["make"] and not last["kwargs"]
    before = (*calls.pop()["before"], last["args"]) if same else ()
    calls.append({**call, "args": args, "kwargs": kwargs, "before": before})
