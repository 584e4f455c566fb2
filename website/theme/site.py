"""What the theme leaves to mend: no third-party request, links to the notebooks, accessibility.

- Style sheets and scripts directly in ``static`` serve every page; those in folders below it
  (KaTeX's, the search's) load only where something asks for them.
- For each citation pybtex looks for its backend in all installed packages; it is told which.
- The thebe script, which Jupyter Book always adds and which only throws errors here, is left out,
  and so is the script that folds boxes: ours are native (folds.py).
- Pages that are notebooks get a link to Colab and downloads of the clean notebook and script; so do
  pages whose front matter names a notebook that is made elsewhere (``notebook: a1-attention``).
"""

import re
from pathlib import Path
from typing import Any

from pybtex.backends.plaintext import Backend
from pybtex.plugin import register_plugin
from sphinx.application import Sphinx
from sphinx.config import Config

from website.theme.page import Page, each_page

HERE = Path(__file__).resolve().parent
STATIC = HERE / "static"  # in the site: _static
UNUSED = {"sphinx_thebe", "sphinx_togglebutton"}  # Jupyter Book adds them to every book
COLAB = "https://colab.research.google.com/github"


def prepare(app: Sphinx, config: Config) -> None:
    config.templates_path.insert(0, str(HERE / "templates"))
    config.html_static_path.append(str(STATIC))
    config.html_favicon = str(STATIC / "favicon.svg")
    config.html_css_files += sorted(path.name for path in STATIC.glob("*.css"))
    config.html_js_files += sorted(path.name for path in STATIC.glob("*.js"))
    config.html_context.setdefault("default_mode", "auto")
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if getattr(listener.handler, "__module__", "") in UNUSED:
                app.disconnect(listener.id)
    registry = app.registry
    registry.css_files[:] = [item for item in registry.css_files if not is_unused(*item)]
    registry.js_files[:] = [item for item in registry.js_files if not is_unused(*item)]


def is_unused(name: str | None, attributes: dict[str, Any]) -> bool:
    """A file, or a script in the page, of an extension that the book does not use."""
    told = f"{name} {attributes.get('body', '')}"
    return any(word in told for word in ("sphinx-thebe", "togglebutton", "let toggle"))


def mend_body(page: Page) -> None:
    """sphinx-exercise repeats an id on a page; docutils gives citations roles that do not fit."""
    if "body" in page.context:
        body = re.sub(r' id="exercise-content"', "", page.context["body"])
        body = re.sub(r' role="doc-biblioentry"', "", body)
        page.context["body"] = body.replace('<div role="list" class="citation-list">', "<div>")


def filename(item: str | tuple[str, dict[str, str]]) -> str:
    return item if isinstance(item, str) else item[0]


def add_forms(page: Page) -> None:
    """Colab and downloads, on pages that are notebooks: icon, words, title, address."""
    metadata = page.app.env.metadata.get(page.name, {})
    own = page.name.split("/")[-1] if "kernelspec" in metadata else None
    stem = metadata.get("notebook", own)
    if page.doctree is None or stem is None or page.name == page.app.config.root_doc:
        return
    repository = "/".join(page.app.config.html_theme_options["repository_url"].split("/")[-2:])
    release = f"{COLAB}/{repository}/blob/gh-pages/v{page.app.config.release}"
    local = page.context["pathto"](f"notebooks/{stem}", resource=1)
    colab = "Open this page as a notebook in Google Colab"
    page.context["page_forms"] = [
        ("play", "Colab", colab, f"{release}/notebooks/{stem}.ipynb"),
        (
            "download",
            "Notebook",
            "Download this page as a notebook, without outputs",
            f"{local}.ipynb",
        ),
        ("file-code", "Script", "Download this page as a plain Python script", f"{local}.py"),
    ]


def setup(app: Sphinx) -> None:
    register_plugin("pybtex.backends", "plaintext", Backend, force=True)
    app.add_css_file("print/print.css", media="print", priority=900)
    app.connect("config-inited", prepare)
    each_page(app, mend_body)
    each_page(app, add_forms)
