"""What a folded cell is called: its first line, which JupyterLab and Colab show in its place."""

import ast
import re

from website.pages.cells import TABLE, asserts, shows_table
from website.pages.meaning import called_name, cell_tree

SHORTEST, LONGEST = 3, 80  # words at least, characters at most, that a title takes of a caption
MOST = 4  # names


def title_of(code: str, *, words: str, claim: str, heading: str, table: str) -> str:
    """What a cell is: its figure, its table, its check, or what it computes.

    Args:
        code: The cell's.
        words: Of the line ``# check:`` above it.
        claim: What people say, where the cell settles a claim.
        heading: Of the section.
        table: The number of its table, such as "2.1".
    """
    tree = cell_tree(code)
    if shows_table(code):
        return f"Table {table}: {_caption(tree, TABLE) or _plain(heading)}"
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    if any(called_name(call).startswith("show") for call in calls):
        return f"Figure: {_caption(tree, 'show') or _plain(heading)}"
    if (asserts(tree) or words) and (words or claim):
        return f"Check: {_shortened(_plain(words or claim).rstrip('.'))}"
    if asserts(tree):
        return f"Check of this section: {_plain(heading)}"
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    if functions:
        return f"Defined for later: {_listed(functions)}"
    stored = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    names = [n.id for n in stored if isinstance(n.ctx, ast.Store)]
    return (
        f"Computed for later: {_listed(names)}"
        if names
        else f"Done for this section: {_plain(heading)}"
    )


def _listed(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:MOST]) + (" and more" if len(names) > MOST else "")


def _caption(tree: ast.Module, function: str) -> str:
    """The beginning of the first caption, or of the text for who does not see the picture, as far
    as no number of the run stands in it."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called_name(n) == function]
    for name in ("caption", "alt"):
        for call in calls:
            given = next((k.value for k in call.keywords if k.arg == name), None)
            if found := _beginning(_literal(given)):
                return found
    return ""


def _literal(node: ast.expr | None) -> str:
    """The text of a string; what is computed is a "\0"."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_literal, node.values))
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    if isinstance(node, ast.Call) and called_name(node) == "replace":
        return _literal(getattr(node.func, "value", None))
    return "\0"


def _beginning(text: str) -> str:
    """The first part of a sentence with enough words in it, without a number of the run."""
    text = _plain(text).removeprefix("Left: ")
    known = text.partition("\0")[0]
    for marks in (".:;", ".:;,"):
        for end in (*re.finditer(rf"(?<=\w)[{marks}](?= |$)", known), None):
            found = known[: end.start()] if end else known
            whole = end is not None or known == text
            if whole and len(found.split()) >= SHORTEST and found.count("(") == found.count(")"):
                return _shortened(found)
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def _plain(text: str) -> str:
    """Without the marks of formulas and of Markdown, and without what Colab reads as settings."""
    text = re.sub(r"\\sqrt *", "√", text)
    return " ".join(re.sub(r"\\(?:text|mathrm|operatorname)?\b|[${}`*]", "", text).split())
