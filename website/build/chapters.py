"""The chapters of the book: which pages hold code, what each was executed at, and the cache that
Sphinx reads their outputs from."""

import hashlib
import json
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.db import NbCacheRecord
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from nbformat import NotebookNode

from website.build.dependencies import Sources, chapter_digest
from website.build.inputs import digest, hashes
from website.pages.failures import Failure
from website.pages.settings import toc_files

READS_A_PAGE = re.compile(r"""\.md["']""")


class Chapter:
    """One page with code cells: its notebook, its digest, its key in the cache.

    ``inputs`` is a hash of all bytes that may matter. While it stays the same, so does the digest,
    and nobody needs to read the page; of a page whose cells may read another page it is empty.
    """

    def __init__(self, path: Path, name: str, sources: Sources, rest: str = ""):
        self.path, self.name, self._sources = path, name, sources
        self.text = path.read_text("utf8")
        whole = hashlib.sha256(f"{rest}\0{self.text}".encode()).hexdigest()
        self.inputs = "" if READS_A_PAGE.search(self.text) else whole
        self.seconds = 0.0
        self.cell_seconds: list[float] = []
        self.failures: list[Failure] = []  # of the run that has just been

    def is_known(self, inputs: dict[str, str]) -> bool:
        """Are these, by name, the chapter's inputs of the last time?"""
        return bool(self.inputs) and inputs.get(self.name) == self.inputs

    @cached_property
    def notebook(self) -> NotebookNode:
        return read_myst_markdown_notebook(self.text, add_source_map=True, path=self.path)

    @cached_property
    def digest(self) -> str:
        return chapter_digest(self.notebook, self.path.parent, self._sources)

    @cached_property
    def cells(self) -> list[NotebookNode]:
        found = (cell for cell in self.notebook.cells if cell.cell_type == "code")
        return [cell for cell in found if cell.source.strip()]

    def first_line(self, index: int) -> int:
        """The line of the page, counted from 1, on which the code of a cell begins."""
        lines, first = self.text.splitlines(), self.notebook.cells[index].source.splitlines()[0]
        fence = self.notebook.metadata["source_map"][index]
        below = range(fence + 1, len(lines))  # options of the cell come first
        return next((at for at in below if lines[at].strip() == first.strip()), fence) + 1


def is_page(name: str) -> bool:
    return name.startswith("book/") and name.endswith(".md")


def find_chapters(
    root: Path, pages: list[Path], known: dict[str, str] | None = None
) -> list[Chapter]:
    """The pages with code cells: those named, or all of the table of contents.

    Args:
        root: The repository.
        pages: Those named.
        known: The inputs of pages with code cells; where they are the same, the page has some.
    """
    book, sources = root / "book", Sources(root)
    # one digest over all that a digest of a chapter may cover, but for the book's pages
    files = hashes(root, ["requirements.txt"], ["book", "src", "website"])
    rest = digest({name: content for name, content in files.items() if not is_page(name)})
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
            chapter = Chapter(page.resolve(), name, sources, rest)
            if chapter.is_known(known or {}) or chapter.cells:
                chapters.append(chapter)
    return chapters


class Store:
    """The cache of executed chapters, and the digest that each was executed at.

    The book and the previews of pages share it, and may write side by side.
    """

    def __init__(self, folder: Path):
        self.cache = get_cache(str(folder))
        self.file, self.seen = folder / "digests.json", folder / "inputs.json"
        self.lock = FileLock(folder / "digests.lock")
        self.state, self.inputs = read(self.file), read(self.seen)

    def key(self, chapter: Chapter) -> str:
        return self.cache.create_hashed_notebook(chapter.notebook)[1]

    def is_fresh(self, chapter: Chapter) -> bool:
        entry = self.state.get(chapter.name, {})
        if not entry or entry.get("failed"):
            return False
        if not chapter.is_known(self.inputs) and (
            entry["digest"] != chapter.digest or entry["key"] != self.key(chapter)
        ):
            return False
        try:
            NbCacheRecord.record_from_hashkey(entry["key"], self.cache.db)
        except KeyError:
            return False
        return True

    def remember(self, chapters: list[Chapter]) -> None:
        """Note the inputs of chapters that are fresh: the next time nobody needs to read them."""
        now = {one.name: one.inputs for one in chapters if one.name in self.state}
        self.seen.parent.mkdir(parents=True, exist_ok=True)
        with self.lock:
            known = read(self.seen) | now
            self.inputs = {name: one for name, one in known.items() if name in self.state}
            write(self.seen, self.inputs)

    def seconds(self, chapter: Chapter) -> float:
        """How long it took the last time; unknown counts as for ever, so that it starts early."""
        return self.state.get(chapter.name, {}).get("seconds", float("inf"))

    def forget(self, chapter: Chapter) -> None:
        self._change(chapter.name, {})
        with suppress(KeyError):
            self.cache.remove_cache(self.cache.match_cache_notebook(chapter.notebook).pk)

    def keep(self, chapter: Chapter) -> None:
        bundle = CacheBundleIn(
            chapter.notebook, str(chapter.path), data={"execution_seconds": chapter.seconds}
        )
        self.cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        entry: dict[str, Any] = {
            "digest": chapter.digest,
            "key": self.key(chapter),
            "seconds": round(chapter.seconds, 2),
        }
        if chapter.failures:
            entry["failed"] = [str(one) for one in chapter.failures]
        self._change(chapter.name, entry)

    def drop_others(self, chapters: list[Chapter]) -> None:
        """Remove what no chapter uses any more."""
        for name in self.state.keys() - {chapter.name for chapter in chapters}:
            self._change(name, {})
        keys = {entry["key"] for entry in read(self.file).values()}
        for record in self.cache.list_cache_records():
            if record.hashkey not in keys:
                self.cache.remove_cache(record.pk)

    def _change(self, name: str, entry: dict[str, Any]) -> None:
        """Write down what is known of one chapter; what another process wrote of others stays."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.lock:
            others = {one: known for one, known in read(self.file).items() if one != name}
            self.state = others | ({name: entry} if entry else {})
            write(self.file, self.state)


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.is_file() else {}


def write(file: Path, content: dict[str, Any]) -> None:
    """All at once: who reads meanwhile has the old or the new."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, sort_keys=True))
    part.replace(file)
