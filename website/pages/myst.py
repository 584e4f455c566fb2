"""Read a page as Sphinx does: with myst-parser, whose tokens know their lines.

A page is a list of blocks. Directives and fences are what myst-parser calls so; text is what stands
between them, as it was written. The body of a directive is source again, with line numbers of its
own, which myst-parser reads when it is asked for. In a text `pieces` finds what is more than plain
Markdown, each with its place; what such pieces become, `substitute` puts in their places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml
from docutils.parsers.rst import Directive as Docutils
from docutils.parsers.rst.directives import unchanged
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

CONFIG = Path(__file__).resolve().parents[2] / "_config.yml"
DIRECTIVE = re.compile(r"\{(?P<name>[^}\s]+)\}\s*(?P<argument>.*)")
HALF_A_FENCE = re.compile(r" *`{3,}\{.*`")
FENCES = {"fence", "colon_fence"}
DROPPED = {"myst_target", "myst_line_comment", "myst_block_break"}
MATH = {"math_block", "math_block_label"}
NOT_TRANSLATED = {  # block token -> what it is, and what to write
    "dd_open": "a definition list",
    "amsmath": "a bare LaTeX environment (write $$ ... $$ around it)",
    "footnote_reference_open": "a footnote",
    "code_block": "code by indentation (write a fence)",
}
INLINE = {"myst_role": "role", "code_inline": "code", "math_inline": "math", "image": "image"}


class PageError(ValueError):
    """Something on a page that cannot be translated; the message begins with path:line."""

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class Text:
    """Markdown without fences. ``line`` is its first line in the file, counted from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class Fence:
    """A fenced code block that is no directive."""

    line: int
    text: str


@dataclass(frozen=True)
class Directive:
    """```` ```{name} argument ```` with its options; ``body`` still holds the nested source."""

    path: Path
    line: int
    name: str
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body: tuple[str, ...] = ()
    body_line: int = 0
    prefix: str = ""  # what stands before the fence: spaces in a list

    @property
    def text(self) -> str:
        return "\n".join(self.body).strip("\n")

    @property
    def tags(self) -> set[str]:
        """Of a cell."""
        return set(re.findall(r"[\w-]+", self.options.get("tags", "")))

    def blocks(self, start: int = 0, end: int | None = None) -> list[Block]:
        """What its body holds, or some lines of it."""
        return read_blocks("\n".join(self.body[start:end]), self.path, self.body_line + start)


Block = Text | Fence | Directive


@dataclass(frozen=True)
class Page:
    """One source file: its front matter and its blocks."""

    path: Path
    metadata: dict
    blocks: list[Block]

    @property
    def is_notebook(self) -> bool:
        """True for pages with cells, which are the pages that are executed and exported."""
        return "kernelspec" in self.metadata


@dataclass(frozen=True)
class Piece:
    """More than plain Markdown, from ``start`` to ``end`` of its text."""

    start: int
    end: int
    kind: str  # role, code, math, block (of math), image, link (its end), comment, dropped, unknown
    content: str = ""  # of a role, the formula, the target of an image or a link, what is unknown
    name: str = ""  # of a role, the label of a formula, the alt text of an image
    source: str = ""

    @property
    def words(self) -> str:
        """What a role shows where it says so itself: the first part of ``words <target>``."""
        return re.sub(r"\s*<[^>]*>$", "", self.content) if self.kind == "role" else ""


class AnyDirective(Docutils):
    """One argument, any option: who uses the directive knows what is right."""

    class Options(dict):
        def __missing__(self, key: str) -> Callable:
            return unchanged

    optional_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec: Any = Options(any=unchanged)


@cache
def parser() -> MarkdownIt:
    """myst-parser with the book's settings, for blocks; each inline token tells its place."""
    extensions = yaml.safe_load(CONFIG.read_text("utf-8"))["parse"]["myst_enable_extensions"]
    config = MdParserConfig(enable_extensions=extensions, disable_syntax=["inline"])
    markdown = create_md_parser(config, RendererHTML)
    for rule in markdown.inline.ruler.__rules__:
        rule.fn = _placed(rule.fn)
    return markdown


def _placed(rule: Callable) -> Callable:
    def found(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens) + bool(state.pending)  # pushed first
        if not rule(state, silent):
            return False
        for token in state.tokens[count:][:1]:
            token.meta = {**token.meta, "place": (start, state.pos)}
            if token.type == "link_open" and token.markup != "autolink":
                middle = state.md.helpers.parseLinkLabel(state, start)
                token.meta["place"] = (middle, state.pos)
        return True

    return found


def read_page(path: Path) -> Page:
    """Read one MyST file.

    Raises:
        PageError: A fence or the front matter is never closed.
    """
    return _page(path, path.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _page(path: Path, source: str) -> Page:
    tokens = parser().parse(source)
    metadata: dict = {}
    start = 0
    if tokens and tokens[0].type == "front_matter" and tokens[0].map:
        metadata, start = yaml.safe_load(tokens[0].content) or {}, tokens[0].map[1]
    elif source.startswith("---\n"):
        raise PageError(path, 1, "the front matter is never closed")
    text = "\n".join(source.split("\n")[start:])
    return Page(path, metadata, read_blocks(text, path, start + 1))


def front_matter(path: Path) -> dict:
    """What a page says before its first line."""
    _, front, *_ = re.split(r"^---\n", path.read_text(encoding="utf-8"), maxsplit=2, flags=re.M)
    return yaml.safe_load(front) or {}


def read_blocks(source: str, path: Path, first_line: int) -> list[Block]:
    """Split source into text, fences and directives. ``first_line`` numbers its first line."""
    lines = source.split("\n")
    blocks: list[Block] = []
    at = 0

    def flush(end: int) -> None:
        for line, text in enumerate(lines[at:end], first_line + at):
            if HALF_A_FENCE.match(text):
                message = "a backtick after a backtick fence makes it plain text"
                raise PageError(path, line, message)
        if any(line.strip() for line in lines[at:end]):
            blocks.append(Text(first_line + at, "\n".join(lines[at:end])))

    for token in parser().parse(source):
        if token.type in FENCES and token.map:
            start, end = token.map
            flush(start)
            blocks.append(_fenced(token, lines[start:end], path, first_line + start))
            at = end
    flush(len(lines))
    return blocks


def _fenced(token: Token, lines: list[str], path: Path, line: int) -> Block:
    last = lines[-1].strip(" >")
    if len(lines) < 2 or len(last) < len(token.markup) or set(last) != {token.markup[0]}:
        raise PageError(path, line, f"this fence ({token.markup}) is never closed")
    found = DIRECTIVE.fullmatch(token.info.strip())
    if found is None:
        if token.type == "colon_fence":
            raise PageError(path, line, "a colon fence without {directive}")
        return Fence(line, "\n".join(lines))
    read = parse_directive_text(AnyDirective, found["argument"], token.content)
    for warning in read.warnings:
        raise PageError(path, line, f"{{{found['name']}}} {warning.msg}")
    prefix = lines[0].partition(token.markup)[0]
    argument = "".join(read.arguments).strip()
    body = line + 1 + read.body_offset
    return Directive(
        path, line, found["name"], argument, read.options, tuple(read.body), body, prefix
    )


@lru_cache(maxsize=8192)
def pieces(text: str) -> tuple[Piece, ...]:
    """What is more than plain Markdown in a text, in order."""
    found = sorted(_pieces(text), key=lambda piece: piece.start)
    return tuple(replace(piece, source=text[piece.start : piece.end]) for piece in found)


def _pieces(text: str) -> Iterator[Piece]:
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    environment: dict[str, Any] = {}
    read: set[int] = set()
    for token in parser().parse(text, environment):
        start, end = (starts[line] for line in token.map or (0, 0))
        source = text[start:end].rstrip("\n")
        end = start + len(source)
        if token.type in DROPPED:
            yield Piece(start, end, "dropped")
        elif token.type in MATH:
            yield Piece(start + source.index("$$"), end, "block", token.content, token.info)
        elif token.type in NOT_TRANSLATED:
            yield Piece(start, start, "unknown", NOT_TRANSLATED[token.type])
        elif token.type == "html_block" and source.lstrip().startswith("<!--"):
            yield Piece(start, end, "comment")
        elif token.type == "html_block" and "<img" in source:
            yield Piece(start, end, "unknown", "a raw HTML image (write a figure directive)")
        elif token.type == "inline" and start not in read:  # a row of a table has several
            read.add(start)
            inline: list[Token] = []
            parser().inline.parse(source, parser(), environment, inline)
            found = (_inline(one, source, start) for one in inline if "place" in one.meta)
            yield from filter(None, found)
    for label, definition in environment.get("references", {}).items():
        what = f"a link definition (write the address in place): [{label}]"
        at = starts[definition["map"][0]]
        yield Piece(at, at, "unknown", what)


def _inline(token: Token, source: str, at: int) -> Piece | None:
    start, end = token.meta["place"]
    what = source[start:end]
    place = at + start, at + end
    if token.type == "link_open" and token.markup != "autolink":
        return Piece(*place, "link", what[2:-1].split(" ")[0])
    if token.type == "image":
        return Piece(*place, "image", str(token.attrs["src"]), token.content)
    if token.type in INLINE:
        return Piece(*place, INLINE[token.type], token.content, token.meta.get("name", ""))
    if token.type == "html_inline" and what.startswith("<!--"):
        return Piece(*place, "comment")
    if token.type == "html_inline" and what.startswith("<img"):
        return Piece(*place, "unknown", "a raw HTML image (write a figure directive)")
    if token.type == "footnote_ref":
        return Piece(*place, "unknown", "a footnote")
    if token.type == "link_open" and what.startswith(("<project:", "<path:", "<inv:")):
        return Piece(*place, "unknown", f"a MyST autolink (write [text](address)): {what}")
    return None


def substitute(text: str, new: Callable[[Piece], str | None]) -> str:
    """The text with each piece replaced; None leaves it as it was written."""
    parts, at = [], 0
    for piece in pieces(text):
        if piece.start < at:  # inside another, such as the words of an image
            continue
        if (instead := new(piece)) is not None:
            parts += [text[at : piece.start], instead]
            at = piece.end
    return "".join([*parts, text[at:]])
