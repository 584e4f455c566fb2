"""Reading a notebook that anybody may have written: a status and a sentence, never a crash."""

import gzip
import json
import os

import pytest
from gradebox.notebook import NotebookError, read_answers
from tiny import EXPLAIN, SOLUTIONS, answers, cell, notebook, write

from gradebox import reading


@pytest.fixture
def read(tmp_path, package):
    def run(contents):
        path = tmp_path / "submission.ipynb"
        if isinstance(contents, bytes):
            path.write_bytes(contents)
        else:
            write(path, contents)
        return read_answers(path, package)

    return run


def with_cells(cells, **about):
    return {**notebook(), "cells": cells, **about}


DEEP = 100_000
UNREADABLE = {
    "empty": "",
    "no JSON": "PK\x03\x04 a zip",
    "half a notebook": json.dumps(notebook())[:-40],
    "a list": [],
    "a number": "7",
    "nested": "[" * DEEP + "]" * DEEP,
    "no cells": {"nbformat": 4, "metadata": {}},
    "cells that are no list": with_cells({"a": 1}),
    "no cell at all": with_cells([]),
    "too many cells": with_cells([cell("x")] * 2001),
    "another encoding": json.dumps(notebook()).encode("utf-16"),
    "not text": b"\xff\xfe\x00" * 10,
    "worksheets of nothing": {"nbformat": 3, "worksheets": [None, 3, {"cells": 7}]},
    "another assignment": (notebook(assignment="other"), "wrong-assignment"),
    "an assignment that is no text": (notebook(assignment=["tiny"]), "wrong-assignment"),
    "another variant": (notebook(variant="v2"), "wrong-variant"),
    "a variant that is no text": (notebook(variant={"deep": []}), "wrong-variant"),
    "no answer": (with_cells([cell("x = 1"), cell("# hello", kind="markdown")]), "no-answers"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_marked_is_said_so(read, name):
    given = UNREADABLE[name]
    contents, status = given if isinstance(given, tuple) else (given, "unreadable")
    with pytest.raises(NotebookError) as caught:
        read(contents)
    assert caught.value.status == status
    assert str(caught.value).endswith(".")


ACCENT = json.dumps(with_cells([cell("x = 'é'")]), ensure_ascii=False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "The file is empty"),
        (b"PK\3\4\x14\0", "This is an archive"),
        (gzip.compress(b"{}"), "This is an archive"),
        (ACCENT.encode("cp1252"), "not saved as UTF-8"),
        (ACCENT.encode("utf-16"), "not saved as UTF-8"),
    ],
    ids=["empty", "zip", "gzip", "cp1252", "utf-16"],
)
def test_what_jupyter_cannot_open_is_called_what_it_is(read, data, words):
    with pytest.raises(NotebookError, match=words):
        read(data)


def test_a_file_that_is_too_large_is_not_even_parsed(read, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    with pytest.raises(NotebookError, match="larger than"):
        read(with_cells([cell("x" * 2000)]))


def test_links_folders_and_pipes_are_refused(tmp_path, package):
    real = write(tmp_path / "real.ipynb", notebook())
    (tmp_path / "link.ipynb").symlink_to(real)
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    for name in ("link", "folder", "pipe", "missing"):
        with pytest.raises(NotebookError) as caught:
            read_answers(tmp_path / f"{name}.ipynb", package)
        assert caught.value.status == "unreadable"


def code(source, **more):
    return {"cell_type": "code", "source": source, **more}


Q1 = SOLUTIONS["q1"]
THREE = {"cells": [{"cell_type": "code", "input": Q1.split("\n")}]}
ODD = {
    "as handed out": (notebook(), [None, "q1", "q2", "q3"]),
    "no metadata at all": ({"cells": [code(SOLUTIONS["q2"])]}, ["q2"]),
    "only tags": (with_cells([code("a", metadata={"tags": ["x", 3, "q3"]})]), ["q3"]),
    "an unknown question": (with_cells([cell("x", "q99"), cell("y", "q1")]), [None, "q1"]),
    "format 3": (
        {"nbformat": 3, "metadata": notebook()["metadata"], "worksheets": [THREE]},
        ["q1"],
    ),
    "lines": (with_cells([code(Q1.splitlines(keepends=True))]), ["q1"]),
    "cells that are no objects": (with_cells([None, 3, "x", [], cell("y", "q1")]), ["q1"]),
    "sources that are no text": (
        with_cells([code(3), {"cell_type": "code"}, cell("y", "q1")]),
        [None, "q1"],
    ),
    "a byte order mark": (
        b"\xef\xbb\xbf" + json.dumps(notebook()).encode(),
        [None, "q1", "q2", "q3"],
    ),
    "a copied cell": (with_cells([*answers()[:1], *answers()[:1]]), ["q1", "q1"]),
    "first line in another case": (with_cells([cell("\n#  question 2 : x")]), ["q2"]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_notebooks_are_read(read, name):
    contents, expected = ODD[name]
    assert [cell.question for cell in read(contents).cells] == expected


def test_what_the_notebook_does_not_say_is_noted(read):
    contents = notebook()
    del contents["metadata"]["vitbook"]["variant"]
    assert read(contents).notes == ["the notebook does not say its variant"]


def test_the_texts_of_explain_questions_are_kept(read):
    contents = with_cells([*answers(), cell(EXPLAIN, "q4", "markdown")])
    assert read(contents).texts == {"q4": EXPLAIN}


def test_another_picture_is_another_answer(read):
    """Pictures that are pasted into a cell have the same names in all notebooks."""

    def text(data):
        drawn = cell("![](attachment:image.png)", "q4", "markdown")
        drawn["attachments"] = {"image.png": {"image/png": data}, "odd": [[]], "odder": {"x": 3}}
        return read(with_cells([*answers(), drawn])).texts["q4"]

    assert text("iVBORw0K").startswith('[picture "image.png", ')
    assert text("iVBORw0K") == text(["iVBO", "Rw0K"]) != text("iVBORw0L")


def test_a_cell_that_is_left_out_is_noted(read):
    long = cell("# " + "x" * 200_000)
    (note,) = read(with_cells([long, *answers()])).notes
    assert "more than 200,000 characters" in note
