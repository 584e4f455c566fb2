"""What takes its time and follows from little is made once, and kept in a file beside the site."""

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from sphinx.application import Sphinx

LOCK = Path(__file__).resolve().parents[2] / "requirements.txt"


class Kept:
    """Pieces of pages from the last build, under a hash of what each was made from.

    Args:
        name: of the file.
        makers: the files that each piece follows from, besides the lock file with the versions of
            all libraries; when a byte of them changes, nothing is known any more.
    """

    def __init__(self, name: str, makers: list[Path]) -> None:
        self.name, self.makers = name, [LOCK, *makers]
        self.known: dict[str, str] = {}  # what earlier builds have made
        self.used: dict[str, str] = {}  # what this one needs

    @cached_property
    def by(self) -> str:
        return hashlib.sha256(b"".join(path.read_bytes() for path in self.makers)).hexdigest()

    def of(self, about: tuple, make: Callable[[], str]) -> str:
        """The piece that follows from ``about``, told by its `repr`. Where ``make`` raises,
        nothing is kept."""
        key = hashlib.sha256(repr((self.by, about)).encode()).hexdigest()
        if key not in self.used:
            self.used[key] = self.known.get(key) or make()
        return self.used[key]

    def file(self, app: Sphinx) -> Path:
        return Path(app.outdir).parent / self.name

    def recall(self, app: Sphinx) -> None:
        self.used.clear()
        try:
            self.known = json.loads(self.file(app).read_text("utf8"))
        except (OSError, ValueError):  # none, or half written
            self.known = {}

    def keep(self, app: Sphinx, exception: Exception | None) -> None:
        if exception is None:
            self.file(app).write_text(json.dumps(self.used), encoding="utf-8")

    def connect(self, app: Sphinx) -> None:
        app.connect("builder-inited", self.recall)
        app.connect("build-finished", self.keep)
