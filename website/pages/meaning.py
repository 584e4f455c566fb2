"""What a file means: a hash of a module by its syntax tree, and the pieces that a module has.

Comments, layout and docstrings of a module mean nothing, nor do blanks in a record.
"""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

# what may decorate a definition, or be called for a constant, and changes nothing elsewhere
PURE = {"cache", "contextmanager", "dataclass", "lru_cache", "no_grad"}
PURE |= {"dict", "frozenset", "items", "keys", "len", "range", "set", "sorted", "split"}
PURE |= {"tuple", "values"}
_NOT_MEANING = {"ctx", "kind", "type_comment", "lineno", "col_offset"}


@cache
def cell_tree(source: str) -> ast.Module:
    """The syntax tree of a cell, to be read and never changed: half a dozen tools share it. What is
    no Python by itself has IPython's magics taken out."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(TransformerManager().transform_cell(source))


def parsed(path: Path) -> ast.Module:
    return _parsed(path.read_text(encoding="utf-8"))


# A module is reached from many chapters: by its text, it is parsed once.
@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def code_hash(path: Path) -> str:
    """SHA-256 of what a module means."""
    return _hash(parsed(path))


@cache
def _hash(tree: ast.AST) -> str:
    return hashlib.sha256(repr(meaning(tree)).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's meaning: Python without comments, JSON without its layout, else bytes."""
    if path.suffix == ".py":
        return code_hash(path)
    content = path.read_bytes()
    if path.suffix == ".json":
        content = json.dumps(json.loads(content), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


def meaning(node: Any) -> Any:
    """A syntax tree as nested tuples: no positions, no docstrings, no empty fields.

    Empty fields are left out because each Python version adds some of its own.
    """
    if isinstance(node, list):
        return tuple(map(meaning, node))
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        fields["body"] = _without_docstring(node.body)
    kept = [
        (key, meaning(value))
        for key, value in sorted(fields.items())
        if key not in _NOT_MEANING and value is not None and value != []
    ]
    return type(node).__name__, tuple(kept)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    told = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return body[1:] if told else body


@dataclass(frozen=True)
class Piece:
    """A statement of a module: a hash of what it means, and the names that occur in it."""

    hash: str
    names: frozenset[str]

    @classmethod
    def of(cls, tree: ast.AST) -> Piece:
        return cls(_hash(tree), frozenset(occurring(tree)))


@cache
def pieces(text: str) -> list[tuple[str | None, Piece]]:
    """The statements of a module, with the name that each defines; None where it does more."""
    found: list[tuple[str | None, Piece]] = []
    for line in _without_docstring(_parsed(text).body):
        if isinstance(line, ast.Import | ast.ImportFrom):
            for one in line.names:
                name = (one.asname or one.name).split(".")[0]
                renamed = frozenset({one.name.split(".")[-1]})
                where = f"{getattr(line, 'level', 0)} {getattr(line, 'module', None)} {one.name}"
                found.append((name, Piece(where, renamed)))
        else:
            found.append((_defines(line), Piece.of(line)))
    return found


def _defines(line: ast.stmt) -> str | None:
    """The one name that a statement gives a meaning to, if running it does nothing else."""
    if isinstance(line, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        above = {
            called_name(one) if isinstance(one, ast.Call) else _last(one)
            for one in line.decorator_list
        }
        return line.name if above <= PURE and not getattr(line, "keywords", []) else None
    if isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        calls = (node for node in ast.walk(line.value) if isinstance(node, ast.Call))
        pure = all(called_name(call) in PURE for call in calls)
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and pure:
            return targets[0].id
    return None


def called_name(call: ast.Call) -> str:
    return _last(call.func)


@cache
def loaded_records(tree: ast.AST) -> set[str] | None:
    """The names of the records that a tree loads; None when one is worked out at run time."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) == "load_record" and node.args:
            if not isinstance(node.args[0], ast.Constant):
                return None
            names.add(str(node.args[0].value))
    return names


def _last(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def occurring(tree: ast.AST) -> set[str]:
    """All names in a tree, of attributes, arguments and in strings among them: ``getattr`` may
    be asked for what a string says."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        elif isinstance(node, ast.Name | ast.Attribute):
            names.add(_last(node))
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {one.name.split(".")[-1] for one in node.names}
    return names
