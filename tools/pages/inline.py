"""Roles, links and math inside a stretch of Markdown text.

One scanner finds what matters in order, so that a role inside a code span, or a dollar inside
code, is left alone. What each piece becomes is decided by the ``Inline`` object that is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .reader import PageError

TOKEN = re.compile(
    r"""
    (?P<environment>^[ ]*\\begin\{[a-z]+\*?\})
  | (?P<escape>\\.)
  | (?P<role>\{(?P<name>[A-Za-z][\w:+.-]*)\}(?P<ticks>`+)(?P<content>.+?)(?<!`)(?P=ticks)(?!`))
  | (?P<code>(?P<fence>`+)(?!`).+?(?<!`)(?P=fence)(?!`))
  | (?P<block>\$\$(?P<tex>.+?)\$\$(?:[ \t]*\((?P<label>[\w:.-]+)\)[ \t]*$)?)
  | (?P<math>\$(?:\\.|(?!\n[ \t]*\n)[^$\\])+\$)
  | (?P<comment><!--.*?-->)
  | !\[(?P<alt>[^\]]*)\]\((?P<image>[^()\s]+)(?:\s+"[^"]*")?\)
  | \[\]\((?P<empty>[^()\s]+)\)
  | \]\((?P<target>[^()\s]+(?:\([^()\s]*\))?)(?P<title>\s+"[^"]*")?\)
  | (?P<unknown>
        \{\{.*?\}\}                          # substitution
      | (?<=[\])`])\{[.\#\w][^}\n]*\}(?!`)   # attributes
      | \[\^[^\]\s]+\]                       # footnote
      | ^\[[^\]\n]+\]:[ ]\S+                 # link definition
      | <(?:project|path|inv):[^>\n]*>       # MyST autolink
      | ^:[ ]+\S                            # definition list
      | <img\b                               # raw HTML image
    )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
DROPPED_LINE = re.compile(r"^(?:\([^()\s]+\)=|%.*|\+\+\+.*)[ \t]*$", re.MULTILINE)
NOT_TRANSLATED = {
    "{{": "a substitution",
    "{": "an attribute list",
    "[^": "a footnote",
    "[": "a link definition (write the address in place)",
    ":": "a definition list",
    "<img": "a raw HTML image (write a figure directive)",
    "<": "a MyST autolink (write [text](address))",
}


@dataclass(frozen=True)
class Inline:
    """What roles, block math, images and link targets become. Each function may raise KeyError."""

    role: Callable[[str, str], str]
    equation_number: Callable[[str], str]
    image: Callable[[str, str], str]
    link: Callable[[str], str]
    title: Callable[[str], str]


def translate(text: str, inline: Inline, path: Path, line: int) -> str:
    """Return ``text`` with its MyST syntax as plain Markdown; labels and comments are dropped."""

    def replace(match: re.Match) -> str:
        try:
            return _piece(match, inline)
        except (KeyError, ValueError) as error:
            if isinstance(error, PageError):
                raise
            at = line + text.count("\n", 0, match.start())
            raise PageError(path, at, str(error.args[0])) from error

    plain = TOKEN.sub(replace, DROPPED_LINE.sub("", text))
    return re.sub(r"\n{3,}", "\n\n", plain).strip("\n")


def _piece(match: re.Match, inline: Inline) -> str:
    if match["role"]:
        return inline.role(match["name"], " ".join(match["content"].split()))
    if match["block"]:
        number = inline.equation_number(match["label"]) if match["label"] else ""
        before = match.string[: match.start()].rpartition("\n")[2]
        if before.strip():
            return one_line_math(display_math(match["tex"], number))
        return display_math(match["tex"], number).replace("\n", "\n" + before)
    if match["image"]:
        return inline.image(match["alt"], match["image"])
    if match["empty"]:
        return f"[{inline.title(match['empty'])}]({inline.link(match['empty'])})"
    if match["target"]:
        return f"]({inline.link(match['target'])}{match['title'] or ''})"
    if match["environment"]:
        raise ValueError("a bare LaTeX environment is not translated: write $$ ... $$ around it")
    if match["unknown"]:
        found = match["unknown"].strip()
        what = next(name for start, name in NOT_TRANSLATED.items() if found.startswith(start))
        raise ValueError(f"{what} is not translated: {found}")
    return match[0]


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
