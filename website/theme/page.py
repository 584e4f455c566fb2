"""A page on its way into its template, as what is done with every page is given it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


@dataclass(frozen=True)
class Page:
    app: Sphinx
    name: str
    context: dict[str, Any]
    doctree: nodes.document | None


def each_page(app: Sphinx, do: Callable[[Page], None], priority: int = 500) -> None:
    """Sphinx calls in order of the priority; it also names the template, which none asks for."""
    app.connect(
        "html-page-context",
        lambda app, name, _, context, doctree: do(Page(app, name, context, doctree)),
        priority=priority,
    )
