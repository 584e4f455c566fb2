"""What each directive becomes: plain Markdown that Colab, JupyterLab and GitHub all show.

Every function takes the directive and the ``Writer`` that turns what is nested in it into Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from markdown_it import MarkdownIt

from tools.pages import depth
from tools.pages.include import included
from tools.pages.live import read_live
from tools.pages.myst import Block, Directive, read_blocks
from tools.pages.prediction import ANSWER_TITLE, TITLE, read_prediction

from .roles import PageLinks, one_line_math

VERDICTS = {
    "true": "true",
    "true with conditions": "true, with conditions",
    "false": "false",
    "misleading": "misleading",
    "open": "open",
}


class Writer(Protocol):
    """What a directive may ask for."""

    links: PageLinks

    def blocks(self, blocks: list[Block]) -> str: ...

    def text(self, text: str, line: int) -> str: ...


def quote(markdown: str) -> str:
    """A block quote."""
    lines = one_line_math(markdown).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def details(summary: str, markdown: str, *, is_open: bool = False) -> str:
    """A folded block. Its summary is HTML, so the Markdown in it is rendered here."""
    tag = "<details open>" if is_open else "<details>"
    return f"{tag}\n<summary>{_html(summary)}</summary>\n\n{markdown}\n\n</details>"


def fence(code: str, language: str = "") -> str:
    """A fenced code block, longer than any fence inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{language}\n{code.strip(chr(10))}\n{marks}"


def titled(title: str, markdown: str) -> str:
    return "\n\n".join(part for part in (f"**{title}**" if title else "", markdown) if part)


def admonition(directive: Directive, writer: Writer) -> str:
    title = writer.text(directive.argument, directive.line)
    return quote(titled(title, writer.blocks(directive.blocks())))


def dropdown(directive: Directive, writer: Writer) -> str:
    title = writer.text(directive.argument, directive.line)
    return details(title, writer.blocks(directive.blocks()), is_open="open" in directive.options)


def claim(directive: Directive, writer: Writer) -> str:
    """What is said, the verdict, what holds and why, and what would refute it."""
    options = {key: value.strip(' "“”') for key, value in directive.options.items()}
    said, truth, refuted = (
        writer.text(options.get(key, ""), directive.line) for key in ("says", "truth", "refuted-by")
    )
    site, id_ = writer.links.site, directive.argument.strip()
    confirmed = site.is_confirmed(id_)
    failed = "" if confirmed else " **Not confirmed on the machine that built the book.**"
    head = f"**Claim:** “{said}”\n\n**Verdict: {VERDICTS[options['verdict'].lower()]}.**{failed}"
    headline = f"**{truth}** " if truth else ""
    body = [f"{head} {headline}{writer.blocks(directive.blocks())}"]
    if refuted:
        body.append(f"*Would be refuted by:* {refuted}")
    return quote("\n\n".join(body))


def predict(directive: Directive, writer: Writer) -> str:
    """The question, quoted; what happened, folded below it."""
    read = read_prediction(directive.argument, directive.options, directive.body)
    line = directive.body_line
    question = writer.blocks(read_blocks("\n".join(read.question), directive.path, line))
    choices = "\n".join(f"- {writer.text(choice, directive.line)}" for choice in read.choices)
    asked = "\n\n".join(part for part in (question, choices) if part)
    after = read_blocks("\n".join(read.explanation), directive.path, line + read.explanation_at)
    explained = titled(writer.text(read.right, directive.line), writer.blocks(after))
    return f"{quote(titled(TITLE, asked))}\n\n{details(ANSWER_TITLE, explained)}"


def live(directive: Directive, writer: Writer) -> str:
    """A notebook has the still, and a link to the figure."""
    read = read_live(directive.argument, directive.options, directive.body)
    title, address = writer.links.site.document(writer.links.document)
    where = f"The live figure is on the book's page [{title}]({address}#{read.anchor})."
    lines = "\n".join(read.still)
    still = writer.blocks(read_blocks(lines, directive.path, directive.body_line + read.still_at))
    return quote(titled(writer.text(read.title, directive.line), f"{still}\n\n{where}"))


def in_depth(directive: Directive, writer: Writer) -> str:
    said = [writer.blocks(directive.blocks())]
    said.append(writer.text(depth.origin(directive.argument), directive.line))
    return quote(titled("In depth", "\n\n".join(part for part in said if part)))


def literalinclude(directive: Directive, writer: Writer) -> str:
    path = (directive.path.parent / directive.argument).resolve()
    code, options = included(directive)
    settings = writer.links.settings
    address, name = settings.file_url(path), path.relative_to(settings.root).as_posix()
    what = f"`{options['pyobject']}`, from" if "pyobject" in options else "From"
    caption = writer.text(options.get("caption") or "", directive.line)
    default = "python" if path.suffix == ".py" else ""
    code_block = fence(code, options.get("language", default))
    return f"{titled(caption, f'{what} [{name}]({address}):')}\n\n{code_block}"


def code_block(directive: Directive, writer: Writer) -> str:
    caption = writer.text(directive.options.get("caption", ""), directive.line)
    return titled(caption, fence(directive.text, directive.argument))


def figure(directive: Directive, writer: Writer) -> str:
    image = writer.links.image(directive.options.get("alt", ""), directive.argument)
    caption = writer.blocks(directive.blocks()) if directive.body else ""
    name = directive.options.get("name", "")
    if name:
        caption = f"*{writer.links.site.number(name)}.* {caption}"
    return f"{image}\n\n{caption}".strip()


def list_table(directive: Directive, writer: Writer) -> str:
    """Rows are ``* - cell``, further cells ``  - cell``, longer cells are indented below them."""
    rows: list[list[str]] = []
    for line in directive.text.splitlines():
        if match := re.match(r"^(?P<row>[*-]\s+)?(?P<lead>\s*)-(?:\s+(?P<cell>.*))?$", line):
            if match["row"]:
                rows.append([])
            elif not match["lead"]:
                raise ValueError(f"a row of a list-table begins with '* - ', not {line!r}")
            rows[-1].append(match["cell"] or "")
        elif line.strip():
            rows[-1][-1] += f" {line.strip()}"
    if len({len(row) for row in rows}) != 1:
        raise ValueError("the rows of this list-table have different lengths")
    if int(directive.options.get("header-rows", 0)) != 1:
        raise ValueError("a list-table needs :header-rows: 1, as a Markdown table has one")
    lines = [
        "| " + " | ".join(_table_cell(cell, directive, writer) for cell in row) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return titled(writer.text(directive.argument, directive.line), "\n".join(lines))


def on_the_site(directive: Directive, writer: Writer) -> str:
    """Lists that are made from the whole book stay on its site."""
    if "unconfirmed" in directive.options:  # of this build alone
        return ""
    title, address = writer.links.site.document(writer.links.document)
    what = {"claims-table": "The table of claims", "bibliography": "The bibliography"}
    what |= {"vit-map": "The drawing of the whole model", "chapter-cards": "The list of chapters"}
    return f"{what[directive.name]} is on the book's page [{title}]({address})."


def dropped(directive: Directive, writer: Writer) -> str:
    """What a notebook has no place for: a notebook keeps nothing of its reader."""
    return ""


def start(directive: Directive, writer: Writer) -> str:
    """The buttons of the front page, as links."""
    return " · ".join(
        writer.text(f"{{doc}}`{name}`", directive.line) for name in directive.argument.split()
    )


DIRECTIVES: dict[str, Callable[[Directive, Writer], str]] = {
    "admonition": admonition,
    "dropdown": dropdown,
    "claim": claim,
    "predict": predict,
    "in-depth": in_depth,
    "live": live,
    "claims-table": on_the_site,
    "bibliography": on_the_site,
    "progress": dropped,
    "vit-map": on_the_site,
    "chapter-cards": on_the_site,
    "start": start,
    "literalinclude": literalinclude,
    "code-block": code_block,
    "figure": figure,
    "list-table": list_table,
}


def _table_cell(cell: str, directive: Directive, writer: Writer) -> str:
    """One line, with the bars that are not column borders written another way."""
    text = " ".join(writer.text(cell, directive.line).split())
    pieces = re.split(r"(\$[^$]+\$)", text)
    pieces[1::2] = [
        piece.replace(r"\|", r"\Vert{}").replace("|", r"\vert{}") for piece in pieces[1::2]
    ]
    pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
    return "".join(pieces)


def _html(markdown: str) -> str:
    pieces = re.split(r"(\$[^$]+\$)", markdown)
    pieces[::2] = [
        MarkdownIt().renderInline(piece) if piece.strip() else piece for piece in pieces[::2]
    ]
    pieces[1::2] = [piece.replace("<", r"\lt{}").replace("&", "&amp;") for piece in pieces[1::2]]
    return "".join(pieces)
