"""The directive ``changes``: what has changed since each release.

    ```{changes}
    ```

It is made from CHANGELOG.md (website/pages/changelog.py). The oldest release comes first, so one
reads from one's own release to the end. A link to a file of ``book/`` leads to the page.
"""

from itertools import pairwise
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from website.pages.changelog import ERRATA, NAME, Release, read_changes
from website.theme.page import warn

PAGE = "appendix/changes"  # where the directive stands
NEW = "What is new"


def anchor(version: str) -> str:
    """Where the page says what has changed since a release."""
    return nodes.make_id(f"since {version}".replace(".", "-"))


class Changes(SphinxDirective):
    has_content = False

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # it reads a file that is no page: website/build/render.py
        try:
            releases = read_changes(Path(self.env.srcdir).parent)
        except ValueError as error:
            warn(str(error), self.get_location())
            return []
        since = [self.since(old, new) for old, new in pairwise(releases[::-1])]
        links = nodes.paragraph("", "Your release is: ")
        for at, section in enumerate(since):
            if at:
                links += nodes.Text(" · ")
            version = section["names"][0].removeprefix("since ")
            links += nodes.reference("", version, internal=True, refid=section["ids"][0])
        links += nodes.Text(".")
        return [links, *since] if since else []

    def since(self, old: Release, new: Release) -> nodes.section:
        """What `new` changed of `old`."""
        section = titled(f"Since {old.version}")
        if new.empty:
            section += nodes.paragraph("", f"Nothing: {old.version} is the newest release.")
        elif new.version:
            section += nodes.paragraph("", f"Release {new.version} came on {new.date}.")
        else:
            release = self.config.release
            section += nodes.paragraph("", f"Not released yet; this book ({release}) has it.")
        for title, text in ((ERRATA, new.errata), (NEW, new.notes)):
            if text:
                part = titled(title, old.version)
                box = nodes.container(classes=["change-log"] if title == NEW else [])
                lines = text.replace("](book/", "](/").splitlines()
                self.state.nested_parse(StringList(lines, NAME), 0, box)
                part += box
                section += part
        return section


def titled(title: str, version: str = "") -> nodes.section:
    name = f"{title} {version}".strip().lower()
    section = nodes.section(ids=[nodes.make_id(name.replace(".", "-"))], names=[name])
    section += nodes.title("", title)
    return section


def setup(app: Sphinx) -> None:
    app.add_directive("changes", Changes)
