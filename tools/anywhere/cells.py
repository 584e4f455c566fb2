"""The cells of a page: run with other seeds; and what decides a check."""

import ast
from dataclasses import dataclass
from pathlib import Path

from myst_nb.core.read import read_myst_markdown_notebook

from website.pages.meaning import cell_tree

ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Cell:
    """One code cell: its number among them, the page's line of its first line, its code."""

    number: int
    line: int
    source: str


def is_page(path: Path) -> bool:
    return path.suffix == ".md" and path.parent.name != "assignments"


def cells_of(page: Path) -> list[Cell]:
    """The code cells of a page; what is no page, an assignment or a file of tests, has none."""
    if not is_page(page):
        return []
    text = page.read_text("utf8")
    notebook = read_myst_markdown_notebook(text, add_source_map=True, path=page)
    found: list[Cell] = []
    for cell, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        if cell.cell_type == "code" and cell.source.strip():
            first = next(
                at
                for at, words in enumerate(text.splitlines()[line:], start=line + 1)
                if words.strip() == cell.source.splitlines()[0].strip()
            )
            found.append(Cell(len(found) + 1, first, cell.source))
    return found


def decisive(source: str) -> set[tuple[int, int]]:
    """Where the comparisons stand that decide the assertions of a cell: (line, column).

    Those below ``and``, ``all(...)`` and ``.all()``; not those that ``or``, ``any``, ``not`` or a
    sum reads.
    """
    places: set[tuple[int, int]] = set()
    for node in ast.walk(cell_tree(source)):
        if isinstance(node, ast.Assert):
            places |= {(one.lineno, one.col_offset) for one in _deciding(node.test)}
    return places


def _deciding(node: ast.AST) -> list[ast.Compare]:
    if isinstance(node, ast.Compare):
        return [node] if all(isinstance(sign, ORDER) for sign in node.ops) else []
    inner: list[ast.expr] = []
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        inner = node.values
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = [node.func.value] if node.func.attr in ("all", "item") else []
        inner += node.args if node.func.attr == "all" else []
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        inner = node.args if node.func.id in ("all", "bool") else []
    elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        inner = [node.elt]
    elif isinstance(node, ast.List | ast.Tuple):
        inner = node.elts
    return [one for each in inner for one in _deciding(each)]


class OtherSeeds(ast.NodeTransformer):
    """Adds an offset to every seed that a cell itself sets."""

    def __init__(self, offset: int):
        self.offset = offset

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("manual_seed", "default_rng") and node.args:
            node.args[0] = self._moved(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "seed":
                keyword.value = self._moved(keyword.value)
        return node

    def _moved(self, value: ast.expr) -> ast.expr:
        moved = ast.BinOp(value, ast.Add(), ast.Constant(self.offset))
        return ast.fix_missing_locations(ast.copy_location(moved, value))
