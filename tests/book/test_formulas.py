"""Formulas are set while the book is built: what comes of one, its number, and what is wrong."""

import re

import pytest
from small_book import Book

from website.theme import math
from website.theme.math import aligned, typeset


@pytest.fixture
def book(tmp_path):
    class KatexBook(Book):
        settings = {"html_math_renderer": "katex"}  # noqa: RUF012

    return KatexBook(tmp_path, ("website.theme.math", "website.syntax.claim"))


def test_a_formula_is_boxes_for_the_eye_and_mathml_for_a_screen_reader():
    html = typeset(r"\sqrt{d}", display=False)
    assert "<msqrt><mi>d</mi></msqrt>" in html
    assert 'class="katex-html" aria-hidden="true"' in html
    assert 'display="block"' not in html
    lines = r"\begin{split}U = \operatorname{softmax}(X) \\ V = Y\end{split}"
    table = typeset(lines, display=True)
    assert 'display="block"' in table
    assert "<mtable" in table
    assert '=""' not in table, "no attribute is empty"
    assert "annotation" not in table, "the source is not sent"


@pytest.mark.parametrize("tex", [r"\frac{1}", r"\nothing", "x_1_2", "é", "x % y"])
def test_what_cannot_be_set_strictly_is_an_error(tex):
    with pytest.raises(ValueError, match=r"KaTeX|LaTeX"):
        typeset(tex, display=False)


def test_lines_without_an_environment_are_set_below_each_other():
    assert aligned(r"a \\ b") == r"\begin{split}a \\ b\end{split}"
    assert aligned(r"\begin{cases}a \\ b\end{cases}") == r"\begin{cases}a \\ b\end{cases}"
    assert aligned("a") == "a"
    assert typeset(aligned(r"a &= b \\ &= c"), display=True).count("<mtr>") == 2


def test_equations_are_numbered_and_formulas_in_titles_and_claims_are_set_too(book):
    claim = "```{claim} big\n:says: '\"$N^2$ is large\"'\n:verdict: true\nIt is.\n```\n"
    table = "```{claims-table}\n```\n"
    book.page("index", f"```{{toctree}}\none\n```\n\nSee {{eq}}`eq-b`.\n\n{claim}\n{table}")
    book.page("one", "$$a$$ (eq-a)\n\n$$b$$ (eq-b)\n\n## Why $N$?\n\nSo.\n")
    page, front = book.build().html("one"), book.html("index")
    assert book.warnings == ""
    box = page.find(id="equation-eq-b")
    assert box.select_one(".eqno").text.startswith("(2)")
    assert box.select_one("math").text == "b"
    assert front.select_one('a[href="one.html#equation-eq-b"]').text == "(2)"
    assert page.select_one("h2 math").text == "N"
    for where in (".claim-says", "table.claims-table"):
        assert front.select_one(f"{where} math").text == "N2"
    assert "\\(" not in front.select_one(".body").text


def test_a_wrong_formula_is_a_warning_with_page_and_line(book):
    book.page("index", "Good.\n\nA line, and $\\frac{1}$ in the next.\n")
    line = next(line for line in book.build().warnings.splitlines() if "frac" in line)
    assert re.search(r"index\.md:5: WARNING", line)


def test_a_formula_is_set_once_for_all_builds(book, monkeypatch):
    book.page("index", "$x_{17}$ and $x_{18}$\n")
    first = str(book.build().html("index").select("math"))
    assert "17" in first
    (book.folder / "out" / "index.html").unlink()
    monkeypatch.setattr(math, "engine", None)  # nobody asks KaTeX
    assert str(book.build().html("index").select("math")) == first
    book.page("index", "$x_{19}$\n")
    with pytest.raises(TypeError):
        book.build()
