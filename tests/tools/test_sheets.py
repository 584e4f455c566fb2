"""The sheets of a page become one that says the same."""

from tools.sheets import join_sheets

LINK = '<link rel="stylesheet" type="text/css" href="{}?v=1" />\n'
PAGE = "<html><head>{}</head><body style='color: var(--here)'>x</body></html>"


def site(folder, pages):
    static = folder / "_static"
    (static / "styles").mkdir(parents=True)
    (folder / "part").mkdir()
    (static / "first.css").write_text(
        '@charset "UTF-8";:root{--here:red;--gone:"a;b";--through:1px}a{top:var(--through)}'
    )
    (static / "styles/second.css").write_text(
        '@import "../basic.css";b{background:url(pictures/x.png) url("data:image/png;base64,AA")}'
    )
    (static / "basic.css").write_text("c{background:url('./y.svg')}")
    (static / "print.css").write_text("d{top:0}")
    for name, sheets in pages.items():
        up = "../" * name.count("/")
        links = "".join(LINK.format(f"{up}_static/{one}") for one in sheets)
        links += f'<link media="print" rel="stylesheet" href="{up}_static/print.css" />'
        (folder / name).write_text(PAGE.format(links))
    join_sheets(folder)
    return {name: (folder / name).read_text() for name in pages}


BOTH = ["first.css", "styles/second.css"]


def test_one_sheet_says_what_all_said_in_their_order(tmp_path):
    pages = site(tmp_path, {"index.html": BOTH, "part/one.html": BOTH})
    (made,) = (tmp_path / "_static").glob("sheet-*.css")
    assert made.read_text() == (
        '@charset "UTF-8";:root{--here:red;--through:1px}a{top:var(--through)}\n'
        "c{background:url('./y.svg')}"
        'b{background:url(styles/pictures/x.png) url("data:image/png;base64,AA")}'
    )
    for name, up in (("index.html", ""), ("part/one.html", "../")):
        assert pages[name].count("stylesheet") == 2
        assert f'href="{up}_static/{made.name}?v=' in pages[name]
        assert f'media="print" rel="stylesheet" href="{up}_static/print.css"' in pages[name]


def test_pages_with_other_sheets_have_another_one(tmp_path):
    pages = site(tmp_path, {"index.html": BOTH, "part/one.html": BOTH[::-1], "two.html": BOTH[:1]})
    assert len([*(tmp_path / "_static").glob("sheet-*.css")]) == 2
    assert "_static/first.css?v=1" in pages["two.html"]


def test_a_second_build_over_the_first_gives_the_same(tmp_path):
    once = site(tmp_path, {"index.html": BOTH})
    join_sheets(tmp_path)
    assert (tmp_path / "index.html").read_text() == once["index.html"]
