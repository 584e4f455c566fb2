"""What is folded of a cell: set-up above it, checks below it, the code of what it shows.

``fold_tagged`` folds a cell that says so itself (``hide-input``, ``hide-cell``); ``fold_by_rule``
does what website/pages/cells.py says of all others. Each fold has a short mark, "✓ code, 2 checks",
which stands in the margin where there is one; what it folds opens below.
"""

import html
import re
from collections.abc import Callable

from docutils import nodes

from website.pages.cells import count_checks, parts, settles, shows_table, tells
from website.syntax.cells.details import folded

CAPTION = re.compile(r"<(figcaption|caption)\b[^>]*>(.*?)</\1>", re.DOTALL)
LONGEST = 80  # characters of a caption in the spoken name of a fold
FAILED = "failed in this build"


def is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def marked(name: str) -> Callable[[nodes.Node], bool]:
    """Is this an element of the class?"""
    return lambda node: isinstance(node, nodes.Element) and name in node.get("classes", [])


is_failure = marked("not-held")


def failed(cell: nodes.container) -> bool:
    """Did this very cell fail, not one that is not shown?"""
    return any(not node["elsewhere"] for node in cell.findall(is_failure))


def tags(cell: nodes.container) -> set[str]:
    return set(cell.get("cell_metadata", {}).get("tags", []))


def part(cell: nodes.container, name: str) -> nodes.container | None:
    """The cell's "source" or "output"."""
    for node in cell.children:
        if isinstance(node, nodes.Element) and node.get("nb_element") == f"cell_code_{name}":
            return node
    return None


def fold_by_rule(cell: nodes.container) -> None:
    source, output = part(cell, "source"), part(cell, "output")
    if source is None or cell.get("hide_mode"):
        return
    code = source.astext()
    found = parts(code)
    printed = [] if output is None else list(output.children)
    printed = [one for one in printed if isinstance(one, nodes.literal_block)]  # plain text
    draws = output is not None and len(printed) < len(output.children)
    proves = claim_before(cell) is not None and (settles(code) or not found.shown)
    if shows_table(code) or (proves and not draws):
        cell["hide_mode"] = "all" if printed and not draws else "input"
        fold_tagged(cell)
        return
    if output is not None and not tells(found):
        output.children = [one for one in output.children if one not in printed]
        if not output.children:
            cell.remove(output)
    else:
        printed = []
    if found.setup:
        hidden = [of(source, found.setup), *([] if found.check else printed)]
        cell.insert(0, folded([nodes.Text("setup")], hidden, classes=["code-fold"]))
    if found.check:
        check = of(source, found.check)
        told = nodes.paragraph("", f"Checked: {found.words}.", classes=["fold-words"])
        words = [told] if found.words else []
        title = mark(cell, check, "numbers", found.words or "")
        cell += folded(title, [*words, check, *printed], classes=["code-fold"])
    if found.shown:
        source.replace_self(of(source, found.shown))
    else:
        cell.remove(source)


def of(source: nodes.container, code: str) -> nodes.container:
    """A part of a cell's code, set like the whole."""
    copy = source.deepcopy()
    (block,) = copy.findall(nodes.literal_block)
    block.rawsource = code
    block.children = []
    block += nodes.Text(code)
    return copy


def mark(
    cell: nodes.container, source: nodes.container, name: str, more: str, refuted: bool = False
) -> list[nodes.Node]:
    """What is always seen of a fold, and heard besides: ``more`` tells it from the others."""
    checks = count_checks(source.astext())
    what = [f"{checks} check{'s' * (checks > 1)}"] if checks else []
    if not checks or name in {"figure", "table", "output"}:
        what.insert(0, "code")
    if refuted:
        what.append("refutation")
    title: list[nodes.Node] = [nodes.Text(", ".join(what))]
    if checks and cell.get("failed"):
        title[:0] = [nodes.inline("", FAILED, classes=["fold-failed"]), nodes.Text(": ")]
    elif checks and cell.get("exec_count"):
        title[:0] = [nodes.inline("", "✓", classes=["fold-ran"]), nodes.Text(" ")]
    heard = {"numbers": "", "claim": " of this verdict"}.get(name, f" of this {name}")
    if heard or more:
        heard = f"{heard}: {more}" if more else heard
        title.append(nodes.inline("", heard, classes=["visually-hidden"]))
    return title


def fold_tagged(cell: nodes.container) -> None:
    source, output = part(cell, "source"), part(cell, "output")
    if source is None or cell["hide_mode"] not in {"input", "all"}:
        return
    hidden = [source]
    if output is not None and cell["hide_mode"] == "all":
        hidden.append(output)
    for node in hidden:
        cell.remove(node)
    shown = None if output in hidden or output is None or not output.children else output
    claim = claim_before(cell) if shown is None else None
    name, more = names(source, shown, claim)
    refuted = [] if claim is None else list(claim.findall(marked("claim-refuted")))
    for line in refuted:
        line.parent.remove(line)
    title = mark(cell, source, name, more, bool(refuted))
    cell += folded(title, [*refuted, *hidden], classes=["code-fold"])
    del cell["hide_mode"]
    if claim is not None:
        cell.parent.remove(cell)
        claim += cell


def names(
    source: nodes.container, output: nodes.container | None, claim: nodes.container | None
) -> tuple[str, str]:
    """What the fold belongs to, and what is said besides to tell it from the others."""
    if claim is not None and count_checks(source.astext()):
        (said, *_) = claim.findall(marked("claim-says"))
        plain = re.sub(r"[\\{}\s]+", " ", said.astext())  # of formulas their letters
        return "claim", shortened(plain)
    if output is None:
        return "numbers", ""
    shown = "\n".join(raw.astext() for raw in output.findall(nodes.raw))
    caption = CAPTION.search(shown)
    for tag, word in (("<figure", "figure"), ("vitbook-table", "table")):
        if tag in shown:
            return word, beginning(caption[2]) if caption else ""
    return "output", ""


def beginning(caption: str) -> str:
    """The first sentence of a caption, or as much of it as may be said."""
    text = html.unescape(re.sub(r"<[^>]*>", "", caption))
    text = re.sub(r"\\[()]|\$", "", text)
    text = re.split(r"(?<=\w)[.:;](?= |$)", " ".join(text.split()), maxsplit=1)[0]
    return shortened(text)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def claim_before(cell: nodes.container) -> nodes.container | None:
    """The claim that this cell follows directly."""
    before = cell.parent.children[: cell.parent.index(cell)]
    box = before[-1] if before else None
    return box if box is not None and marked("claim")(box) else None
