"""What is made once and used again in the next build, and when it is not."""

from types import SimpleNamespace

import pytest
from small_book import Book

from website.theme.kept import Kept

UNKNOWN = "```{code-block} klingon\nqapla\n```\n"


@pytest.fixture
def app(tmp_path):
    return SimpleNamespace(outdir=tmp_path / "out")


@pytest.fixture
def maker(tmp_path):
    maker = tmp_path / "maker.py"
    maker.write_text("one")
    return maker


def built(app, maker, about=(1, {"a": None}), version="1"):
    """What a build takes from the file, or makes."""
    kept = Kept("pieces.json", [maker], version)
    kept.recall(app)
    piece = kept.of(about, lambda: f"made of {about}")
    made = not kept.known
    kept.keep(app, None)
    return piece, made


def test_a_piece_is_made_once_for_all_builds(app, maker):
    assert built(app, maker) == ("made of (1, {'a': None})", True)
    kept = Kept("pieces.json", [maker], "1")
    kept.recall(app)
    assert kept.of((1, {"a": None}), None) == "made of (1, {'a': None})"  # nobody is asked


@pytest.mark.parametrize("changed", ["what it is made of", "who makes it", "a library", "half"])
def test_a_piece_is_made_anew_when_what_it_follows_from_has_changed(app, maker, changed):
    built(app, maker)
    if changed == "who makes it":
        maker.write_text("two")
    if changed == "half":
        (app.outdir.parent / "pieces.json").write_text('{"a": ')
    kept = Kept("pieces.json", [maker], "2" if changed == "a library" else "1")
    kept.recall(app)
    about = (1, {"a": changed == "what it is made of" or None})
    assert kept.of(about, lambda: "anew") == "anew"


def test_nothing_is_kept_of_what_could_not_be_made_or_of_a_build_that_broke(app, maker):
    kept = Kept("pieces.json", [maker])
    with pytest.raises(ZeroDivisionError):
        kept.of((1,), lambda: 1 / 0)
    assert kept.of((1,), lambda: "made") == "made"
    kept.keep(app, RuntimeError())
    assert not (app.outdir.parent / "pieces.json").exists()


def test_code_that_cannot_be_coloured_is_warned_of_in_each_build(tmp_path):
    book = Book(tmp_path, ("website.theme.light",))
    for broken in ("```python\n?? $\n```\n", UNKNOWN):
        for _ in range(2):
            book.page("index", f"```python\nx = 1\n```\n\n{broken}")
            (tmp_path / "out" / "index.html").unlink(missing_ok=True)
            page = book.build().html("index")
            assert book.warnings.count("WARNING") == 1
            assert page.select_one(".highlight .mi").text == "1"
    assert "x" in (tmp_path / "code.json").read_text()
