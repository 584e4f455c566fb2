"""The code of a page's cells, cut and changed for a notebook. Comments and layout stay."""

import ast
import re
from collections.abc import Callable, Collection, Iterable

from website.pages.cells import asserts, first_line
from website.pages.meaning import called_name, cell_tree

NOT_SHOWN = re.compile(r"display|print|show(_\w+)?")


def without(code: str, gone: Callable[[ast.stmt], bool]) -> str:
    """The code without some of the statements at its top level."""
    lines = code.split("\n")
    body = cell_tree(code).body
    dropped = [node for node in body if gone(node)]
    kept = {at for node in body if node not in dropped for at in _lines(node)}
    for at in {at for node in dropped for at in _lines(node)} - kept:
        lines[at - 1] = "\0"
    text = "\n".join(line for line in lines if line != "\0")
    return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n")


def imports_in(code: str) -> list[str]:
    """The statements at the top level that import, as they are written."""
    lines = code.split("\n")
    found = (node for node in cell_tree(code).body if is_import(node))
    return ["\n".join(lines[at - 1] for at in _lines(node)) for node in found]


def merged(statements: Iterable[str]) -> list[str]:
    """Each import once; what comes from one module in one line."""
    lines: list[str] = []
    names: dict[str, list[str]] = {}
    for one in dict.fromkeys(statements):
        match = re.fullmatch(r"(from [\w.]+ import )(\w+)", one)
        if match is None:
            lines.append(one)
        else:
            names.setdefault(match[1], []).append(match[2])
    return [*lines, *(start + ", ".join(some) for start, some in names.items())]


def is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_glue(node: ast.stmt) -> bool:
    """A number for the text of the page: the notebook has it in its text already."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(node, ast.ImportFrom):
        return node.module == "vitbook.book.glue"
    return isinstance(call, ast.Call) and called_name(call) == "glue"


def glues_inside(code: str) -> bool:
    """Is a number glued in a loop or in a function?"""
    calls = [n for n in ast.walk(cell_tree(code)) if isinstance(n, ast.Call)]
    return sum(called_name(n) == "glue" for n in calls) > sum(map(is_glue, cell_tree(code).body))


def draws(code: str) -> bool:
    """Does it show something: a figure, a table, a text, or the value of its last line?"""
    tree = cell_tree(code)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    if any(NOT_SHOWN.fullmatch(called_name(node)) for node in calls):
        return True
    last = tree.body[-1] if tree.body else None
    return isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call) and not asserts(last)


def checks_in(code: str) -> list[str]:
    """The names of the checks of answers that it calls."""
    found = (
        node.value.func.id
        for node in cell_tree(code).body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
    )
    return [name for name in dict.fromkeys(found) if name.startswith("check_")]


def bound(code: str) -> set[str]:
    """The names that code binds at its top level."""
    return _bound(cell_tree(code).body)


def renamed(code: str, names: dict[str, str]) -> str:
    """The code with other names at its top level; a function's own names stay."""
    tree = cell_tree(code)
    finder = _Places(names)
    finder.visit(tree)
    if finder.in_strings:  # Python 3.11 does not say where in the line they stand
        return ast.unparse(_Renamer(names).visit(ast.parse(code)))
    lines = [line.encode() for line in code.split("\n")]
    for line, column, name in sorted(set(finder.places), reverse=True):
        text, old = lines[line - 1], name.encode()
        column = text.index(old, column)
        lines[line - 1] = text[:column] + names[name].encode() + text[column + len(old) :]
    return "\n".join(line.decode() for line in lines)


def own_names(code: str, taken: Collection[str]) -> dict[str, str]:
    """A name of its own for each name that a solution binds and others bind, too."""
    return {name: own_name(name) for name in sorted(bound(code) & set(taken))}


def own_name(name: str) -> str:
    if name[:1].isupper():
        return f"Solution{name.removeprefix('My')}"
    return f"solution_{name.removeprefix('my_')}"


def _lines(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _bound(body: Iterable[ast.AST]) -> set[str]:
    """Names bound by statements, not by what stands inside functions, classes and lambdas."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.Lambda | _COMPREHENSIONS):
            names |= _bound(ast.iter_child_nodes(node))
    return names


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class _Scopes(ast.NodeTransformer):
    """Walks over names, and knows which of them are a function's own."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names, self.hidden = names, list[set[str]]()

    def visible(self, name: str) -> bool:
        return name in self.names and not any(name in own for own in self.hidden)

    def visit(self, node: ast.AST) -> ast.AST:
        own: set[str] | None = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.named(node)
        if isinstance(node, _DEFINITIONS):
            arguments = getattr(node, "args", None)
            outside = [*getattr(node, "decorator_list", []), *getattr(node, "bases", [])]
            if arguments is not None:
                outside += [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            for one in outside:
                self.visit(one)
            taken = (
                {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
                if arguments
                else set()
            )
            outer = {n for one in ast.walk(node) if isinstance(one, ast.Global) for n in one.names}
            inside = node.body if isinstance(node.body, list) else [node.body]
            own = (taken | _bound(inside)) - outer
        elif isinstance(node, _COMPREHENSIONS):
            own = {
                one.id
                for part in node.generators
                for one in ast.walk(part.target)
                if isinstance(one, ast.Name)
            }
        if own is not None:
            self.hidden.append(own)
        if isinstance(node, ast.Name) and self.visible(node.id):
            self.named(node)
        self.generic_visit(node)
        if own is not None:
            self.hidden.pop()
        return node

    def named(self, node: ast.AST) -> None:
        raise NotImplementedError


class _Places(_Scopes):
    """Where the names stand."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__(names)
        self.places: list[tuple[int, int, str]] = []
        self.in_strings, self._string = False, 0

    def visit(self, node: ast.AST) -> ast.AST:
        self._string += isinstance(node, ast.JoinedStr)
        super().visit(node)
        self._string -= isinstance(node, ast.JoinedStr)
        return node

    def named(self, node: ast.AST) -> None:
        name = getattr(node, "id", getattr(node, "name", ""))
        if not self.visible(name):
            return
        if self._string:
            self.in_strings = True
        definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        after = (
            len("class ") if isinstance(node, ast.ClassDef) else len("def ") if definition else 0
        )
        self.places.append((node.lineno, node.col_offset + after, name))  # type: ignore[attr-defined]


class _Renamer(_Scopes):
    def named(self, node: ast.AST) -> None:
        for field in ("id", "name"):
            if self.visible(getattr(node, field, "")):
                setattr(node, field, self.names[getattr(node, field)])
