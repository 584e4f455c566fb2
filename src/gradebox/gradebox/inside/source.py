"""A student's cells as statements that can be run one by one.

It happens in the sandbox, because a hostile source can bring Python's own parser down.
"""

import __future__

import ast
import io
import re
import tokenize

CELL_MAGIC_OF_PYTHON = re.compile(r"^\s*%%(time|timeit|capture|prun)\b")
# "%pip", "!ls", "?name", "name?" and "files = !ls": notebook syntax, no Python
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.\[\]]+\?{1,2}\s*)$")
TIMED = re.compile(r"^(\s*(?:[\w, .\[\]]+=\s*)?)%time\s+(?=\S)")  # what follows it is run
CAPTURE = re.compile(r"^(\s*[\w, .\[\]]+=\s*)[%!].*$")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def parse(source: str) -> ast.Module:
    """The syntax tree of a cell, notebook syntax left out.

    Raises:
        SyntaxError: it is not Python without that either.
    """
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(without_magics(source))


def without_magics(source: str) -> str:
    """The cell without its margin, and with notebook syntax replaced by ``pass`` where a statement
    begins, and only there; empty when all of it is no Python."""
    lines = io.StringIO(source, newline=None).read().split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    margin = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    lines = [line.removeprefix(margin) for line in lines]
    if lines[first].startswith("%%"):
        if not CELL_MAGIC_OF_PYTHON.match(lines[first]):
            return ""
        lines[first] = ""
    at = 0
    while at < len(lines):
        lines[at] = TIMED.sub(r"\1", lines[at])
        python = MAGIC.sub(r"\1pass", CAPTURE.sub(r"\1None", lines[at]))
        if python == lines[at]:
            at = end_of_statement(lines, at)
            continue
        while lines[at].endswith("\\") and at + 1 < len(lines):  # a magic of several lines
            lines[at], python, at = python, "", at + 1
        lines[at] = python
        at += 1
    return "\n".join(lines)


def end_of_statement(lines: list[str], at: int) -> int:
    """The line after the statement, comment or blank line that begins at ``at``; the end of all
    where the statement has none."""
    if not lines[at].strip() or lines[at].lstrip().startswith("#"):
        return at + 1
    rest = (f"{lines[number]}\n" for number in range(at, len(lines)))
    try:
        tokens = tokenize.generate_tokens(rest.__next__)
        return at + next(one.end[0] for one in tokens if one.type == tokenize.NEWLINE)
    except (tokenize.TokenError, SyntaxError, StopIteration):
        return len(lines)


def future_flags(tree: ast.Module) -> int:
    """Compiler flags of ``from __future__ import ...``: they hold for every statement after it."""
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    return sum(getattr(__future__, name).compiler_flag for name in set(names))


def only_definitions(tree: ast.Module) -> list[ast.stmt]:
    """Functions, classes, imports and constants: what a cell that cannot be run leaves behind."""
    return [node for node in tree.body if isinstance(node, DEFINITIONS) or is_constant(node)]


def is_constant(node: ast.stmt) -> bool:
    """``EPS = 1e-6``: a name that gets a literal."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    try:
        ast.literal_eval(node.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
