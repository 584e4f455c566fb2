"""One file around a figure: it opens anywhere, asks for nothing, prints, and carries its audit."""

import html
from importlib import resources
from typing import TYPE_CHECKING

from vitbook.files import printable

if TYPE_CHECKING:
    from vitbook.inspection.audit import Audit

NOT_AUDITED = (
    "Nobody has held this map against its controls, so nothing here says what it may be used for. "
    "It shows where attention went, and not what the answer rests on."
)
# The browser itself refuses whatever the file would fetch or send.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(title: str, figure: str, audit: "Audit | None" = None, audited: str = "") -> str:
    """A whole HTML document.

    Args:
        title: Its heading.
        figure: The element of the figure.
        audit: What was found about one of its maps.
        audited: Which map that was.
    """
    numbers = _numbers(audit, audited) if audit else ""
    return document(title, f"{_lead(audit)}\n{figure}\n{numbers}")


def document(title: str, body: str) -> str:
    """One HTML file that asks for nothing: a heading, and what stands below it."""
    name = html.escape(title)
    style = resources.files("vitbook.explorer").joinpath("page.css").read_text(encoding="utf-8")
    return printable(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{name}</h1>\n{body}</main></body></html>\n"
    )


def _lead(audit: "Audit | None") -> str:
    """What a reader has to know before the picture."""
    if audit is None:
        return f'<p class="lead"><b>Not audited.</b> {NOT_AUDITED}</p>'
    return (
        f'<p class="lead"><b>Audit.</b> {html.escape(audit.sentence)} '
        '<a href="#audit">The numbers</a></p>'
    )


def _numbers(audit: "Audit", audited: str) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{_bar(value, floor)}'
        f"<td>{_minus(value)}</td><td>{_minus(floor)}</td><td>{above}</td></tr>"
        for name, value, floor, above in audit.table()
    )
    return (
        '<section id="audit"><h2>Audit: what this map may be used for</h2>'
        f"<p>{html.escape(audit.sentence)}</p>"
        f"<p>{html.escape(f'Audited: {audited}. ' * bool(audited) + audit.of)}</p>"
        f"<table><caption>{html.escape(audit.caption)}</caption><thead><tr><td></td>"
        '<td class="bar"></td><th scope="col">value</th><th scope="col">floor</th>'
        f'<th scope="col">above</th></tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _bar(value: str, floor: str) -> str:
    """The value as a bar and the floor as a line, where there is room."""
    if not floor:
        return '<td class="bar"></td>'
    ends = (f"{100 * min(1.0, max(0.0, float(x))):.0f}%" for x in (value, floor))
    return '<td class="bar"><i style="--value:{};--floor:{}"></i></td>'.format(*ends)


def _minus(number: str) -> str:
    return number.replace("-", "\u2212")
