"""A few pages, and what Sphinx makes of them with some of the book's extensions."""

import io
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).resolve().parents[2]

TITLES = {
    "index": "Front",
    "one": "1. First",
    "part/two": "2. Second",
    "ready": "Ready?",
    "part/places": "Places",
    "part/maps": "Maps",
    "part/sharing": "Sharing",
    "part/places_depth_where": "In depth: where places go",
}
CHAPTERS = """meta: {lettered: [part/maps]}
root: index
parts:
- chapters: [{file: ready}]
- caption: I Part
  chapters:
  - {file: part/places, sections: [{file: part/places_depth_where}]}
  - {file: part/maps}
  - {file: part/sharing}
"""


def write_files(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf8")


class Book:
    """Building again is incremental."""

    settings: dict = {}  # noqa: RUF012

    def __init__(self, folder, extensions, toc=None):
        self.folder, self.extensions, self.warnings = folder, extensions, ""
        if toc:
            (folder / "_toc.yml").write_text(toc)

    def page(self, name, text):
        write_files(self.folder, {f"book/{name}.md": f"# {TITLES[name]}\n\n{text}"})

    def build(self):
        warnings = io.StringIO()
        with patch_docutils(None), docutils_namespace():
            app = Sphinx(
                srcdir=self.folder / "book",
                confdir=None,
                outdir=self.folder / "out",
                doctreedir=self.folder / "trees",
                buildername="html",
                confoverrides={
                    "extensions": ["myst_parser", *self.extensions],
                    "html_theme": "basic",
                    "myst_enable_extensions": ["dollarmath"],
                    **self.settings,
                },
                status=None,
                warning=warnings,
            )
            app.build()
        self.warnings = warnings.getvalue()
        return self

    def html(self, name):
        return soup(self.folder / "out", name)


def soup(folder, name):
    return BeautifulSoup((folder / f"{name}.html").read_text("utf8"), "html.parser")
