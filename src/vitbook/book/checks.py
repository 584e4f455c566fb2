"""Assertions in a page's cells are collected, not raised: the cell runs on and tells what it found.

``collect`` puts this into the running notebook. From then on ``assert a < b`` of a cell, and a call
such as ``assert_close(...)``, displays a sentence where it does not hold, with the values on both
sides, and the next line runs. Inside a function an assertion raises as ever. A notebook's script
stops at the first assertion that does not hold, with the same sentence.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any

__all__ = ["collect"]  # the rest is for those who build the book
MIME = "application/vnd.vitbook.check+json"  # by which the book's builder finds what failed
NAME = "__vitbook_checks__"
OPERATORS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_BY_SIGN = dict(OPERATORS.values())
_MOST = 3  # comparisons that one sentence tells


@dataclass(frozen=True)
class Compared:
    """One comparison inside an assertion: ``left sign right`` as values, and where it stands."""

    line: int  # of the cell, from 1
    column: int
    source: str
    sign: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.source}: {in_short(self.left)} {self.sign} {in_short(self.right)}"


class Checks:
    """Takes what the rewritten assertions of a cell say.

    Args:
        failed: called with each failure: its line in the cell, the assertion as it is written, and
            what was found, a text for each comparison that is false.
        compared: called with each comparison, true or false.
        ended: called at the end of a cell that is made of checks: how many there were, and how
            many of them did not hold.
    """

    def __init__(
        self,
        failed: Callable[[int, str, list[str]], None],
        compared: Callable[[Compared], None] | None = None,
        ended: Callable[[int, int], None] | None = None,
    ):
        self._failed, self._seen, self._ended = failed, compared, ended
        self._false: list[Compared] = []
        self._tried = self._fell = 0

    def start(self) -> None:
        """A cell begins."""
        self._tried = self._fell = 0

    def end(self) -> None:
        if self._ended is not None and self._tried:
            self._ended(self._tried, self._fell)

    def compare(
        self, line: int, column: int, sources: list[str], signs: list[str], *values: Any
    ) -> Any:
        """What Python's own ``a < b < c`` gives; all three have been computed already."""
        result: Any = True
        for i, sign in enumerate(signs):
            result = _BY_SIGN[sign](values[i], values[i + 1])
            source = f"{sources[i]} {sign} {sources[i + 1]}"
            one = Compared(line, column, source, sign, values[i], values[i + 1])
            if self._seen is not None:
                self._seen(one)
            if not all_true(result):
                self._false.append(one)
            if i + 1 < len(signs) and not result:
                break
        return result

    def begin(self) -> None:
        self._tried += 1
        self._false.clear()

    def fail(self, line: int, source: str, error: AssertionError) -> None:
        self._fell += 1
        found = [str(one) for one in self._false]
        if len(found) > _MOST:
            found[_MOST:] = [f"and {len(found) - _MOST} more"]
        message = " ".join(str(error).split())
        self._failed(line, source, [*found, message] if message else found)


def all_true(result: Any) -> bool:
    return bool(result.all() if hasattr(result, "all") else result)


def in_short(value: Any) -> str:
    """A value as a sentence can say it."""
    if hasattr(value, "item") and getattr(value, "shape", None) in ((), (1,)):
        value = value.item()
    if isinstance(value, Number) and not isinstance(value, bool | int):
        return f"{value:.6g}"
    if getattr(value, "shape", None):
        least, most = float(value.min()), float(value.max())
        return f"an array {tuple(value.shape)} from {least:.6g} to {most:.6g}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Collected(ast.NodeTransformer):
    """Rewrites the assertions at the top level of a cell, in its loops and conditions too."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        told = any(map(is_check, ast.walk(node))) and not _shows_a_value(node.body[-1])
        body = [line for statement in node.body for line in self._statement(statement)]
        node.body = [_calls("start"), *body, _calls("end")] if told else body
        return ast.fix_missing_locations(node)

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        if is_check(node):
            return [_tried(node)]
        for name in ("body", "orelse", "finalbody"):
            if inner := getattr(node, name, None):
                setattr(node, name, [one for each in inner for one in self._statement(each)])
        return [node]


def is_check(node: ast.AST) -> bool:
    """An assertion, or a call whose name begins with ``assert_``."""
    if isinstance(node, ast.Assert):
        return True
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    function = node.value.func
    name = getattr(function, "id", getattr(function, "attr", ""))
    return str(name).startswith("assert_")


def _shows_a_value(node: ast.stmt) -> bool:
    """Does the notebook show what a cell gives that ends with this line?"""
    return isinstance(node, ast.Expr) and not is_check(node)


def _calls(method: str) -> ast.stmt:
    return ast.parse(f"{NAME}.{method}()").body[0]


def _tried(node: ast.stmt) -> ast.Try:
    """``begin(); assert ...``, whose AssertionError goes to ``fail`` with its line and source."""
    source = ast.unparse(node.test if isinstance(node, ast.Assert) else node)
    text = (
        f"try:\n    {NAME}.begin()\n"
        f"except AssertionError as {NAME}error:\n"
        f"    {NAME}.fail({node.lineno}, {source!r}, {NAME}error)"
    )
    tried = ast.parse(text).body[0]
    assert isinstance(tried, ast.Try)
    for part in ast.walk(tried):
        if hasattr(part, "lineno"):
            ast.copy_location(part, node)
    tried.body.append(_Comparisons().visit(node) if isinstance(node, ast.Assert) else node)
    return tried


class _Comparisons(ast.NodeTransformer):
    """Each ``a < b`` becomes a call that keeps both values."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sources = [ast.unparse(side) for side in (node.left, *node.comparators)]
        self.generic_visit(node)
        if not all(type(sign) in OPERATORS for sign in node.ops):
            return node
        signs = [OPERATORS[type(sign)][0] for sign in node.ops]
        known = ast.parse(f"({node.lineno}, {node.col_offset}, {sources!r}, {signs!r})").body[0]
        assert isinstance(known, ast.Expr)
        assert isinstance(known.value, ast.Tuple)
        function = ast.Attribute(ast.Name(NAME, ast.Load()), "compare", ast.Load())
        arguments = [*known.value.elts, node.left, *node.comparators]
        return ast.copy_location(ast.Call(function, arguments, []), node)


def collect(ended: Callable[[int, int], None] | None = None) -> None:
    """Collect the assertions of every cell that runs from now on.

    Args:
        ended: called at the end of a cell that is made of checks: how many there were, and how
            many of them did not hold.

    In a script, which is not run cell by cell, the first that does not hold ends it, with a
    sentence instead of a traceback.
    """
    try:
        from IPython import get_ipython

        shell = get_ipython()
    except ImportError:
        shell = None
    if shell is None:
        sys.excepthook = _end_script
    else:
        install(shell, Checks(_display, ended=ended))


def install(shell: Any, checks: Checks) -> None:
    """Let the cells of an IPython shell report to ``checks``, instead of what they reported to."""
    others = [one for one in shell.ast_transformers if not isinstance(one, Collected)]
    shell.ast_transformers[:] = [*others, Collected()]
    shell.user_ns_hidden[NAME] = shell.user_ns[NAME] = checks


def _display(line: int, source: str, found: list[str]) -> None:
    from IPython.display import publish_display_data

    data = {"line": line, "source": source, "found": found}
    publish_display_data({MIME: data, "text/plain": sentence(source, found)})


def _end_script(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Try the assertion at which a script has stopped once more, to tell its values."""
    if trace is None or not isinstance(error, AssertionError):
        return sys.__excepthook__(kind, error, trace)
    script, at, names = trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_globals

    def say(line: int, source: str, found: list[str]) -> None:
        print(f"{script}, line {line}: {sentence(source, found)}", file=sys.stderr)

    for node in ast.walk(ast.parse(Path(script).read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and is_check(node) and node.lineno <= at <= _end(node):
            names[NAME] = Checks(say)
            again = ast.fix_missing_locations(ast.Module([_tried(node)], []))
            return exec(compile(again, script, "exec"), names)
    return sys.__excepthook__(kind, error, trace)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def sentence(source: str, found: list[str]) -> str:
    """What a reader is told."""
    return f"This did not hold on this machine: {in_words(source, found)}."


def in_words(source: str, found: list[str]) -> str:
    """The assertion and its values: ``x > 60; found 58.3 > 60``."""
    return f"{source}; found {', '.join(values(source, found))}" if found else source


def values(source: str, found: list[str]) -> list[str]:
    """What was found; the words of the assertion itself are not said twice."""
    return [one.removeprefix(f"{source}: ") for one in found]
