"""What the outputs of a chapter depend on, boiled down to one digest.

A chapter is executed again when its digest changes, and only then. The digest covers the code
cells, the first-party modules they import (followed through imports, by syntax tree), the records
and data files these name, the lock file and the Python version. Prose is not in it.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from functools import cached_property
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

FORMAT = "1"  # raise it when the executor itself changes what a page would show


class Sources:
    """The first-party code under one ``src`` folder, and what each module needs."""

    def __init__(self, root: Path):
        self.root = Path(root)
        self.src = self.root / "src"
        self._needs: dict[Path, tuple[set[str], set[str], bool]] = {}

    @cached_property
    def packages(self) -> set[str]:
        return {path.parent.name for path in self.src.glob("*/__init__.py")}

    @cached_property
    def data_files(self) -> list[Path]:
        """Everything in the packages that is not Python: records, weights, scripts, styles."""
        files = (path for name in self.packages for path in (self.src / name).rglob("*"))
        return sorted(
            path
            for path in files
            if path.is_file()
            and path.suffix not in {".py", ".pyc"}
            and "__pycache__" not in str(path)
        )

    @cached_property
    def unnamed_data(self) -> set[Path]:
        """Data files that no module names: nobody can tell who reads them, so all chapters do."""
        texts = [
            path.read_text("utf8")
            for name in self.packages
            for path in (self.src / name).rglob("*.py")
        ]
        return {
            path
            for path in self.data_files
            if not is_record(path) and not any(path.name in text for text in texts)
        }

    def files_of(self, module: str) -> list[Path]:
        """The files that importing `module` runs: the ``__init__`` of each package, and itself."""
        parts = module.split(".")
        found = []
        for end in range(1, len(parts) + 1):
            base = self.src.joinpath(*parts[:end])
            for path in (base / "__init__.py", base.with_suffix(".py")):
                if path.is_file():
                    found.append(path)
        return found

    def needs_of(self, path: Path) -> tuple[set[str], set[str], bool]:
        if path not in self._needs:
            package = ".".join(path.parent.relative_to(self.src).parts)
            self._needs[path] = needs(path.read_text("utf8"), package)
        return self._needs[path]

    def closure(self, code: str) -> list[Path]:
        """All files, Python and data, that running `code` may read from the packages."""
        modules, strings, any_record = needs(code, "")
        seen: set[Path] = set()
        queue = [path for module in modules for path in self.files_of(module)]
        while queue:
            path = queue.pop()
            if path in seen:
                continue
            seen.add(path)
            more_modules, more_strings, _ = self.needs_of(path)
            strings |= more_strings
            queue += [file for module in more_modules for file in self.files_of(module)]
        if not seen:
            return []
        data = {
            file
            for file in self.data_files
            if is_record(file) and (any_record or names(strings, file))
        }
        data |= {file for file in self.data_files if not is_record(file) and file.name in strings}
        return sorted(seen | data | self.unnamed_data)


def is_record(path: Path) -> bool:
    return "recorded" in path.parts


def names(strings: set[str], path: Path) -> bool:
    """Does one of the strings name this record, or a file that belongs to it (``name.safetensors``,
    ``name-extra.npz``, ``name/0.json``)?"""
    parts = path.parts[path.parts.index("recorded") + 1 :]
    return any(
        part == text or (part.startswith(text) and part[len(text)] in ".-_")
        for part in parts
        for text in strings
        if text
    )


def needs(code: str, package: str) -> tuple[set[str], set[str], bool]:
    """The modules that `code` imports, the strings it holds, and whether it loads a record whose
    name is worked out at run time (then it may be any record)."""
    modules: set[str] = set()
    strings: set[str] = set()
    any_record = False
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(parts[: len(parts) - node.level + 1] + ([base] if base else []))
            modules |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
        elif isinstance(node, ast.Call) and called_name(node) == "load_record":
            any_record |= not (node.args and isinstance(node.args[0], ast.Constant))
    return modules, strings, any_record


def called_name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def chapter_digest(notebook, folder: Path, sources: Sources) -> str:
    """The digest of one chapter; `folder` is where its cells run."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code = "\n\n".join(TransformerManager().transform_cell(cell.source) for cell in cells)
    files = sources.closure(code)
    files += sorted(folder / text for text in needs(code, "")[1] if is_file_beside(folder, text))
    whole = hashlib.sha256()
    for part in (FORMAT, platform.python_version()):
        whole.update(part.encode() + b"\0")
    for cell in cells:
        whole.update(repr((cell.source, sorted(cell.metadata.items()))).encode() + b"\0")
    for path in [sources.root / "requirements.txt", *files]:
        if path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{path.name} {content}\0".encode())
    return whole.hexdigest()


def is_file_beside(folder: Path, text: str) -> bool:
    """Does this string of a cell name a file that lies in the chapter's folder or below?"""
    fits = 0 < len(text) < 200 and not {"\n", "\0"} & set(text) and not Path(text).is_absolute()
    return fits and ".." not in Path(text).parts and (folder / text).is_file()
