"""Long lines of code get a box of their own, so that a phone can wrap them with a hanging indent.

A line that a phone cannot hold becomes ``<span class="line in2">``, where 2 is how deep it is
indented. Everywhere but on phones nothing of it is seen (folds.css); copied code stays as it is.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

CODE = re.compile(
    r'(<div class="highlight-(?:ipython3|python|py|default)[^"]*"><div class="highlight"><pre>)'
    r"(.*?)(</pre>)",
    re.DOTALL,
)
PHONE = 27  # characters that fit into an exercise on a phone
DEEPEST = 6


def mark_lines(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    if "body" in context:
        context["body"] = CODE.sub(_marked, context["body"])


def _marked(match: re.Match) -> str:
    lines = match[2].split("\n")
    return match[1] + "".join(_line(line) for line in lines[:-1]) + lines[-1] + match[3]


def _line(line: str) -> str:
    words = html.unescape(re.sub(r"<[^>]*>", "", line))
    if len(words) <= PHONE:
        return line + "\n"
    depth = min((len(words) - len(words.lstrip())) // 4, DEEPEST)
    return f'<span class="line in{depth}">{line}\n</span>'


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("html-page-context", mark_lines)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
