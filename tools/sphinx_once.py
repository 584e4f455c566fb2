"""What Sphinx works out again for each page and each build, worked out once.

Two things, a quarter of the writing together: which plugins are installed (asked for each
citation) and the colours of a block of code. The colours are kept between builds, under a hash of
all that they depend on. Code that Pygments does not understand is not kept, so that Sphinx warns
of it each time.
"""

from __future__ import annotations

import hashlib
import json
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
        file: where the colours are kept; those that were not asked for this time go.
    """
    import pybtex.plugin
    from sphinx import highlighting

    colours = Colours(file, highlighting.highlight)
    replaced = [
        (pybtex.plugin, "entry_points", cache(pybtex.plugin.entry_points)),
        (highlighting, "highlight", colours.highlight),
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    try:
        for place, name, new in replaced:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old in before:
            setattr(place, name, old)
    colours.save()


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
