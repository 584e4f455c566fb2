"""glue: what the builder reads, and nothing else."""

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import start_ipython
from myst_nb.core.variables import format_plain_text
from myst_nb.ext.glue import extract_glue_data_cell
from nbformat.v4 import new_code_cell, new_output

from vitbook.book.glue import glue


@pytest.fixture(scope="module")
def shell():
    InteractiveShell.clear_instance()  # of a test that ran before in this process
    start_ipython()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.fixture
def published(shell, monkeypatch):
    """Whatever a cell sends to the page, as a list of keyword arguments."""
    sent = []
    monkeypatch.setattr(shell.display_pub, "publish", lambda **kwargs: sent.append(kwargs))
    return sent


def as_myst_nb_reads(sent: list[dict], spec: dict[str, str]) -> tuple[dict[str, str], list]:
    outputs = [new_output("display_data", s["data"], metadata=s["metadata"]) for s in sent]
    cell = new_code_cell(outputs=outputs)
    data = extract_glue_data_cell(cell)
    texts = {name: output["data"]["text/plain"] for name, output in data}
    return {name: format_plain_text(texts[name], spec[name]) for name in spec}, cell.outputs


def test_the_builder_formats_what_glue_kept_and_the_page_shows_nothing(published):
    glue("c2_entropy", torch.tensor(1.23456, dtype=torch.float64))
    glue(c2_share=np.float64(0.976), c2_count=np.int64(12), c2_word="cat", c2_small=-3.5e-9)
    spec = {"c2_entropy": ".2f", "c2_share": ".1%", "c2_count": "d", "c2_word": "s"}
    texts, shown = as_myst_nb_reads(published, {**spec, "c2_small": ".1e"})
    assert texts == {
        "c2_entropy": "1.23",
        "c2_share": "97.6%",
        "c2_count": "12",
        "c2_word": "cat",
        "c2_small": "-3.5e-09",
    }
    assert shown == []  # every output was taken away
    for message in published:  # a notebook can draw none of these types, so it draws nothing
        assert set(message["data"]) == {"application/papermill.record/text/plain"}


def test_outside_a_notebook_glue_does_nothing(monkeypatch, capsys):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    glue(c1_x=1.0)
    assert capsys.readouterr().out == ""


def test_nothing_is_published_when_one_of_several_values_is_refused(published):
    with pytest.raises(ValueError, match="finite"):
        glue(c1_good=1, c1_bad=float("nan"))
    assert published == []


BAD_INPUT = [
    (lambda: glue(), TypeError, "a name and a value|at least one"),
    (lambda: glue(3, 1.0), TypeError, "name must be a string, got int"),
    (lambda: glue("C1_x", 1), ValueError, "name .*'C1_x'"),
    (lambda: glue("c1_x", 1, c1_x=2), ValueError, "'c1_x' is given twice"),
    (lambda: glue(c1_x=[1, 2]), TypeError, "c1_x must be one number or string, got list"),
    (lambda: glue(c1_x=torch.ones(2, 3)), TypeError, r"c1_x .* shape \(2, 3\)"),
    (lambda: glue(c1_x=None), TypeError, "c1_x .* NoneType"),
    (lambda: glue(c1_x=float("inf")), ValueError, "c1_x must be finite, got inf"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
