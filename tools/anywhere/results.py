"""What was seen, in one committed file: for each page its digest, and each check in all runs."""

import ast
import hashlib
import json
from pathlib import Path
from typing import Any

from myst_nb.core.read import read_myst_markdown_notebook

from tools.anywhere.cells import is_page
from website.build.dependencies import Sources, chapter_digest
from website.pages.meaning import code_hash, parsed

FILE = Path(__file__).with_name("results.json")
_PROOFS = ast.parse("import vitcheck.cases")  # by which an assignment is proved
_NOISE = Path(__file__).with_name("noise.py")


def digest_of(page: Path, sources: Sources) -> str:
    """Changes with the page's code, what it reaches, and the noise."""
    if not is_page(page):
        reached = parsed(page) if page.suffix == ".py" else _PROOFS
        whole = [page.read_text("utf8"), code_hash(_NOISE), *sources.meanings(reached)]
        return hashlib.sha256("\n".join(whole).encode()).hexdigest()[:16]
    text = page.read_text("utf8")
    notebook = read_myst_markdown_notebook(text, path=page)
    parts = [chapter_digest(notebook, page.parent, sources, python="any"), code_hash(_NOISE)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class Results:
    """By page, then by run: what ``page.run_page`` gave."""

    def __init__(self, file: Path = FILE):
        self.file = file
        self.digests: dict[str, str] = {}
        self.pages: dict[str, dict[str, dict[str, Any]]] = {}
        for name, packed in (json.loads(file.read_text()) if file.is_file() else {}).items():
            self.digests[name] = packed["digest"]
            self.pages[name] = _unpacked(packed)

    def known(self, page: str, digest: str) -> dict[str, dict[str, Any]]:
        """The runs of a page at this digest."""
        return self.pages[page] if self.digests.get(page) == digest else {}

    def keep(self, page: str, digest: str, found: dict[str, Any]) -> None:
        """A run of a page at this digest; only now those at another one are forgotten."""
        if self.digests.get(page) != digest:
            self.digests[page], self.pages[page] = digest, {}
        self.pages[page][found["run"]] = found

    def write(self) -> None:
        """All or nothing; a check is a line, so that a difference can be read."""
        parts = []
        for name in sorted(self.pages):
            packed = {"digest": self.digests[name], **_packed(self.pages[name])}
            fields = []
            for key, value in packed.items():
                if isinstance(value, dict):
                    lines = [f"   {json.dumps(k)}: {json.dumps(value[k])}" for k in value]
                    fields.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n  }")
                else:
                    fields.append(f"  {json.dumps(key)}: {json.dumps(value)}")
            parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")
        part = self.file.with_suffix(".part")
        part.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
        part.replace(self.file)


def _packed(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    names = list(runs)
    packed: dict[str, Any] = {"runs": names}
    for key in ("seconds", "failed", "error"):
        packed[key] = {name: runs[name][key] for name in names if runs[name].get(key)}
    for key in ("checks", "glued"):
        places = {place: None for name in names for place in runs[name].get(key, {})}
        packed[key] = {
            place: _once([runs[name].get(key, {}).get(place) for name in names]) for place in places
        }
    return packed


def _unpacked(packed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    runs: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(packed["runs"]):
        runs[name] = {key: packed[key].get(name) for key in ("seconds", "failed", "error")}
        for key in ("checks", "glued"):
            found = {
                place: values["all"] if isinstance(values, dict) else values[i]
                for place, values in packed.get(key, {}).items()
            }
            runs[name][key] = {place: one for place, one in found.items() if one is not None}
    return runs


def _once(values: list[Any]) -> Any:
    """One value where all runs saw the same; numbers to six digits."""
    short = [float(f"{one:.6g}") if isinstance(one, float) else one for one in values]
    return {"all": short[0]} if all(one == short[0] for one in short) else short
