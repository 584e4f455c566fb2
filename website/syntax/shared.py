"""What the book's directives and roles have in common."""

from collections.abc import Callable
from typing import Any, Protocol

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import ReferenceRole, SphinxDirective

from website.notebooks.roles import PageLinks as Links
from website.pages.myst import Directive as Written
from website.theme.page import warn

__all__ = ["BookDirective", "Later", "Links", "Notebook", "Written", "on_the_site", "register"]


class Notebook(Protocol):
    """What a directive asks of the notebook that it is written into."""

    links: Links

    def text(self, text: str, line: int) -> str: ...
    def body(self, directive: Written, start: int = 0, end: int | None = None) -> str: ...


class BookDirective(SphinxDirective):
    """A directive with an argument, such as an id, and Markdown in it."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def part(self, class_: str, start: int = 0, end: int | None = None) -> nodes.container:
        """The lines of the body from ``start`` to ``end``, read."""
        box = nodes.container(classes=[class_])
        self.read(box, start, end)
        return box

    def read(self, box: nodes.Element, start: int = 0, end: int | None = None) -> None:
        self.state.nested_parse(self.content[start:end], self.content_offset + start, box)

    def words(self, text: str) -> list[nodes.Node]:
        """A line that is no part of the body, read."""
        return self.state.inline_text(text, self.lineno)[0]

    def warn(self, message: str) -> None:
        """What is wrong is a warning, so the build fails."""
        warn(message, (self.env.docname, self.lineno))


class Later(ReferenceRole):
    """A reference that its file's `resolve` fills in when the titles of all pages are known."""

    def later(self, kind: str, target: str, words: nodes.Node) -> pending_xref:
        node = pending_xref("", words, refdoc=self.env.docname, refdomain="", reftype=kind)
        node.attributes |= {"reftarget": target, "refexplicit": self.has_explicit_title}
        node["refwarn"] = True
        self.set_source_info(node)
        return node


def register(app: Sphinx, file: dict[str, Any]) -> None:
    """The directives and roles of a file, given as its ``globals()``."""
    for name, directive in file.get("DIRECTIVES", {}).items():
        app.add_directive(name, directive)
    for name, role in file.get("ROLES", {}).items():
        app.add_role(name, role)


def on_the_site(what: str) -> Callable[[Written, Notebook], str]:
    """Lists that are made from the whole book stay on its site."""

    def to_notebook(written: Written, notebook: Notebook) -> str:
        title, address = notebook.links.here
        return f"{what} is on the book's page [{title}]({address})."

    return to_notebook
