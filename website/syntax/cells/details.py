"""The nodes of what is folded: a native ``<details>`` with its title."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


class fold(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """A folded block: a `fold_title`, then what it hides."""


class fold_title(nodes.General, nodes.TextElement):  # noqa: N801
    """What is always seen of it."""


def folded(title: list[nodes.Node], content: list[nodes.Node], **attributes: object) -> fold:
    return fold("", fold_title("", "", *title), *content, **attributes)


def visit_fold(self: HTML5Translator, node: fold) -> None:
    self.body.append(self.starttag(node, "details"))


def depart_fold(self: HTML5Translator, node: fold) -> None:
    self.body.append("</details>\n")


def visit_title(self: HTML5Translator, node: fold_title) -> None:
    self.body.append(self.starttag(node, "summary", ""))


def depart_title(self: HTML5Translator, node: fold_title) -> None:
    self.body.append("</summary>\n")


def setup(app: Sphinx) -> None:
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(fold_title, html=(visit_title, depart_title))
