"""A small page at each old address (website/pages/moved.py) that leads on, to the same anchor.

The script that renames what a browser has kept, ``_static/predict/progress.js``, gets the table.
"""

import html
import json
import posixpath
from pathlib import Path

from sphinx.application import Sphinx

from website.pages.moved import Moved, old_pages, read_moved

SCRIPT = "predict/moved.js"
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Moved: {title}</title>
<link rel="canonical" href="{uri}">
<script>
let name = `-${{location.hash.slice(1)}}-`;
for (const [old, now] of {words}) name = name.replace(`-${{old}}-`, `-${{now}}-`);
const anchor = name.slice(1, -1);
location.replace("{uri}" + location.search + (anchor && `#${{anchor}}`));
</script>
<noscript><meta http-equiv="refresh" content="0; url={uri}"></noscript>
</head>
<body><p>This page has moved: <a href="{uri}">{title}</a></p></body>
</html>
"""


def page(old: str, path: list[Moved], title: str, uri: str) -> str:
    """The HTML at an old address; ``uri`` is that of the new page, seen from the site's top."""
    words = [pair for row in path for pair in row.words.items()]
    return PAGE.format(
        title=html.escape(title),
        uri=posixpath.relpath(uri, posixpath.dirname(old) or "."),
        words=json.dumps(words),
    )


def write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    root, out = Path(app.srcdir).parent, Path(app.outdir)
    for old, path in old_pages(root).items():
        now = path[-1].to
        if now in app.env.titles and old not in app.env.titles:
            uri = app.builder.get_target_uri(now)
            file = out / f"{old}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page(old, path, app.env.titles[now].astext(), uri), "utf8")
    rows = [[row.page, row.to, row.words] for row in read_moved(root)]
    script = out / "_static" / SCRIPT
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"globalThis.bookMoved = {json.dumps(rows)};\n", "utf8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
