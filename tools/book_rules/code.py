"""Rules for the cells: what they import, draw and glue, and who introduces what."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from website.pages.introductions import (
    imported,
    included_sources,
    introduces,
    introductions,
    part_of,
)
from website.pages.meaning import called_name
from website.pages.source import Book, Chapter, Finding, Item
from website.syntax.api import modules

TEACHING = {f"layers.{name}" for name in ("attention", "patches", "positions", "encoder")}
TEACHING |= {f"models.{name}" for name in ("vit", "mlp_mixer", "conv_mixer", "hybrid")}
TEACHING |= {"inspection", "training"}
IN_COLAB = {"torch", "torchvision", "numpy", "matplotlib", "mpl_toolkits", "scipy", "sklearn"}
IN_COLAB |= {"einops", "safetensors", "tqdm", "IPython", "pandas", "PIL", "vitbook", "vitcheck"}
LATER = {"timm": "vit/block"}  # package -> first chapter that may compare with it
TYPED_NUMBER = re.compile(r"\d+\.\d+|\b(?!(?:0|50|95|100)\s?%)\d+\s?%")


def imports(book: Book) -> Iterator[Finding]:
    """Only packages that Colab has, and explicit names from ours."""
    pages = [chapter.name for chapter in book.chapters]
    late = {
        package: pages[pages.index(first) :] for package, first in LATER.items() if first in pages
    }
    for chapter, cell, node in _nodes(book, ast.Import, ast.ImportFrom):
        names = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
        for name in names:
            package = name.partition(".")[0]
            if chapter.name in late.get(package, []):
                continue
            if package not in IN_COLAB | set(sys.stdlib_module_names):
                yield chapter.finding(cell, f"{package} is not in every reader's environment")
        whole = isinstance(node, ast.Import) or node.module == "vitbook"
        if whole and any(name.partition(".")[0] == "vitbook" for name in names):
            yield chapter.finding(cell, "import names from their module: from vitbook.x import y")


def named_records(book: Book) -> Iterator[Finding]:
    """A record is loaded by its name as written: so it is known whose pages wait for it."""
    for chapter, cell, node in _nodes(book, ast.Call):
        if called_name(node) == "load_record":
            name = node.args[0] if node.args else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield chapter.finding(cell, 'name the record itself: load_record("digits")')


def first_cell(book: Book) -> Iterator[Finding]:
    """Numbers repeat only with one thread and, in chapters, a seed."""
    for chapter in book.chapters:
        if chapter.cells:
            code = chapter.cells[0].text
            seed = ["torch.manual_seed("] if chapter.belongs_to is not None else []
            for needed in ["torch.set_num_threads(1)", *seed]:
                if "import torch" in code and needed not in code:
                    yield chapter.finding(chapter.cells[0], f"the first cell lacks {needed}")


def figures(book: Book) -> Iterator[Finding]:
    """Each figure goes through show(), with an alt text whose numbers come from the run."""
    for chapter, cell, node in _nodes(book, ast.Call):
        if called_name(node) != "show":
            continue
        if getattr(getattr(node.func, "value", None), "id", "") == "plt":
            yield chapter.finding(cell, "plt.show() has no alt text: show(fig, alt=...)")
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        alt = given.get("alt")
        if alt is None or (isinstance(alt, ast.Constant) and not str(alt.value).strip()):
            yield chapter.finding(cell, "show() without alt=")
        for name in ("alt", "caption"):
            for words in _literal_text(given.get(name)):
                if number := TYPED_NUMBER.search(words):
                    yield chapter.finding(cell, f"{number[0]} is typed into the {name}: {words!r}")


def _literal_text(node: ast.AST | None) -> Iterator[str]:
    """The words of a string that no expression fills in."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield from (str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.BinOp):
        yield from _literal_text(node.left)
        yield from _literal_text(node.right)


def introduced_once(book: Book) -> Iterator[Finding]:
    """Each public name of a teaching module is shown in one chapter and not used before.

    A name is introduced where its source is included, else where it is first imported. Front
    matter and the preview may import everything.
    """
    found = {key: one for key, one in introductions(book).items() if key[0] in TEACHING}
    for _, chapter, item, module, name in included_sources(book):
        first = found.get((module, name))
        if introduces(chapter) and first and first.chapter is not chapter:
            yield chapter.finding(item, f"{name} was introduced in {first.chapter.name} already")
    for at, chapter in enumerate(book.chapters):
        for cell in chapter.cells if introduces(chapter) else []:
            for module, name in imported(cell):
                first = found.get((module, name))
                if first and first.shown and at < first.at:
                    words = f"{name} is used before {first.chapter.name} introduces it"
                    yield chapter.finding(cell, words)


def redefined(book: Book) -> Iterator[Finding]:
    """No cell defines again what the package teaches."""
    public = public_names(book.root / "src")
    for chapter, cell, node in _nodes(book, ast.FunctionDef, ast.ClassDef, ast.Assign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [t.id for t in targets if isinstance(t, ast.Name)] or [getattr(node, "name", "")]
        for name in names:
            if name in public and node in cell.tree.body:
                yield chapter.finding(cell, f"the cell defines {name} again, which the package has")


def public_names(source: Path) -> set[str]:
    """What the teaching modules offer."""
    found = modules(source, "vitbook")
    taught = [one for one in found if part_of(one.name.split(".")[1:]) in TEACHING]
    return {member.name for one in taught for member in one.members() if not member.constant}


def _nodes(book: Book, *types: type[ast.AST]) -> Iterator[tuple[Chapter, Item, Any]]:
    """Every node of these types, with its page and its cell."""
    for chapter in book.chapters:
        for cell in chapter.cells:
            for node in ast.walk(cell.tree):
                if isinstance(node, types):
                    yield chapter, cell, node
