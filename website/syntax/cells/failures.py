"""What failed while a page's cells ran (pages/failures.py) stands where every reader sees it.

- A check that did not hold, and a cell that broke, become a box after the cell, however much of the
  cell, or of what is around it, is folded. In a claim it stands inside the claim.
- A claim whose cell failed is not confirmed: syntax/claim.py says so, here and in its tables.
- On a page with a broken cell, a number that was never glued is a question mark; on every other
  page it is an error, as ever.
"""

from typing import Any

from docutils import nodes
from myst_nb.core import render
from myst_nb.ext.glue.roles import PasteTextRole

from vitbook.book.checks import values
from website.pages.failures import BROKEN, CHECK, ELSEWHERE, is_broken
from website.syntax.cells.cell import failed, is_failure
from website.syntax.cells.details import fold

NOT_COMPUTED = "not computed on this machine"


class Box:
    """How myst-nb renders the two types of output; its own name for this is a plugin."""

    mime_priority_overrides = (("*", CHECK, 1), ("*", BROKEN, 1))

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        if data.mime_type == CHECK:
            said, code = "This did not hold on this machine:", [data.content["source"]]
            found = values(data.content["source"], data.content["found"])
        elif data.mime_type == BROKEN:
            said, code, found = data.content["said"], [data.content["found"]], []
        else:
            return None
        words = nodes.paragraph("", "", nodes.strong("", said))
        for name, parts in (("", code), ("; found", found)):
            for at, part in enumerate(filter(None, parts)):
                words += nodes.Text(f"{',' if at else name} ")
                words += nodes.literal(part, part)
        words += nodes.Text(".")
        kind = "check" if data.mime_type == CHECK else "broken"
        box = nodes.container("", words, classes=["not-held", f"not-held-{kind}"])
        box["elsewhere"] = bool(data.output_metadata.get(ELSEWHERE))
        return [box]


class GluedText(PasteTextRole):
    """A glued number, or the mark of one that a broken cell did not come to."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.rpartition(":")[0] or self.text
        client = self.document["nb_renderer"].renderer.nb_client
        if "::" in name or name in client.glue_data or not is_broken(client.notebook):
            return super().run()
        env = self.document.settings.env
        env.metadata[env.docname].setdefault("not_computed", []).append(name)
        mark = nodes.abbreviation("", "?", explanation=NOT_COMPUTED, classes=["not-computed"])
        return [mark], []


def take_out(cell: nodes.container) -> None:
    """The boxes of a cell stand behind it, before anything of it is folded."""
    boxes = list(cell.findall(is_failure))
    if not boxes:
        return
    cell["failed"] = failed(cell)
    for box in boxes:
        output = box.parent
        output.remove(box)
        if not output.children and output is not cell:
            output.parent.remove(output)
    cell.parent.insert(cell.parent.index(cell) + 1, boxes)


def bring_out(document: nodes.document) -> None:
    """No fold hides a box, once all is folded; what failed of a claim stands inside its frame."""
    for box in reversed(list(document.findall(is_failure))):
        folds = [above for above in ancestors(box) if is_folded(above)]
        if folds:
            box.parent.remove(box)
            folds[-1].parent.insert(folds[-1].parent.index(folds[-1]) + 1, box)
    for box in list(document.findall(is_failure)):
        at = box.parent.index(box)
        before = box.parent[at - 1] if at else None
        if isinstance(before, nodes.container) and "claim-unconfirmed" in before["classes"]:
            box.parent.remove(box)
            before += box


def ancestors(node: nodes.Node) -> list[nodes.Element]:
    """From the nearest to the document."""
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def is_folded(node: nodes.Element) -> bool:
    return (
        isinstance(node, fold)
        or node.get("design_component") == "dropdown"
        or "dropdown" in node.get("classes", [])
    )


def setup(app: Any) -> None:
    plugins = render.load_mime_renders()  # a list that is made once, from installed distributions
    if Box not in plugins:
        plugins.append(Box)
    app.add_role_to_domain("glue", "text", GluedText(), override=True)
