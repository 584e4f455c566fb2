"""A chapter's notebook: predictions, checks that let "Run all" go on, and what is still open.

``set_up`` stands in the notebook's first cell. From then on a check that does not hold says so, a
wrong answer prints its question instead of stopping the notebook, and a cell with checks that all
hold prints one line. The other functions are called by the cells that website/notebooks writes.
In plain Python, where the notebook is a script, the same lines are printed.
"""

import ast
import base64
import contextlib
import html
import io
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vitbook.book.checks import collect
from vitbook.book.live import show_live
from vitcheck.trial import CheckFailed

__all__ = ["predict", "result_of", "set_up", "show_live", "still_open"]
MIME = "application/vnd.vitbook.answer+json"  # by which tools/run_notebooks.py finds what failed
TRIED = "__vitcheck_tried__"
SOLUTION = "#@title Solution"  # how the first line of a solution's cell begins
CLOSED = "Say first what you expect, or open this"
OPEN, WRONG, RIGHT = "not answered yet", "not right yet", "ok"


@dataclass
class Said:
    """What a reader expects, and what is known of the answer."""

    answer: Any
    key: str

    @property
    def is_open(self) -> bool:
        return self.answer in (None, ..., "") or (bool(self._choices) and self.answer == 0)

    @property
    def of_key(self) -> str:
        """What a bare number would leave open: choices may be numbers, too."""
        return "choice " if self._choices else ""

    @property
    def _choices(self) -> int:
        return int(self.key.partition("/")[2] or 0)

    def in_words(self) -> str:
        """The answer, and how far off it was."""
        if self._choices:
            right = int(self.key.partition("/")[0])
            if self.answer == right:
                return f"It was choice {right}, as you said."
            return f"It was choice {right}, you said choice {self.answer}."
        if not self.key:
            return f"You said: {self.answer}."
        number, within, unit = self.key.split(" ", 2)
        said, off = f"{number} {unit}".strip(), abs(self.answer - float(number))
        if off <= float(within):
            return f"It was {said}, you said {self.answer:g}: near enough."
        return f"It was {said}, you said {self.answer:g}: {off:.3g} off."

    def objection(self) -> str:
        """What is wrong with the answer as such; nothing where it is one."""
        if self._choices and self.answer not in range(1, self._choices + 1):
            return f"one of the numbers 1 to {self._choices}, or 0 while it is open"
        if self.key and not isinstance(self.answer, int | float):
            return "a number, or None while it is open"
        return ""


@dataclass
class Session:
    """What has been said and tried in this notebook so far."""

    said: dict[str, Said] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)  # name of a check: what became of it
    closed: bool = False  # the cell that runs shows the answer of an open prediction
    is_solution: bool = False  # the cell that runs is one


_session = Session()


def set_up() -> None:
    """Set the running notebook up; once more does no harm."""
    collect(_held)
    shell = _shell()
    if shell is None:
        return
    shell.ast_transformers[:] = [
        one for one in shell.ast_transformers if not isinstance(one, Answered)
    ]
    shell.ast_transformers.append(Answered())
    shell.user_ns_hidden[TRIED] = shell.user_ns[TRIED] = tried
    if _before_cell not in shell.events.callbacks["pre_run_cell"]:
        shell.events.register("pre_run_cell", _before_cell)
        if hasattr(shell.display_pub, "register_hook"):
            shell.display_pub.register_hook(_fold)
    print("ready")


def predict(name: str, answer: Any, key: str = "") -> None:
    """Say what you expect: ``answer`` is kept for the cell that shows what happened.

    Args:
        name: The prediction's, on the book's page.
        answer: 0, None or "" is no answer yet.
        key: What is right, so written that nobody reads it by accident; none where words will do.
            A ">" in front of it: a later cell shows the result.
    """
    whole = base64.b64decode(key).decode()
    said = _session.said[name] = Said(answer, whole.removeprefix(">"))
    if said.is_open:
        print("Open: the result stays closed until you put your answer in and run this cell.")
    elif wrong := said.objection():
        _session.said[name] = Said("", said.key)
        print(f"Not understood: the answer is {wrong}.")
    elif whole.startswith(">"):
        print(f"You expect {said.of_key}{answer}. Run the next cell to see what happened.")
    else:
        print(said.in_words())


def result_of(name: str, *, again: bool = False) -> None:
    """What this cell shows is the answer of a prediction: closed while that is open.

    Args:
        name: The prediction's.
        again: The comparison with what was expected has been shown by an earlier cell.
    """
    said = _session.said.get(name)
    _session.closed = said is None or said.is_open
    if said is not None and not said.is_open and not again:
        print(said.in_words())


def still_open(predictions: Mapping[str, str], exercises: Mapping[str, str]) -> None:
    """Print what is left to do.

    Args:
        predictions: Name -> what they are called here.
        exercises: Name of the check -> what the exercise is called.
    """
    waits = [
        title
        for name, title in predictions.items()
        if name not in _session.said or _session.said[name].is_open
    ]
    if predictions:
        print(f"Predictions: {', '.join(waits)} still open." if waits else "Predictions: all made.")
    for name, title in exercises.items():
        print(f"{title}: {_session.tried.get(name, OPEN)}.")


def tried(name: str, call: Callable[[], Any]) -> None:
    """Run a check of an answer; a wrong answer is told and not raised."""
    printed, failure = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            call()
        except CheckFailed as failed:
            failure = failed
    words = printed.getvalue()
    if failure is not None:
        cause = failure.__cause__
        trace = traceback.format_exception(cause) if cause is not None else []
        _tell(name, "".join([words, f"{failure}\n", *trace]).rstrip())
        outcome = WRONG
    else:
        outcome = RIGHT if re.search(r"^ok: ", words, re.MULTILINE) else OPEN
        if _session.is_solution:
            words = re.sub(r"^ok: .*", "ok", words, flags=re.MULTILINE)
        print(words, end="")
    if not _session.is_solution:
        _session.tried[name] = outcome


class Answered(ast.NodeTransformer):
    """``check_sum(my_sum)`` at the top level of a cell goes through ``tried``."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [self._statement(one) for one in node.body]
        return ast.fix_missing_locations(node)

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            return node
        function = node.value.func
        if not (isinstance(function, ast.Name) and function.id.startswith("check_")):
            return node
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = ast.Lambda(nothing, node.value)
        name = ast.Name(TRIED, ast.Load())
        node.value = ast.Call(name, [ast.Constant(function.id), later], [])
        return node


def _held(count: int, failed: int) -> None:
    if failed:
        asks = "was a cell run out of order? Then first run those above it"
        print(f"{failed} of {count} checks did not hold here; {asks}")
    else:
        print("ok" if count == 1 else f"ok: {count} checks")


def _before_cell(info: Any) -> None:
    _session.closed = False
    _session.is_solution = (info.raw_cell or "").lstrip().startswith(SOLUTION)


def _fold(message: dict[str, Any]) -> dict[str, Any]:
    """Close what a cell shows while its prediction is open."""
    data = message.get("content", {}).get("data", {})
    if _session.closed and "text/html" in data:
        data["text/html"] = (
            f"<details><summary>{html.escape(CLOSED)}</summary>{data['text/html']}</details>"
        )
    return message


def _tell(name: str, words: str) -> None:
    shell = _shell()
    if shell is None:
        print(words)
    else:
        shell.display_pub.publish(data={MIME: {"check": name}, "text/plain": words}, metadata={})


def _shell() -> Any:
    """The running notebook's shell; None outside of IPython, which is then not imported."""
    found = sys.modules.get("IPython")
    return found.get_ipython() if found else None
