"""Style sheets without the rules that no page can use, such as a theme's two thousand icons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# A string, an address or a comment may hold any sign; outside them these three end something.
SIGN = re.compile(
    r"""/\*.*?\*/ | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | url\((?!\s*["'])[^)]*\) | \\. | [{};]""",
    re.VERBOSE | re.DOTALL,
)
COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)  # all but licences
CLASS = re.compile(r"\.((?:[\w-]|\\.)+)")
GROUPS = ("@media", "@supports", "@container", "@layer")


def purged(css: str, used: Callable[[str], bool]) -> str:
    """The style sheet, as far as it can matter.

    Args:
        css: a style sheet without nested rules.
        used: may an element have this class?

    Returns:
        The sheet without selectors that ask for a class which is not used, and without the rules
        and groups that are then empty.
    """
    return "".join(_lean(head, body, used) for head, body in _rules(COMMENT.sub("", css)))


def _lean(head: str, body: str | None, used: Callable[[str], bool]) -> str:
    if body is None:
        return f"{head};"
    if head.lstrip().startswith(GROUPS):
        inner = purged(body, used)
        return f"{head}{{{inner}}}" if inner.strip() else ""
    if head.lstrip().startswith("@"):
        return f"{head}{{{body}}}"
    kept = [selector for selector in _selectors(head) if all(map(used, _classes(selector)))]
    return f"{','.join(kept)}{{{body}}}" if kept else ""


def _rules(css: str) -> Iterator[tuple[str, str | None]]:
    """(what stands before the braces, what stands in them); None without braces: an import."""
    start = depth = opened = 0
    for sign in SIGN.finditer(css):
        if sign[0] == "{":
            depth += 1
            if depth == 1:
                opened = sign.end()
        elif sign[0] == "}":
            depth -= 1
            if depth == 0:
                yield css[start : opened - 1], css[opened : sign.start()]
                start = sign.end()
        elif sign[0] == ";" and depth == 0:
            yield css[start : sign.start()], None
            start = sign.end()


def _selectors(head: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    return re.split(r",(?![^(]*\))(?![^\[]*\])", head)


def _classes(selector: str) -> Iterator[str]:
    """What an element, or one around it, must have; what stands in brackets is left open."""
    before = None
    while before != selector:
        before, selector = selector, re.sub(r"\([^()]*\)|\[[^\]]*\]", "", selector)
    return (re.sub(r"\\(.)", r"\1", match[1]) for match in CLASS.finditer(selector))
