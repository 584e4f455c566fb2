"""What a page shows of a cell's code and what it folds; the site, the counts and the rules agree.

- Imports and settings at the beginning fold as set-up; constants too, where nothing else follows.
- A line ``# check: equal to the package, 1e-6`` folds all that stands below it. Without one, all
  from the first assertion or glued number on folds.
- What a fold prints folds with it.
- A cell that shows a table (``show_table``) folds its code under the table.
- A cell that follows a claim, asserts and draws nothing folds into the claim.

A notebook keeps its cells whole.
"""

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from website.pages.meaning import called_name, cell_tree

MARKER = re.compile(r"^# check\b:?[ \t]*(?P<words>.*)$", re.MULTILINE)
SETTINGS = {"use_style", "set_num_threads", "manual_seed", "set_printoptions", "filterwarnings"}
TABLE = "show_table"
DRAWING = re.compile(r"display|show(_\w+)?")


@dataclass(frozen=True)
class Parts:
    """The three parts of a cell's code, in order; each may be empty."""

    setup: str = ""
    shown: str = ""
    check: str = ""
    words: str | None = None  # of the marker; None where a rule has found the check


@lru_cache(maxsize=4096)
def parts(code: str) -> Parts:
    """Cut the code of a cell into what is folded above, seen, and folded below."""
    lines = code.split("\n")
    tree = cell_tree(code)
    if code.startswith("%%"):  # the whole cell is a magic's
        return Parts(shown=code)
    marker = MARKER.search(code)
    end = code.count("\n", 0, marker.start()) if marker else len(lines)
    body = [node for node in tree.body if first_line(node) <= end]
    start = _setup_lines(body)
    body = [node for node in body if node.lineno > start]
    if marker is None:
        body = list(takewhile(lambda node: not _proves(node), body))
        end = _end(body[-1]) if body else start
    setup, shown = _text(lines[:start]), _text(lines[start:end])
    if marker:
        check = _text(lines[end + 1 :])
        return Parts(setup, shown, check, " ".join(marker["words"].split()))
    check = _text(lines[end:])
    if check and all(line.lstrip().startswith("#") or not line for line in check.split("\n")):
        return Parts(setup, _text(lines[start:]))  # comments alone
    return Parts(setup, shown, check)


@lru_cache(maxsize=4096)
def shows_table(code: str) -> bool:
    return TABLE in code and any(name == TABLE for name in _calls(cell_tree(code)))


@lru_cache(maxsize=4096)
def settles(code: str) -> bool:
    """Does the cell assert something and draw nothing? Then it may stand in the claim above."""
    tree = cell_tree(code)
    drawn = any(DRAWING.fullmatch(name) for name in _calls(tree))
    return asserts(tree) > 0 and not drawn and not _ends_in_a_call(tree)


def _ends_in_a_call(tree: ast.Module) -> bool:
    """What the call gives may be a figure; what ``print`` gives is none."""
    last = tree.body[-1]
    value = last.value if isinstance(last, ast.Expr) and not is_proof(last) else None
    return isinstance(value, ast.Call) and called_name(value) != "print"


def tells(found: Parts) -> bool:
    """Does what is seen of a cell print something, or is its last line a value?"""
    tree = cell_tree(found.shown)
    value = not found.check and tree.body and isinstance(tree.body[-1], ast.Expr)
    return bool(value) or "print" in _calls(tree)


def asserts(tree: ast.AST) -> int:
    """How many assertions are written here; a loop counts once."""
    return sum(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and called_name(node).startswith("assert_"))
        for node in ast.walk(tree)
    )


@lru_cache(maxsize=4096)
def count_checks(code: str) -> int:
    return asserts(cell_tree(code))


def is_proof(node: ast.stmt) -> bool:
    """An assertion, a glued number, or a loop over nothing but these."""
    if isinstance(node, ast.For | ast.With | ast.If):
        return all(is_proof(inner) for inner in [*node.body, *getattr(node, "orelse", [])])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = called_name(node.value)
        return name == "glue" or name.startswith("assert_")
    return isinstance(node, ast.Assert)


def _proves(node: ast.stmt) -> bool:
    """Does a proof stand here, or in a loop or a block that begins here?"""
    inner = [
        one
        for name in ("body", "orelse", "finalbody")
        for one in getattr(node, name, [])
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return is_proof(node) or any(map(_proves, inner))


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, its decorators among it."""
    above = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in above)])


def _setup_lines(body: list[ast.stmt]) -> int:
    """How many lines at the beginning set up what follows."""
    run = list(takewhile(_sets_up, body))
    if all(_sets_up(node) or _is_constant(node) for node in body):
        run = body  # nothing else stands here
    imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in run)
    return _end(run[-1]) if imports else 0


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _sets_up(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called_name(node.value) in SETTINGS
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_constant(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    try:
        ast.literal_eval(node.value)
    except ValueError:
        return False
    return True


def _calls(tree: ast.AST) -> list[str]:
    return [called_name(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")
