"""Read a MyST page as a list of blocks, by lines.

Fences nest: a fence is closed by a line of the same character that is at least as long, so the
body of a directive is kept as lines and read again, with its own line numbers, when it is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,}|:{3,})(?P<info>.*)$")
DIRECTIVE = re.compile(r"^\{(?P<name>[^}\s]+)\}\s*(?P<argument>.*)$")
OPTION = re.compile(r"^:(?P<key>[\w-]+):(?:\s+(?P<value>.*))?$")


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
    indent: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.body).strip("\n")

    def blocks(self) -> list[Block]:
        return read_blocks(list(self.body), self.path, self.body_line)


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


def read_page(path: Path) -> Page:
    """Read one MyST file.

    Raises:
        PageError: A fence or the front matter is never closed.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    metadata: dict = {}
    start = 0
    if lines and lines[0] == "---":
        if "---" not in lines[1:]:
            raise PageError(path, 1, "the front matter is never closed")
        end = lines.index("---", 1)
        metadata = yaml.safe_load("\n".join(lines[1:end])) or {}
        start = end + 1
    return Page(path, metadata, read_blocks(lines[start:], path, start + 1))


def read_blocks(lines: list[str], path: Path, first_line: int) -> list[Block]:
    """Split lines into text, fences and directives. ``first_line`` numbers ``lines[0]``."""
    blocks: list[Block] = []
    text_start = at = 0

    def flush(end: int) -> None:
        if any(line.strip() for line in lines[text_start:end]):
            blocks.append(Text(first_line + text_start, "\n".join(lines[text_start:end])))

    while at < len(lines):
        opening = FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        flush(at)
        end = _closing_line(lines, at, opening, path, first_line)
        blocks.append(_fenced(lines, at, end, opening, path, first_line))
        at = text_start = end + 1
    flush(at)
    return blocks


def _closing_line(lines: list[str], at: int, opening: re.Match, path: Path, first: int) -> int:
    mark = opening["mark"]
    if mark[0] == "`" and "`" in opening["info"]:
        raise PageError(path, first + at, "a backtick after a backtick fence makes it plain text")
    for end in range(at + 1, len(lines)):
        line = lines[end].strip()
        if len(line) >= len(mark) and set(line) == {mark[0]}:
            return end
    raise PageError(path, first + at, f"this fence ({mark}) is never closed")


def _fenced(
    lines: list[str], at: int, end: int, opening: re.Match, path: Path, first: int
) -> Block:
    indent = len(opening["indent"])
    line = first + at
    directive = DIRECTIVE.match(opening["info"].strip())
    if directive is None:
        if opening["mark"][0] == ":":
            raise PageError(path, line, "a colon fence without {directive}")
        return Fence(line, "\n".join(lines[at : end + 1]))
    body = [text[min(indent, len(text) - len(text.lstrip())) :] for text in lines[at + 1 : end]]
    options, used = _options(body, path, line)
    return Directive(
        path=path,
        line=line,
        name=directive["name"],
        argument=directive["argument"].strip(),
        options=options,
        body=tuple(body[used:]),
        body_line=line + 1 + used,
        indent=indent,
    )


def _options(body: list[str], path: Path, line: int) -> tuple[dict[str, str], int]:
    """Options stand first, as ``:key: value`` lines or as YAML between ``---`` lines."""
    if body and body[0].strip() == "---":
        closing = next((i for i, text in enumerate(body[1:], 1) if text.strip() == "---"), None)
        if closing is None:
            raise PageError(path, line, "the directive's option block is never closed")
        return yaml.safe_load("\n".join(body[1:closing])) or {}, closing + 1
    options, used = {}, 0
    while used < len(body) and (match := OPTION.match(body[used])):
        options[match["key"]] = match["value"] or ""
        used += 1
    return options, used
