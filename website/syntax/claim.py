"""Two directives: ``claim`` states what people say and how it is settled; ``claims-table`` lists
every claim of the book with its verdict and a link.

    ```{claim} bmm-same-kernel
    :says: "bmm is faster than matmul"
    :truth: For rank-3 inputs both call the same kernel.
    :verdict: false
    :refuted-by: a shape on which the two need different times on one machine.
    The cell counts what the profiler sees.
    ```

``truth`` is the sentence that holds; it is the headline, and what is said stands small above it.
``refuted-by`` is the last line. Both may hold formulas and no glued numbers: the table of claims
repeats the first on another page. Without ``truth`` the quoted sentence is the headline.

    ```{claims-table}
    :unconfirmed:
    ```

A claim whose cell, the next one, failed in this build is not confirmed on this machine: it says so,
and so do its row, each link of another page to it, and the notebook. ``:unconfirmed:`` lists only
these; where there are none it is nothing.
"""

import re
import unicodedata
from copy import deepcopy
from dataclasses import dataclass, field
from typing import cast

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from website.pages.markdown import paragraphs, quote
from website.syntax.cells.cell import failed, is_cell, marked
from website.syntax.shared import BookDirective, Notebook, Written, on_the_site, register
from website.theme.page import warn

# verdict -> (what the page says, a sign for the eye; the word carries the meaning)
VERDICTS = {
    "true": ("True", "✓"),
    "true with conditions": ("True, with conditions", "◐"),
    "false": ("False", "✗"),
    "misleading": ("Misleading", "△"),
    "open": ("Open", "?"),
}
NOT_CONFIRMED = "Not confirmed on this machine"
KEPT = "vitbook_claims"  # where the claims of a page are kept: in its metadata
REFUTED = "Would be refuted by:"
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass
class Entry:
    """One claim as the table needs it."""

    id: str
    docname: str
    line: int
    verdict: str
    says: list[nodes.Node]
    truth: list[nodes.Node] = field(default_factory=list)
    confirmed: bool = True  # by the run of its cell

    @property
    def anchor(self) -> str:
        return f"claim-{self.id}"


class claims_table(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """Stands for the table until all pages are read."""


class Claim(BookDirective):
    option_spec = dict.fromkeys(
        ("says", "truth", "verdict", "refuted-by"), directives.unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        id_ = self.arguments[0].strip()
        says = self.options.get("says", "").strip()
        verdict = self.options.get("verdict", "").strip().lower()
        if not ID.fullmatch(id_):
            self.warn(f"claim id {id_!r}: use lower-case words joined by hyphens")
        if not says:
            self.warn(f"claim {id_}: the option 'says' is missing: the claim as people state it")
        if verdict not in VERDICTS:
            self.warn(f"claim {id_}: verdict {verdict!r} is not one of: {', '.join(VERDICTS)}")
            verdict = "open"
        if not self.content:
            self.warn(f"claim {id_}: the body is missing: in a sentence, how it is settled")
        if any(unicodedata.category(sign)[0] in "CZ" and sign != " " for sign in says):
            self.warn(
                f"claim {id_}: a backslash in double quotes means something else in YAML "
                "(\\t is a tab): put 'says' in single quotes"
            )
        if len(says) > 1 and says[0] in '"“' and says[-1] in '"”':
            says = says[1:-1]  # the page sets its own quotation marks
        words, truth = self.words(says), self.inline(id_, "truth")
        entry = Entry(id_, self.env.docname, self.lineno, verdict, deepcopy(words), deepcopy(truth))
        self.env.metadata[self.env.docname].setdefault(KEPT, []).append(entry)
        std = cast(StandardDomain, self.env.get_domain("std"))
        std.note_hyperlink_target(entry.anchor, entry.docname, entry.anchor, f"“{says}”")
        return [self.box(entry, words, truth)]

    def inline(self, id_: str, option: str) -> list[nodes.Node]:
        text = self.options.get(option, "").strip()
        if "{glue" in text:
            self.warn(f"claim {id_}: {option!r} takes no glued number: write it into the body")
            return []
        return self.words(text)

    def box(
        self, entry: Entry, words: list[nodes.Node], truth: list[nodes.Node]
    ) -> nodes.container:
        name = entry.verdict.replace(" ", "-")
        box = nodes.container(ids=[entry.anchor], classes=["claim", f"claim-{name}"])
        head = nodes.paragraph(classes=["claim-head"])
        label = "It is said" if truth else "Claim"
        head += nodes.inline("", label, classes=["claim-label"])
        head += nodes.Text(" ")
        head += quoted(words)
        verdict = nodes.paragraph("", "", verdict_node(entry.verdict), classes=["claim-verdict"])
        if truth:
            box += nodes.container("", head, verdict, classes=["claim-top"])
            box += nodes.paragraph("", "", *truth, classes=["claim-truth"])
        else:
            box += [head, verdict]
        box += self.part("claim-body")
        refuted = self.inline(entry.id, "refuted-by")
        if refuted:
            label = nodes.inline("", REFUTED, classes=["claim-refuted-label"])
            line = [label, nodes.Text(" "), *refuted]
            box += nodes.paragraph("", "", *line, classes=["claim-refuted"])
        self.set_source_info(box)
        return box

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        """What is said, the verdict, what holds and why, and what would refute it."""
        options = {key: value.strip(' "“”') for key, value in written.options.items()}
        said, truth, refuted = (
            notebook.text(options.get(key, ""), written.line)
            for key in ("says", "truth", "refuted-by")
        )
        confirmed = notebook.links.site.is_confirmed(written.argument)
        verdict = [
            f"**Verdict: {VERDICTS[options['verdict'].lower()][0].lower()}.**",
            "" if confirmed else "**Not confirmed on the machine that built the book.**",
            truth and f"**{truth}**",
            notebook.body(written),
        ]
        refuted = refuted and f"*{REFUTED}* {refuted}"
        return quote(paragraphs(f"**Claim:** “{said}”", " ".join(filter(None, verdict)), refuted))


class ClaimsTable(SphinxDirective):
    has_content = False
    option_spec = {"unconfirmed": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        return [claims_table(unconfirmed="unconfirmed" in self.options)]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        if "unconfirmed" in written.options:  # of this build alone
            return ""
        return on_the_site("The table of claims")(written, notebook)


def quoted(words: list[nodes.Node]) -> nodes.inline:
    return nodes.inline("", "", nodes.Text("“"), *words, nodes.Text("”"), classes=["claim-says"])


def verdict_node(verdict: str) -> nodes.inline:
    word, sign = VERDICTS[verdict]
    name = verdict.replace(" ", "-")
    node = nodes.inline(classes=["verdict", f"verdict-{name}"])
    node += nodes.raw("", f'<span aria-hidden="true">{sign}</span> ', format="html")
    node += nodes.Text(word)
    return node


def not_confirmed() -> nodes.inline:
    """Said beside the verdict."""
    return nodes.inline("", NOT_CONFIRMED, classes=["unconfirmed"])


def judge(app: Sphinx, doctree: nodes.document) -> None:
    """After a page is read: did the cell after each claim do what it should?"""
    entries = {one.anchor: one for one in claims_of(app.env) if one.docname == app.env.docname}
    claim = None
    for node in doctree.findall(nodes.container):
        if "claim" in node["classes"]:
            claim = node
        elif claim is not None and is_cell(node):
            if failed(node):
                entries[claim["ids"][0]].confirmed = False
                claim["classes"].append("claim-unconfirmed")
                (verdict,) = claim.findall(marked("claim-verdict"))
                verdict += [nodes.Text(" "), not_confirmed()]
            claim = None


def claims_of(env: BuildEnvironment) -> list[Entry]:
    """All claims in the order of the table of contents; kept with what is known of their pages."""
    pages = [*env.collect_relations(), *sorted(env.metadata)]
    return [one for page in dict.fromkeys(pages) for one in env.metadata[page].get(KEPT, [])]


def update(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """After reading: find ids used twice."""
    first: dict[str, Entry] = {}
    for entry in claims_of(env):
        if entry.id in first:
            other = first[entry.id]
            warn(
                f"claim id {entry.id!r} is used twice; first in {other.docname}, line {other.line}",
                (entry.docname, entry.line),
            )
        first.setdefault(entry.id, entry)
    return []


def mark_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """A link to a claim that is not confirmed says so."""
    uri = app.builder.get_relative_uri
    lost = [one for one in claims_of(app.env) if not one.confirmed and one.docname != docname]
    addresses = {f"{uri(docname, one.docname)}#{one.anchor}" for one in lost}
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri") in addresses:
            words = [nodes.Text(" "), not_confirmed()]
            link.parent.insert(link.parent.index(link) + 1, words)


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the tables in place."""
    mark_links(app, doctree, docname)
    for node in list(doctree.findall(claims_table)):
        claims = claims_of(app.env)
        if node["unconfirmed"]:
            claims = [entry for entry in claims if not entry.confirmed]
        node.replace_self(table(app, docname, claims) if claims else [])


def table(app: Sphinx, docname: str, claims: list[Entry]) -> nodes.table:
    group = nodes.tgroup(cols=3)
    for width in (50, 20, 30):
        group += nodes.colspec(colwidth=width)
    head, body = nodes.thead(), nodes.tbody()
    head += row(*(nodes.Text(title) for title in ("What is said", "Verdict", "Settled in")))
    for entry in claims:
        uri = app.builder.get_relative_uri(docname, entry.docname) + f"#{entry.anchor}"
        title = app.env.titles[entry.docname].astext()
        link = nodes.reference("", title, internal=True, refuri=uri)
        body += row(quoted(deepcopy(entry.says)), verdict_node(entry.verdict), link)
        if not entry.confirmed:
            body[-1][1] += nodes.paragraph("", "", not_confirmed())
        if entry.truth:  # below the quotation
            said = body[-1][0]
            said += nodes.paragraph("", "", *deepcopy(entry.truth), classes=["claim-truth"])
    group += [head, body]
    return nodes.table("", group, classes=["claims-table"])


def row(*cells: nodes.Node) -> nodes.row:
    line = nodes.row()
    for cell in cells:
        line += nodes.entry("", nodes.paragraph("", "", cell))
    return line


DIRECTIVES = {"claim": Claim, "claims-table": ClaimsTable}


def setup(app: Sphinx) -> None:
    app.add_node(claims_table)
    register(app, globals())
    app.connect("doctree-read", judge)
    app.connect("env-updated", update)
    app.connect("doctree-resolved", resolve)
