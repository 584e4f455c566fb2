"""What an experiment's numbers depend on: its script and the modules of vitbook that it imports."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import vitbook

PACKAGE = Path(vitbook.__file__).parent
_NOT_MEANING = {"ctx", "kind", "type_comment", "lineno", "col_offset"}


def fingerprint(script: Path) -> dict[str, str]:
    """Hash of the script and of each vitbook module it reaches, directly or through another.

    A hash covers the syntax tree without docstrings: comments, layout and documentation do not
    count. The package's own `__init__` (its version) is left out.

    Returns:
        File name ("digits.py", "vitbook/attention.py") -> SHA-256, the script first.
    """
    hashes = {script.name: ""}
    todo = [script]
    while todo:
        path = todo.pop()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        hashes[_label(path, script)] = hashlib.sha256(repr(_meaning(tree)).encode()).hexdigest()
        todo += [p for p in _imports(tree, path) if _label(p, script) not in hashes]
    hashes.pop("vitbook/__init__.py", None)
    first = hashes.pop(script.name)
    return {script.name: first, **dict(sorted(hashes.items()))}


def digest(hashes: dict[str, str]) -> str:
    """One short name for a whole fingerprint."""
    return hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()[:16]


def _label(path: Path, script: Path) -> str:
    if path == script:
        return script.name
    return f"vitbook/{path.relative_to(PACKAGE).as_posix()}"


def _imports(tree: ast.Module, path: Path) -> set[Path]:
    """Files of vitbook that a tree imports; of `vitbook.a.b` also the packages above it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:  # relative to the file
                parents = path.relative_to(PACKAGE).parts[: -node.level]
                module = ".".join(("vitbook", *parents, *filter(None, [module])))
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    found = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == "vitbook":
            found |= {_file(".".join(parts[: i + 1])) for i in range(len(parts))}
    return found - {None}


def _file(module: str) -> Path | None:
    parent = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (parent / "__init__.py", parent.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _meaning(node):
    """A syntax tree as nested tuples: no positions, no docstrings, no empty fields.

    Empty fields are left out because each Python version adds some of its own.
    """
    if isinstance(node, list):
        return tuple(map(_meaning, node))
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
            fields["body"] = node.body[1:]
    kept = [
        (key, _meaning(value))
        for key, value in sorted(fields.items())
        if key not in _NOT_MEANING and value is not None and value != []
    ]
    return type(node).__name__, tuple(kept)
