"""The book's directives and roles. A directive is one file: its class makes the nodes of the page,
``to_notebook`` writes its Markdown; what it is on paper stands under ``@media print`` in its style.

Each file names its own, as ``DIRECTIVES`` and ``ROLES``; those of Sphinx and of the extensions in
use are in `of_others`. What stands in no file is refused, in notebooks and by the rules. What
several share is in `shared`; `cards` and `drawing` are the large parts of `front` and `vit_map`;
`cells` is what becomes of code cells.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from sphinx.application import Sphinx

from website.syntax.shared import register

FILES = [import_module(f"website.syntax.{found.name}") for found in iter_modules(__path__)]
# name -> what writes it into a notebook
DIRECTIVES: dict[str, Callable[..., str]] = {}  # (written, notebook) -> Markdown
ROLES: dict[str, Callable[..., str]] = {}  # (content, links) -> Markdown
for file in FILES:
    for known, here in ((DIRECTIVES, "DIRECTIVES"), (ROLES, "ROLES")):
        for name, one in getattr(file, here, {}).items():
            known[name] = getattr(one, "to_notebook", one)


def setup(app: Sphinx) -> None:
    for file in FILES:
        if hasattr(file, "setup"):
            app.setup_extension(file.__name__)
        elif file.__name__ != "website.syntax.of_others":
            register(app, vars(file))
