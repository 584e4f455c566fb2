"""The tables of results."""

import pytest
from bs4 import BeautifulSoup

from vitbook.book.intervals import Interval
from vitbook.book.table import Table, show_table

ROWS = [["one head", 2400, Interval(19.04, 18.0, 20.0), None], ["two <heads>", 2400, 100.0, -0.5]]
HEADER = ["layer", "weights", "right, %", "gain, $x_i$"]


def soup(**options):
    table = Table(ROWS, HEADER, "Of five seeds. $W_Q$", **options)
    return BeautifulSoup(table._repr_html_(), "html.parser")


def test_columns_and_rows_have_headers_and_the_caption_its_maths():
    page = soup()
    assert [th.text for th in page.select("thead th[scope=col]")] == [
        "layer", "weights", "right, %", "gain, xi",
    ]  # fmt: skip
    assert [th.text for th in page.select("tbody th[scope=row]")] == ["one head", "two <heads>"]
    assert page.caption.text == "Of five seeds. WQ"


def test_an_interval_stands_small_behind_its_mean_and_what_was_not_run_in_words():
    first, second = soup().select("tbody tr")
    weights, right, gain = first.select("td")
    assert weights.text == "2,400"
    assert (right.text, right.small.text) == ("19.0 18.0 to 20.0", "18.0 to 20.0")
    assert gain.em.text == "not run"
    assert [td.text.strip() for td in second.select("td")] == ["2,400", "100.0", "−0.5"]
    assert second.small.text == ""  # so that numbers stand below each other
    assert soup(missing="has no map").em.text == "has no map"


@pytest.mark.parametrize(
    ("best", "of", "bold"),
    [
        ("max", "right, %", "100.0"),
        ("min", "right, %", "19.0"),
        ("one head", "right, %", "19.0"),
        ("max", None, "−0.5"),
    ],
)
def test_exactly_one_number_is_bold(best, of, bold):
    (strong,) = soup(best=best, of=of).select("strong")
    assert strong.text == bold
    assert soup().strong is None


def test_a_column_may_say_how_its_numbers_are_written():
    page = soup(formats={"right, %": "+.2f"})
    assert "+19.04 +18.00 to +20.00" in page.text


def test_without_html_the_table_is_lines_of_text(capsys):
    show_table(ROWS, header=HEADER, caption="Of five seeds.", best="max", of="right, %")
    caption, blank, head, first, second = capsys.readouterr().out.splitlines()
    assert (caption, blank) == ("Of five seeds.", "")
    assert head.index("weights") == first.index("2,400") == second.index("2,400")
    assert first.split() == ["one", "head", "2,400", "19.0", "18.0", "to", "20.0", "not", "run"]
    assert "100.0*" in second


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rows": []}, "rows must be one or more"),
        ({"rows": [["a"]]}, "of 4 cells"),
        ({"caption": " "}, "caption is empty"),
        ({"best": "most"}, "name of a row"),
        ({"best": "max", "of": "left"}, "column of='left'"),
        ({"best": "one head"}, "with a number"),
        ({"formats": {"left": ".1f"}}, "header lacks"),
    ],
)
def test_what_does_not_fit_is_said(changed, words):
    given = {"rows": ROWS, "header": HEADER, "caption": "Some."} | changed
    with pytest.raises(ValueError, match=words):
        show_table(**given)
