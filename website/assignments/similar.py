"""Is the answer to a question in the book? Solutions, compared with all code of pages and package.

Code is read as its syntax tree: names of variables, comments, docstrings and layout do not count.
What counts is how much of the solution, in pieces of a few neighbouring steps, is found in one
function, class or cell.
"""

import ast
import builtins
import re
from pathlib import Path

PIECE = 7  # neighbouring marks of the tree that make a piece
CELL = re.compile(r"^(`{3,})(?:\{code-cell\}[^\n]*|python)\n(.*?)^\1 *$", re.S | re.M)
KEPT = set(dir(builtins))


def marks(code: str) -> list[str]:
    """The tree of the code, depth first: kinds of nodes, what is called, operators, constants."""
    tree = ast.parse(code)
    for node in ast.walk(tree):  # a docstring is no code
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body[:] = body[1:] or [ast.Pass()]
    out: list[str] = []
    _walk(tree, out)
    return out


def _walk(node: ast.AST, out: list[str]) -> None:
    match node:
        case ast.Name(id=name):
            out.append(name if name in KEPT else "name")
        case ast.Attribute(attr=attr):
            out.append(f".{attr}")
        case ast.Constant(value=value):
            out.append(repr(value))
        case ast.keyword(arg=arg):
            out.append(f"{arg}=")
        case ast.arg():
            out.append("arg")
        case ast.expr_context():
            return
        case _:
            out.append(type(node).__name__)
    for child in ast.iter_child_nodes(node):
        _walk(child, out)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def pieces(code: str) -> set[tuple[str, ...]]:
    """All runs of `PIECE` neighbouring marks; of shorter code, the whole."""
    found = marks(code)
    return {tuple(found[i : i + PIECE]) for i in range(max(1, len(found) - PIECE + 1))}


def corpus(root: Path) -> dict[str, set]:
    """Place -> pieces: each function and class of `src/`, each cell of the book's pages."""
    found: dict[str, set] = {}
    for path in sorted([*(root / "src").rglob("*.py"), *(root / "experiments").rglob("*.py")]):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                place = f"{path.relative_to(root).as_posix()}: {node.name}"
                found[place] = pieces(ast.unparse(node))
    for path in sorted((root / "book").rglob("*.md")):
        for number, code in enumerate(code_of_page(path.read_text(encoding="utf-8"))):
            try:
                place = f"{path.relative_to(root).as_posix()}: cell {number}"
                found[place] = pieces(code)
            except SyntaxError:  # a cell with a magic, a fragment
                continue
    return found


def code_of_page(text: str) -> list[str]:
    """The code cells and Python listings of a page, without their options."""
    blocks = [match[2] for match in CELL.finditer(text)]
    return [re.sub(r"\A(:[\w-]+:.*\n|---\n.*?^---\n)+", "", b, flags=re.S | re.M) for b in blocks]


def likest(solution: str, places: dict[str, set]) -> tuple[float, str]:
    """How much of the solution is found in one place at most, and where."""
    wanted = pieces(solution)
    return max((len(wanted & there) / len(wanted), where) for where, there in places.items())
