"""One page with figures of single ideas, from the book's own scripts, without Sphinx."""

import html
import json
from pathlib import Path

from website.live import query, rotary, softmax
from website.live.pack import script

ROOT = Path(__file__).resolve().parents[2]
LIVE = ROOT / "website" / "live"
STATIC = ROOT / "website" / "theme" / "static"
ASKING = (  # what a page with a prediction loads
    STATIC / "place/kept.js",
    LIVE / "kit.js",
    STATIC / "predict/progress.js",
    STATIC / "predict/predict.js",
)
FIGURES = ("softmax", "rotary", "alike", "query")
DATA = {"softmax": softmax, "rotary": rotary, "query": query}
ASKS = {"softmax": "largest-weight"}
SETTINGS = {
    "softmax": {"d": "256", "divided": "1"},
    "rotary": {"query": "9", "key": "12"},
    "alike": {"row": "6", "column": "9"},
    "query": {"x": "0", "y": "4"},
}
KEEP = """globalThis.live = {};
const begin = vitbook.live.figure;
vitbook.live.figure = (name, start) => begin(name, (...given) => (live[name] = start(...given)));
"""


def figure(name: str) -> str:
    """A figure as the book's extension writes it, and a sentence that sets it."""
    live = LIVE.as_uri()
    scripts = [f"{live}/{name}.js"] + ([f"{name}-data.js"] if name in DATA else [])
    source = f' data-source="{name}"' if name in DATA else ""
    source += f' data-predict="{ASKS[name]}"' if name in ASKS else ""
    values = html.escape(json.dumps(SETTINGS[name]))
    return (
        f'<p><a class="live-set" id="set-{name}" href="#live-{name}" data-set="{values}">set</a>'
        f'<div class="live" id="live-{name}" role="group" aria-label="{name}" data-live="{name}"'
        f" data-scripts='{json.dumps(scripts)}'{source}>"
        f'<p class="live-title">{name}</p><div class="live-still"><p>still</p></div></div>'
    )


def write_page(folder: Path, theme: str = "light") -> Path:
    """Write the page and its data; its path."""
    live = LIVE.as_uri()
    for name, module in DATA.items():
        (folder / f"{name}-data.js").write_text(script(name, module.data()), "utf8")
    styles = [one for one in ("live", *FIGURES) if (LIVE / f"{one}.css").is_file()]
    links = "".join(f'<link rel="stylesheet" href="{live}/{one}.css">' for one in styles)
    path = folder / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Figures</title>'
        f'{links}<script defer src="{live}/kit.js"></script></head>'
        f"<body><main>{''.join(map(figure, FIGURES))}</main><script>"
        f"addEventListener('DOMContentLoaded', () => {{ {KEEP} }});</script></body></html>",
        "utf8",
    )
    return path


def write_asking(folder: Path, name: str, asks: str, source: str = "", needs: tuple = ()) -> str:
    """Write a page of one figure with its prediction, or without one; its address. ``source`` is
    the script with the data, in the same folder; ``needs`` are the figure's other scripts."""
    scripts = [(LIVE / f"{one}.js").as_uri() for one in (*needs, name)]
    scripts += filter(None, [source])
    loaded = "".join(f'<script defer src="{one.as_uri()}"></script>' for one in ASKING)
    styles = (LIVE / "live.css", LIVE / f"{name}.css", STATIC / "predict/predict.css")
    links = "".join(f'<link rel="stylesheet" href="{one.as_uri()}">' for one in styles)
    data = f' data-source="{name}"' if source else ""
    path = folder / f"{name}{bool(asks)}.html"
    asks = asks and f'<div class="live-box">{asks}</div>'  # as the server writes it
    path.write_text(
        '<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>'
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{name}</title>{links}{loaded}</head><body><main>"
        f'<div class="live" id="live-{name}" data-live="{name}"{data} '
        f'data-scripts="{html.escape(json.dumps(scripts))}"><p class="live-title">{name}</p>{asks}'
        '<div class="live-still"><p>still</p></div></div></main><script>'
        f"addEventListener('DOMContentLoaded', () => {{ {KEEP} }});</script></body></html>",
        "utf8",
    )
    return path.as_uri()


def running(new_page, address: str, name: str, script: str = "", **options):
    """The page, when the figure of that name runs; ``script`` runs before its own."""
    page = new_page(script, **options)
    page.goto(address, wait_until="load")
    page.locator(f"#live-{name}.live-running").wait_for()
    return page
