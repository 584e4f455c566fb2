"""The minutes that a page takes, as website/pages/counts.py counts them.

``{minutes}`this page` `` becomes "Read 35 minutes, do 40 minutes"; ``{minutes}`hours maps bmm` ``
are reading and exercises of several pages together.
"""

from collections.abc import Callable
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import docname_join
from sphinx.util.docutils import SphinxRole

from website.pages.counts import count_file, hours
from website.syntax.shared import Links, register
from website.theme.page import warn


def said(content: str, here: Path, path_of: Callable[[str], Path]) -> str:
    """What stands in place of the role on the page in the file ``here``.

    Raises:
        ValueError: It is not written as above, or there is no such page.
    """
    if content == "this page":
        return str(count_file(here))
    wanted, *names = content.split()
    if wanted != "hours":
        raise ValueError(f"minutes {content!r}: write `this page` or `hours PAGE PAGE`")
    paths = [path_of(name) for name in names]
    for name, path in zip(names, paths, strict=True):
        if not path.is_file():
            raise ValueError(f"minutes {content!r}: there is no page {name}")
    return hours(paths)


class MinutesRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        def path_of(name: str) -> Path:
            self.env.note_reread()  # website/build/render.py
            return Path(self.env.doc2path(docname_join(self.env.docname, name)))

        try:
            words = said(self.text, Path(self.env.doc2path(self.env.docname)), path_of)
        except ValueError as error:
            warn(str(error), self.get_location())
            words = self.text
        return [nodes.Text(words)], []

    @staticmethod
    def to_notebook(content: str, links: Links) -> str:
        here = links.settings.source(links.document)
        return said(content, here, lambda name: links.source(links.document_called(name)))


ROLES = {"minutes": MinutesRole()}


def setup(app: Sphinx) -> None:
    register(app, globals())
