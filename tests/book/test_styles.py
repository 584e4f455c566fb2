"""The style sheets of all pages are two, without the rules that no page needs."""

import re
from types import SimpleNamespace

from website.theme.styles import bundle

PAGE = """<link rel="stylesheet" href="{0}_static/styles/a.css?v=1" />
<link rel="stylesheet" href="{0}_static/b.css" />
<link rel="stylesheet" href="{0}_static/live/c.css" />
<link rel="stylesheet" href="{0}_static/book.css?v=2" />
<p class="seen"></p>"""
SHEETS = {
    "styles/a.css": """@charset "UTF-8"; @import "../more.css"; /*! licence */ /* a note */
        .seen, .gone > p { color: red } .gone { color: blue } .made { background: url(dot.png) }
        @media print { .gone { top: 0 } .seen:is(.gone, .x):not(.y)::a { content: "/* ; } */" } }
        @media screen { #gone { top: 0 } } @font-face { font-family: G; src: url("no.woff2") }""",
    "more.css": "p { margin: 0 }",
    "b.css": "a { margin:  0 }",
    "live/c.css": ".gone { top: 0 }",
    "book.css": ".gone .kept { background: url('live/d.svg') }",
}


def test_two_sheets_take_the_place_of_those_of_all_pages(tmp_path):
    static = tmp_path / "_static"
    for name, text in SHEETS.items():
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text(text)
    (static / "book.js").write_text("make('made')")
    for name, up in {"index.html": "", "part/one.html": "../"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PAGE.format(up))
    bundle(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")), None)
    left = sorted(path.relative_to(static).as_posix() for path in static.rglob("*.css"))
    assert left == ["book.css", "live/c.css", "theme.css"]
    linked = re.findall(r'href="\.\./_static/([^"?]*)', (tmp_path / "part/one.html").read_text())
    assert linked == ["theme.css", "live/c.css", "book.css"]
    theme = (static / "theme.css").read_text()
    for kept in (
        "/*! licence */",
        "p{margin: 0}",
        "a{margin: 0}",
        ".seen{color: red}",
        'url("styles/dot.png")',
    ):
        assert kept in theme
    assert '.seen:is(.gone, .x):not(.y)::a{content: "/* ; } */"}' in theme
    for gone in ("blue", "#gone", "a note", "font-face"):
        assert gone not in theme
    assert 'url("live/d.svg")' in (static / "book.css").read_text()
