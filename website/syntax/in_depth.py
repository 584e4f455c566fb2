"""Pages that go deeper than their chapter: "In depth: what a map says" in the source, and
"2, in depth: what a map says" for readers.

    ```{in-depth} sec-reading-maps
    What the page asks, in a sentence.
    ```

stands at the top of the page. It links back to the label that raises the question. The chapter
links to the page with ``{in-depth}`reading_maps_depth_votes` ``.
"""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import docname_join

from website.pages.markdown import link, paragraphs, quote, titled
from website.pages.number import PATTERN
from website.syntax.shared import BookDirective, Later, Links, Notebook, Written, register

TITLE = re.compile(rf"{PATTERN}, in depth: ")
KIND = "vitbook-in-depth"


def named(title: str) -> str:
    """What a link to the page is called."""
    return "in depth: " + TITLE.sub("", title, count=1)


def origin(label: str) -> str:
    """The last line of its box, in MyST."""
    return f"From {{ref}}`{label}`; the chapters do without it. {{minutes}}`this page`."


class InDepth(BookDirective):
    """The box at the top of a page in depth."""

    def run(self) -> list[nodes.Node]:
        box = nodes.container(classes=["in-depth"])
        box += nodes.paragraph("", "In depth", classes=["in-depth-label"])
        self.read(box)
        box += nodes.paragraph("", "", *self.words(origin(self.arguments[0])))
        self.set_source_info(box)
        return [box]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        leads_back = notebook.text(origin(written.argument), written.line)
        return quote(titled("In depth", paragraphs(notebook.body(written), leads_back)))


class InDepthRole(Later):
    """A link to a page in depth."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        words = nodes.inline("", self.title, classes=["in-depth-link"])
        return [self.later(KIND, docname_join(self.env.docname, self.target), words)], []

    @staticmethod
    def to_notebook(content: str, links: Links) -> str:
        text, target = links.split(content)
        title, address = links.site.document(links.document_called(target))
        return link(text, named(title), address)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    if node["reftype"] != KIND or node["reftarget"] not in env.titles:
        return None
    title = env.titles[node["reftarget"]].astext()
    words = content.astext() if node["refexplicit"] else named(title)
    uri = app.builder.get_relative_uri(node["refdoc"], node["reftarget"])
    return nodes.reference("", words, internal=True, refuri=uri, classes=["in-depth-link"])


DIRECTIVES = {"in-depth": InDepth}
ROLES = {"in-depth": InDepthRole()}


def setup(app: Sphinx) -> None:
    register(app, globals())
    app.connect("missing-reference", resolve)
