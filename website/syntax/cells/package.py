"""Code of the package on a page: ``literalinclude`` with ``:pyobject:`` shows the body.

Above it stand where it comes from and a link to the file, below it its docstrings, folded.
``install`` is the command that installs the package of this release.
"""

from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.directives.code import LiteralInclude
from sphinx.util.docutils import SphinxDirective

from website.pages.docstrings import parted
from website.pages.settings import read_settings
from website.syntax.cells.details import folded

ROOT = Path(__file__).resolve().parents[3]


class PackageInclude(LiteralInclude):
    def run(self) -> list[nodes.Node]:
        found = super().run()
        blocks = [block for node in found for block in node.findall(nodes.literal_block)]
        if "pyobject" not in self.options or len(blocks) != 1:
            return found
        (block,) = blocks
        code, docstrings = parted(block.astext())
        block.rawsource = code
        block.children = []
        block += nodes.Text(code)
        name, path = self.options["pyobject"], Path(self.env.relfn2path(self.arguments[0])[1])
        box = nodes.container("", self.head(name, path), *found, classes=["package-code"])
        for documented, words in docstrings:
            text = nodes.literal_block(words, words, language="none", classes=["docstring"])
            title = f"Docstring of {documented}"
            box += folded([nodes.Text(title)], [text], classes=["code-fold"])
        return [box]

    def head(self, name: str, path: Path) -> nodes.paragraph:
        line = nodes.paragraph("", "From the package: ", classes=["package-head"])
        line += nodes.literal("", name)
        root = Path(self.env.srcdir).resolve().parent
        if path.resolve().is_relative_to(root):
            file = path.resolve().relative_to(root).as_posix()
            line += [nodes.Text(", "), nodes.reference("", file, refuri=f"{at_the_tag()}/{file}")]
        return line


class Install(SphinxDirective):
    """What installs the package on a machine of one's own, with the wheel of this version."""

    def run(self) -> list[nodes.Node]:
        command = f"python -m pip install {read_settings(ROOT).wheel_url}"
        return [nodes.literal_block(command, command, language="console")]


@cache
def at_the_tag() -> str:
    """Where the release of this version shows its files."""
    settings = read_settings(ROOT)
    return f"{settings.repository}/blob/{settings.tag}"


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.cells.details")
    app.add_directive("literalinclude", PackageInclude, override=True)
    app.add_directive("install", Install)
