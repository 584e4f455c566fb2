"""The docstrings of a piece of code, taken out of it, and as plain words without reST."""

import ast
import re
from textwrap import dedent

ROLE = re.compile(r":(?:\w+:)?\w+:`(?:~(?:[\w.]*\.)?)?([^`<]+?)(?:\s*<[^`]*>)?`")
QUOTED = re.compile(r"``(.+?)``", re.DOTALL)
DOCUMENTED = ast.FunctionDef | ast.ClassDef


def parted(code: str) -> tuple[str, list[tuple[str, str]]]:
    """Code without the docstrings that are long or hold reST, and these as (name, plain words).

    A docstring of one plain line, such as a shape, stays where it is.
    """
    lines = dedent(code).split("\n")
    taken: list[tuple[str, str]] = []
    for node in reversed(_documented(ast.parse("\n".join(lines)))):
        words = ast.get_docstring(node) or ""
        at = node.body[0]
        assert at.end_lineno is not None
        if len(words.split("\n")) > 1 or plain(words) != words:
            taken.insert(0, (node.name, plain(words)))
            blank = at.end_lineno < len(lines) and not lines[at.end_lineno].strip()
            del lines[at.lineno - 1 : at.end_lineno + blank]
    return "\n".join(lines), taken


def plain(words: str) -> str:
    """A docstring as a reader likes it: names without their roles, code without its marks."""
    return QUOTED.sub(r"\1", ROLE.sub(r"\1", words))


def _documented(tree: ast.Module) -> list[DOCUMENTED]:
    """What has a docstring and more than that, in the order of the lines."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) and len(node.body) > 1
    ]
    return sorted(found, key=lambda node: node.lineno)
