"""What outputs depend on: what code reaches, and a hash of what each piece of it means.

A chapter is executed again when its digest changes (``chapter_digest``). It goes by meaning:
comments, layout and docstrings of a module do not count, nor blanks in a record. Of the modules
that it imports, a function, a class or a constant counts where its name occurs in something that
counts (``Sources.meanings``).
"""

import ast
import hashlib
import platform
from functools import cached_property
from pathlib import Path

from nbformat import NotebookNode

from website.pages.meaning import (
    Piece,
    cell_tree,
    file_hash,
    loaded_records,
    occurring,
    parsed,
    pieces,
)

FORMAT = "3"  # raise it when the executor itself changes what a page would show
RECORDS = "recorded"  # the folder of a package that holds its records


class Packages:
    """First-party packages, and which of their modules a piece of code reaches.

    Args:
        folders: The packages' folders; each is imported under its folder's name.
        figures: The folder whose modules are imported as ``vitbook.figures``.
    """

    def __init__(self, folders: list[Path], figures: Path | None = None):
        self.figures = figures
        self.folders = {folder.name: folder for folder in folders}
        self._imported: dict[Path, list[Path]] = {}

    def label(self, path: Path) -> str:
        """A file of a package as "package/part/module.py"."""
        if path.parent == self.figures:
            return f"vitbook/figures/{path.name}"
        folder = next(folder for folder in self.folders.values() if folder in path.parents)
        return path.relative_to(folder.parent).as_posix()

    def files_of(self, module: str) -> list[Path]:
        """The files that importing ``module`` runs: each package's ``__init__``, and itself."""
        first, *rest = module.split(".")
        if first not in self.folders:
            return []
        found, base = [], self.folders[first]
        for part in ["", *rest]:
            base = base / part
            options = (base / "__init__.py", base.with_suffix(".py"))
            found += [path for path in options if path.is_file()]
        if self.figures and rest[:1] == ["figures"] and len(rest) == 2:
            found += filter(Path.is_file, [self.figures / f"{rest[1]}.py"])
        return found

    def closure(self, tree: ast.AST) -> set[Path]:
        """All modules that code with this syntax tree reaches, directly or through another."""
        seen: set[Path] = set()
        queue = [file for module in imports(tree) for file in self.files_of(module)]
        while queue:
            path = queue.pop()
            if path not in seen:
                seen.add(path)
                queue += self._next(path)
        return seen

    def _next(self, path: Path) -> list[Path]:
        """The files that a module imports; worked out once, however many chapters reach it."""
        if path not in self._imported:
            names = imports(parsed(path), self.label(path).split("/")[:-1])
            self._imported[path] = [file for module in names for file in self.files_of(module)]
        return self._imported[path]


def imports(tree: ast.AST, package: list[str] | None = None) -> set[str]:
    """The modules that a tree names; relative ones seen from inside ``package``.

    Of ``from a import b`` both ``a`` and ``a.b``: ``b`` may be a module.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = (package or [])[: len(package or []) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


class Sources:
    """The packages under one ``src`` folder, with the data files that their modules read."""

    def __init__(self, root: Path):
        self.root = Path(root)
        src = self.root / "src"
        folders = [path.parent for path in sorted(src.glob("*/__init__.py"))]
        self.packages = Packages(folders, self.root / "book" / "figures")

    @cached_property
    def data(self) -> list[tuple[Path, Path]]:
        """(file, folder that it belongs to) of all in the packages that is not Python."""
        found = []
        for folder in self.packages.folders.values():
            for path in folder.rglob("*"):
                if path.is_file() and path.suffix not in {".py", ".pyc"}:
                    owner = next(up for up in path.parents if (up / "__init__.py").is_file())
                    found.append((path, owner))
        return found

    def files(self, tree: ast.AST) -> list[Path]:
        """All files, Python and data, that running code with this tree may read.

        A record belongs to those who name it, a module that they reach among them; other data to
        the package folder that it lies in.
        """
        modules = self.packages.closure(tree)
        folders = {path.parent for path in modules}
        loaded = [loaded_records(tree), *map(loaded_records, map(parsed, modules))]
        records = None if None in loaded else set[str]().union(*filter(None, loaded))
        for path, owner in self.data:
            named = modules and (records is None or belongs(path, records))
            if named if RECORDS in path.parts else owner in folders:
                modules.add(path)
        return sorted(modules)

    def meanings(self, tree: ast.AST) -> list[str]:
        """What of the files counts, each with its hash.

        Of a module: what importing it does, and what it defines under a name that occurs in the
        tree or in something else that counts, whichever module that stands in.
        """
        files = self.files(tree)
        names, counts = occurring(tree), set[str]()
        waiting: dict[str, list[tuple[str, Piece]]] = {}

        def count(label: str, piece: Piece) -> None:
            counts.add(f"{label} {piece.hash}")
            new.extend(piece.names - names)
            names.update(piece.names)

        new = sorted(names)
        for path in files:
            label = path.relative_to(self.root).as_posix()
            if path.suffix != ".py":
                counts.add(f"{label} {file_hash(path)}")
                continue
            for name, piece in pieces(path.read_text(encoding="utf-8")):
                if name is None or name in names:
                    count(label, piece)
                else:
                    waiting.setdefault(name, []).append((label, piece))
        while new:
            for label, piece in waiting.pop(new.pop(), []):
                count(label, piece)
        return sorted(counts)


def belongs(path: Path, records: set[str]) -> bool:
    """Is this the record, or a file of it (``name-small.safetensors``)?"""
    return any(path.stem == name or path.name.startswith(f"{name}-") for name in records)


def chapter_digest(
    notebook: NotebookNode, folder: Path, sources: Sources, python: str | None = None
) -> str:
    """The digest of one chapter; ``folder`` is where its cells run.

    It covers the code cells, the modules they reach, the records they load, files beside the
    chapter that they name, the lock file and the Python version (this one, or ``python``). Prose
    is not in it.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tree = ast.Module([line for cell in cells for line in cell_tree(cell.source).body], [])
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    strings = {value for value in constants if isinstance(value, str)}
    beside = sorted(folder / text for text in strings if is_file_beside(folder, text))
    whole = hashlib.sha256()
    for part in (FORMAT, python or platform.python_version()):
        whole.update(part.encode() + b"\0")
    for cell in cells:
        whole.update(repr((cell.source, sorted(cell.metadata.items()))).encode() + b"\0")
    lock = sources.root / "requirements.txt"
    named = [f"{path.name} {file_hash(path)}" for path in [lock, *beside] if path.is_file()]
    for part in [*named, *sources.meanings(tree)]:
        whole.update(f"{part}\0".encode())
    return whole.hexdigest()


def is_file_beside(folder: Path, text: str) -> bool:
    """Does this string of a cell name a file that lies in the chapter's folder or below?"""
    fits = 0 < len(text) < 200 and not {"\n", "\0"} & set(text) and not Path(text).is_absolute()
    return fits and ".." not in Path(text).parts and (folder / text).is_file()
