"""What scripts keep of the reader's predictions, and the boxes where it shows them.

Every page with a prediction or a concept check ends in a box: after its summary, or after all else.
The front page has one where this stands:

    ```{progress}
    ```

The boxes are empty and hidden until the scripts in ``_static/predict`` fill them. Scripts and style
sheet are loaded on those pages only. ``data-page`` names the page for the script; the box of the
front page has none.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from website.syntax.predict import prediction
from website.syntax.shared import Notebook, Written, register
from website.theme.moved import SCRIPT
from website.theme.page import Page, each_page

SCRIPTS = (SCRIPT, "predict/progress.js", "predict/predict.js")
STYLE = "predict/predict.css"


class progress(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """A box for the script. ``whole`` is true of the one that is of all pages."""


class Progress(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [progress("", whole=True)]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        return ""  # a notebook keeps nothing of its reader


class ChapterEnd(SphinxPostTransform):
    default_priority = 160
    formats = ("html",)

    def run(self, **options: object) -> None:
        found = list(self.document.findall(nodes.section))
        sections = {id_: node for node in found for id_ in node["ids"]}
        asks = next(iter(self.document.findall(prediction)), None) is not None
        front = self.env.docname == self.config.root_doc  # it has the box of all pages
        if not front and (asks or "concept-check" in sections):
            last = sections.get("summary") or found[0]
            last += progress("", whole=False)


def visit_progress(self: HTML5Translator, node: progress) -> None:
    data = {} if node["whole"] else {"data-page": self.builder.current_docname}
    ids = ["progress"] if node["whole"] else []  # where the other boxes lead
    more = {"role": "group", "aria-label": "Your answers so far", "hidden": "hidden", **data}
    self.body.append(self.starttag(node, "div", CLASS="progress-box", ids=ids, **more) + "</div>\n")
    raise nodes.SkipNode


def load(page: Page) -> None:
    if page.doctree is not None and next(iter(page.doctree.findall(progress)), None) is not None:
        page.app.add_css_file(STYLE)
        for script in SCRIPTS:
            page.app.add_js_file(script, loading_method="defer")


DIRECTIVES = {"progress": Progress}


def setup(app: Sphinx) -> None:
    app.setup_extension("website.syntax.predict")
    app.setup_extension("website.theme.moved")
    app.setup_extension("website.syntax.chapter")
    app.add_node(progress, html=(visit_progress, None))
    register(app, globals())
    app.add_post_transform(ChapterEnd)
    each_page(app, load)
