"""One file around a figure: it opens anywhere, asks for nothing, prints, and carries its audit."""

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitbook.inspection.audit import Audit

NOT_AUDITED = (
    "Nobody has held this map against its controls, so nothing here says what it may be used for. "
    "It shows where attention went, and not what the answer rests on."
)
# The browser itself refuses whatever the file would fetch or send.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
STYLE = """
:root { color-scheme: light dark; --ink: #1b2330; --muted: #4a5568; --line: #d5dae3; --paper: #ffffff; --bar: #c3500a; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 400 1rem/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2rem 0 0.5rem; }
p { max-width: 42rem; margin: 0.5rem 0; }
.verdict { font-size: 1.125rem; font-weight: 650; }
table { border-collapse: collapse; width: 100%; max-width: 52rem; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: 0.875rem; color: var(--muted); padding-bottom: 0.5rem; }
th, td { padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid var(--line); text-align: left; font-weight: 400; }
thead th { font-size: 0.875rem; color: var(--muted); }
td { text-align: right; white-space: nowrap; }
thead th + th { text-align: right; }
td:last-child, thead th:last-child { padding-right: 0; }
small { display: block; font-size: 0.875rem; color: var(--muted); }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #f2f4f8; --muted: #aeb8c6; --line: #36404e; --paper: #0d131a; --bar: #f8871b; }
}
@media print { main { max-width: none; padding: 0; } section, tr { break-inside: avoid; } }
"""


def page(title: str, figure: str, audit: "Audit | None" = None) -> str:
    """A whole HTML document.

    Args:
        title: Its heading.
        figure: The element of the figure.
        audit: What was found about the map shown first.
    """
    name = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{name}</h1>\n{figure}\n<section><h2>What this map may be used for</h2>"
        f"{_audit(audit)}</section></main></body></html>\n"
    )


def _audit(audit: "Audit | None") -> str:
    if audit is None:
        return f'<p class="verdict">Not audited.</p><p>{NOT_AUDITED}</p>'
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{value}</td><td>{floor}</td>'
        f"<td>{passed}</td></tr>"
        for name, value, floor, passed in audit.table()
    )
    return (
        f'<p class="verdict">{html.escape(audit.sentence)}</p>'
        f"<p>{html.escape(audit.of)}</p>"
        f"<table><caption>{html.escape(audit.caption)}</caption><thead><tr><td></td>"
        '<th scope="col">value</th><th scope="col">floor</th><th scope="col">above</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
