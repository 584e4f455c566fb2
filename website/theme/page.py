"""A page on its way into its template, as what is done with every page is given it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging


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


def warn(message: str, location: Any = None) -> None:
    """What is wrong is a warning with its place, so the build fails."""
    logging.getLogger(__name__).warning(message, location=location, type="vitbook")
