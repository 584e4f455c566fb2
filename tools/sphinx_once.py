"""What Sphinx works out again for each page and each build, worked out once.

Three things: which plugins are installed (asked for each citation), the colours of a block of code,
and the text of an entry of the literature. Colours and entries are kept between builds, under a
hash of all that they depend on. Code that Pygments does not understand is not kept, so that Sphinx
warns of it each time.

Two more are done in fewer steps: walking through a tree, and looking for objects that nobody uses
while the trees are full of used ones.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any


@contextmanager
def worked_out_once(file: Path) -> Iterator[None]:
    """Inside, Sphinx asks once.

    Args:
        file: where the colours are kept, and beside it, with another ending, the entries; those
            that were not asked for this time go.
    """
    import pybtex.plugin
    from docutils.nodes import Node
    from pybtex.style.formatting import BaseStyle
    from sphinx import highlighting

    colours = Colours(file, highlighting.highlight)
    entries = Entries(file.with_suffix(".entries"), BaseStyle.format_entry)
    replaced = [
        (pybtex.plugin, "entry_points", cache(pybtex.plugin.entry_points)),
        (highlighting, "highlight", colours.highlight),
        (BaseStyle, "format_entry", entries.method()),
        (Node, "_fast_findall", walk),
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    often = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)
    try:
        for place, name, new in replaced:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old in before:
            setattr(place, name, old)
        gc.set_threshold(*often)
    colours.save()
    entries.save()


def walk(node: Any, cls: type) -> Iterator[Any]:
    """The nodes of a class in a tree, in its order, as docutils' ``_fast_findall`` gives them: one
    loop instead of a generator in a generator for each level. Whoever asks may change the tree
    meanwhile: the lists of children are read on, as they are then."""
    if isinstance(node, cls):
        yield node
    levels = [iter(node.children)]
    while levels:
        for child in levels[-1]:
            if isinstance(child, cls):
                yield child
            if child.children:
                levels.append(iter(child.children))
                break
        else:
            levels.pop()


class Colours:
    """Blocks of code as HTML.

    Args:
        file: what is known from the last time.
        highlight: Pygments' function of that name.
    """

    def __init__(self, file: Path, highlight: Callable) -> None:
        self.file, self._highlight = file, highlight
        self.used: dict[str, str] = {}
        self.versions = [version("pygments"), version("ipython")]
        try:
            self.known = json.loads(file.read_text("utf8")) if file.is_file() else {}
        except ValueError:  # half written
            self.known = {}

    def highlight(self, code: str, lexer: Any, formatter: Any) -> str:
        """What `highlight(code, lexer, formatter)` returns; what it raises is raised each time."""
        parts = [(type(part), part.options) for part in (lexer, *lexer.filters, formatter)]
        key = hashlib.sha256(repr((self.versions, parts, code)).encode()).hexdigest()
        if key not in self.used:
            found = self.known.get(key)
            self.used[key] = self._highlight(code, lexer, formatter) if found is None else found
        return self.used[key]

    def save(self) -> None:
        self.file.write_text(json.dumps(self.used), encoding="utf-8")


class Entries:
    """Entries of the literature as pybtex sets them.

    Args:
        file: what is known from the last time.
        format_entry: the method of pybtex's styles of that name.
    """

    def __init__(self, file: Path, format_entry: Callable) -> None:
        self.file, self._format_entry = file, format_entry
        self.used: dict[str, Any] = {}
        self.versions = [version(name) for name in ("pybtex", "latexcodec")]
        try:
            self.known = pickle.loads(file.read_bytes()) if file.is_file() else {}
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError):  # half written
            self.known = {}

    def method(self) -> Callable:
        def format_entry(style: Any, label: str, entry: Any, bib_data: Any = None) -> Any:
            """What pybtex's method returns; only the text takes time, and no label is in it."""
            from pybtex.style import FormattedEntry

            if bib_data is not None:  # then other entries may matter
                return self._format_entry(style, label, entry, bib_data)
            names = type(style.name_style), style.abbreviate_names, style.min_crossrefs
            parts = self.versions, type(style), names, entry.key, entry
            key = hashlib.sha256(repr(parts).encode()).hexdigest()
            if key not in self.used:
                found = self.known.get(key)
                self.used[key] = found or self._format_entry(style, label, entry).text
            return FormattedEntry(entry.key, self.used[key], label)

        return format_entry

    def save(self) -> None:
        self.file.write_bytes(pickle.dumps(self.used))
