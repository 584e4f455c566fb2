"""What is made once and used again in the next build, and when it is not."""

from types import SimpleNamespace

import pytest
from small_book import Book

from website.theme import kept
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


def recalled(app, maker):
    found = Kept("pieces.json", [maker])
    found.recall(app)
    return found


@pytest.fixture
def built(app, maker):
    """A piece was made of 1 and a dict."""
    first = recalled(app, maker)
    assert first.of((1, {"a": None}), lambda: "made") == "made"
    first.keep(app, None)


def test_a_piece_is_made_once_for_all_builds(built, app, maker):
    assert recalled(app, maker).of((1, {"a": None}), None) == "made"  # nobody is asked


@pytest.mark.parametrize("changed", ["what it is made of", "who makes it", "a library", "half"])
def test_a_piece_is_made_anew_when_what_it_follows_from_has_changed(
    built, app, maker, changed, monkeypatch, tmp_path
):
    if changed == "who makes it":
        maker.write_text("two")
    if changed == "a library":
        (tmp_path / "lock").write_text("pygments==9")
        monkeypatch.setattr(kept, "LOCK", tmp_path / "lock")
    if changed == "half":
        (app.outdir.parent / "pieces.json").write_text('{"a": ')
    about = (1, {"a": changed == "what it is made of" or None})
    assert recalled(app, maker).of(about, lambda: "anew") == "anew"


def test_nothing_is_kept_of_what_could_not_be_made_or_of_a_build_that_broke(app, maker):
    pieces = Kept("pieces.json", [maker])
    with pytest.raises(ZeroDivisionError):
        pieces.of((1,), lambda: 1 / 0)
    assert pieces.of((1,), lambda: "made") == "made"
    pieces.keep(app, RuntimeError())
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
