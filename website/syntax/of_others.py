"""Directives and roles of Sphinx, MyST and the extensions in use: what they are in a notebook."""

import re

from website.pages.include import included
from website.pages.markdown import details, fence, link, paragraphs, quote, table_cell, titled
from website.syntax.shared import Links, Notebook, Written, on_the_site


def admonition(written: Written, notebook: Notebook) -> str:
    title = notebook.text(written.argument, written.line)
    return quote(titled(title, notebook.body(written)))


def dropdown(written: Written, notebook: Notebook) -> str:
    title = notebook.text(written.argument, written.line)
    return details(title, notebook.body(written), is_open="open" in written.options)


def literalinclude(written: Written, notebook: Notebook) -> str:
    path = (written.path.parent / written.argument).resolve()
    code, options = included(written)
    settings = notebook.links.settings
    address, name = settings.file_url(path), path.relative_to(settings.root).as_posix()
    what = f"`{options['pyobject']}`, from" if "pyobject" in options else "From"
    default = "python" if path.suffix == ".py" else ""
    code_block = fence(code, options.get("language", default))
    return paragraphs(f"{what} [{name}]({address}):", code_block)


def code_block(written: Written, notebook: Notebook) -> str:
    return fence(written.text, written.argument)


def figure(written: Written, notebook: Notebook) -> str:
    image = notebook.links.image(written.options.get("alt", ""), written.argument)
    caption, name = notebook.body(written), written.options.get("name", "")
    if name:
        caption = f"*{notebook.links.site.number(name)}.* {caption}"
    return paragraphs(image, caption)


def list_table(written: Written, notebook: Notebook) -> str:
    """Rows are ``* - cell``, further cells ``  - cell``, longer cells are indented below them."""
    rows: list[list[str]] = []
    for line in written.text.splitlines():
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
    if int(written.options.get("header-rows", 0)) != 1:
        raise ValueError("a list-table needs :header-rows: 1, as a Markdown table has one")
    cells = [[table_cell(notebook.text(cell, written.line)) for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return titled(notebook.text(written.argument, written.line), "\n".join(lines))


def glued(content: str, links: Links) -> str:
    key, _, spec = content.rpartition(":") if ":" in content else (content, "", "s")
    return links.site.glued(links.document, key, spec)


def cite(content: str, links: Links) -> str:
    cited = (links.site.cited(key.strip()) for key in content.split(","))
    return f"({'; '.join(f'[{who}, {year}]({url})' for who, year, url in cited)})"


def cite_in_text(content: str, links: Links) -> str:
    cited = (links.site.cited(key.strip()) for key in content.split(","))
    return ", ".join(f"[{who} ({year})]({url})" for who, year, url in cited)


def reference(content: str, links: Links) -> str:
    text, target = links.split(content)
    return link(text, *links.site.label(target))


def document(content: str, links: Links) -> str:
    text, target = links.split(content)
    return link(text, *links.site.document(links.document_called(target)))


DIRECTIVES = {
    "admonition": admonition,
    "dropdown": dropdown,
    "literalinclude": literalinclude,
    "code-block": code_block,
    "figure": figure,
    "list-table": list_table,
    "bibliography": on_the_site("The bibliography"),
}
ROLES = {
    "glue:text": glued,
    "cite": cite,
    "cite:t": cite_in_text,
    "ref": reference,
    "doc": document,
    "eq": lambda content, links: link("", *links.site.equation(content)),
}
