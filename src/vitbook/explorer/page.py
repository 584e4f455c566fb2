"""One file around a figure: it opens anywhere, asks for nothing, prints, and carries its audit."""

import html
from importlib import resources
from typing import TYPE_CHECKING

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
    name = html.escape(title)
    style = resources.files("vitbook.explorer").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{name}</h1>\n{figure}\n<section><h2>What this map may be used for</h2>"
        f"{_audit(audit, audited)}</section></main></body></html>\n"
    )


def _audit(audit: "Audit | None", audited: str) -> str:
    if audit is None:
        return f'<p class="verdict">Not audited.</p><p>{NOT_AUDITED}</p>'
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{value}</td><td>{floor}</td>'
        f"<td>{passed}</td></tr>"
        for name, value, floor, passed in audit.table()
    )
    return (
        f'<p class="verdict">{html.escape(audit.sentence)}</p>'
        f"<p>{html.escape(f'Audited: {audited}. ' * bool(audited) + audit.of)}</p>"
        f"<table><caption>{html.escape(audit.caption)}</caption><thead><tr><td></td>"
        '<th scope="col">value</th><th scope="col">floor</th><th scope="col">above</th>'
        "</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
