"""The chapters of the book: which pages hold code, what each was executed at, and the cache that
Sphinx reads their outputs from."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook

from tools.dependencies import Sources, chapter_digest
from tools.settings import toc_files


class Chapter:
    """One page with code cells: its notebook, its digest, its key in the cache."""

    def __init__(self, path: Path, name: str, sources: Sources):
        self.path, self.name = path, name
        self.notebook = read_myst_markdown_notebook(
            path.read_text("utf8"), add_source_map=True, path=path
        )
        self.digest = chapter_digest(self.notebook, path.parent, sources)
        self.cells = [
            cell for cell in self.notebook.cells if cell.cell_type == "code" and cell.source.strip()
        ]
        self.seconds = 0.0
        self.cell_seconds: list[float] = []


def find_chapters(root: Path, pages: list[Path]) -> list[Chapter]:
    """The pages with code cells: those named, or all of the table of contents."""
    book, sources = root / "book", Sources(root)
    if not pages:
        toc = yaml.safe_load((root / "_toc.yml").read_text("utf8"))
        pages = [book / f"{name}.md" for name in toc_files(toc)]
    missing = [str(page) for page in pages if not page.is_file()]
    if missing:
        raise SystemExit(f"No such page: {', '.join(missing)} (see _toc.yml)")
    chapters = []
    for page in pages:
        if is_myst_markdown_notebook(page.read_text("utf8")):
            name = page.resolve().relative_to(book.resolve()).with_suffix("").as_posix()
            chapter = Chapter(page.resolve(), name, sources)
            if chapter.cells:
                chapters.append(chapter)
    return chapters


class Store:
    """The cache of executed chapters, and the digest that each was executed at."""

    def __init__(self, folder: Path):
        self.cache = get_cache(str(folder))
        self.file = folder / "digests.json"
        self.state = json.loads(self.file.read_text()) if self.file.is_file() else {}

    def key(self, chapter: Chapter) -> str:
        return self.cache.create_hashed_notebook(chapter.notebook)[1]

    def is_fresh(self, chapter: Chapter) -> bool:
        entry = self.state.get(chapter.name, {})
        if entry.get("digest") != chapter.digest or entry.get("key") != self.key(chapter):
            return False
        try:
            self.cache.match_cache_notebook(chapter.notebook)
        except KeyError:
            return False
        return True

    def seconds(self, chapter: Chapter) -> float:
        """How long it took the last time; unknown counts as for ever, so that it starts early."""
        return self.state.get(chapter.name, {}).get("seconds", float("inf"))

    def forget(self, chapter: Chapter) -> None:
        self.state.pop(chapter.name, None)
        self._write()
        with suppress(KeyError):
            self.cache.remove_cache(self.cache.match_cache_notebook(chapter.notebook).pk)

    def keep(self, chapter: Chapter) -> None:
        bundle = CacheBundleIn(
            chapter.notebook, str(chapter.path), data={"execution_seconds": chapter.seconds}
        )
        self.cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        self.state[chapter.name] = {
            "digest": chapter.digest,
            "key": self.key(chapter),
            "seconds": round(chapter.seconds, 2),
        }
        self._write()

    def drop_others(self, chapters: list[Chapter]) -> None:
        """Remove what no chapter uses any more."""
        self.state = {c.name: self.state[c.name] for c in chapters if c.name in self.state}
        self._write()
        keys = {entry["key"] for entry in self.state.values()}
        for record in self.cache.list_cache_records():
            if record.hashkey not in keys:
                self.cache.remove_cache(record.pk)

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1, sort_keys=True))
        part.replace(self.file)
