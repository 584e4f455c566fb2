"""Plain Markdown that Colab, JupyterLab and GitHub all show."""

import re

from markdown_it import MarkdownIt


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
    return paragraphs(f"**{title}**" if title else "", markdown)


def paragraphs(*parts: str) -> str:
    """One below the other; what is empty is left out."""
    return "\n\n".join(part for part in parts if part.strip())


def link(text: str, title: str, url: str) -> str:
    return f"[{text or title}]({url})"


def display_math(tex: str, number: str = "") -> str:
    """Block math for a notebook, on lines of its own; ``number`` is the book's, such as "(3)"."""
    tex = re.sub(r"(?<!\\)%.*", "", tex).strip("\n")
    tag = rf" \tag{{{number.strip('()')}}}" if number else ""
    return f"$$\n{tex.strip()}{tag}\n$$"


def one_line_math(markdown: str) -> str:
    """Join block math into single lines: in a quote, the ``>`` marks would enter the formula."""
    return re.sub(
        r"\$\$\n(.+?)\n[ ]*\$\$",
        lambda match: "$$" + " ".join(match[1].split()) + "$$",
        markdown,
        flags=re.DOTALL,
    )


def table_cell(text: str) -> str:
    """One line, with the bars that are not column borders written another way."""
    pieces = re.split(r"(\$[^$]+\$)", " ".join(text.split()))
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
