"""Marks in the instructor's own gradebook. The gradebooks are synthetic, written after the columns
that Canvas and Moodle document; no export of a real course was at hand."""

import csv
import io

import pytest
from classroom import fake_marker, make_package, notebook
from gradebox.exports import fill, read_gradebook
from gradebox.grades import Attempt, Grade
from gradebox.people import person
from gradebox.result import QuestionResult, Result
from gradebox.sources import InputError

from gradebox import cli

CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Homework 1 (815),Homework 2 (816),Score\r\n"
    ",,,,,Manual Posting,,\r\n"
    "    Points Possible,,,,,30.00,10.00,(read only)\r\n"
    '"Ray, Bob",12,U12,bray,"A, early",,7.5,80\r\n'
    '"Doe, Jane",11,U11,jdoe,A,12,,\r\n'
    '"Lee, Ann",13,U13,alee,A,,9,\r\n'
    '"Student, Test",99,,,A,,,\r\n'
)
MOODLE = (
    "Identifier;Full name;Email address;Status;Grade;Maximum Grade;Grade can be changed;"
    "Last modified (submission);Feedback comments\n"
    'Participant 501;Bob Ray;bob@example.edu;"Submitted for grading";;30,00;Yes;x;"keep; this"\n'
    "Participant 502;Jane Doe;jane@example.edu;Submitted;;30,00;No;x;\n"
    "Participant 503;Ann Lee;ann@example.edu;No submission;;30,00;Yes;-;\n"
)


def given(id, points, name="", email=""):
    question = QuestionResult("q1", "Task", points, 30.0)
    result = Result("a", "v", "ok", points, 30.0, questions=[question])
    attempt = Attempt(None, "key", result)
    return Grade(person(id, name, email), (attempt,), attempt)


def write(tmp_path, text):
    path = tmp_path / "book.csv"
    path.write_bytes(text.encode())
    return path


def cells(data, delimiter=","):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig")), delimiter=delimiter))


def test_only_one_column_of_a_canvas_gradebook_changes(tmp_path):
    book = read_gradebook(write(tmp_path, CANVAS), "Homework 1", 30.0, False)
    grades = [
        given("11", 21.5),
        given("bray", 30.0),
        given("77", 3.0),
        Grade(person("13"), (), None),
    ]
    filled = fill(book, grades)
    before, after = cells(CANVAS.encode()), cells(filled.data)
    changed = [
        (y, x) for y, row in enumerate(before) for x, cell in enumerate(row) if after[y][x] != cell
    ]
    assert changed == [(3, 5), (4, 5)]
    assert [len(row) for row in before] == [len(r) for r in after]
    assert (after[3][5], after[4][5]) == ("30", "21.5")
    assert filled.data.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in filled.data
    assert (filled.cells, filled.changed, filled.unmatched, filled.left) == (
        2,
        ["11"],
        ["77"],
        ["13"],
    )


@pytest.mark.parametrize(("spelled", "mark"), [("Bob", "2"), ("BOB", "")])
def test_of_two_in_one_row_who_is_spelled_so_has_it_and_the_other_is_named(tmp_path, spelled, mark):
    """The last one had it, and nobody heard."""
    text = CANVAS.replace('"Ray, Bob",12,', '"Ray, Bob",Bob,')
    book = read_gradebook(write(tmp_path, text), "Homework 1", 30.0, False)
    filled = fill(book, [given(spelled, 2), given("bob", 30)])
    assert cells(filled.data)[3][5] == mark
    assert "bob (several are found in one row)" in filled.unmatched


def test_a_moodle_worksheet_keeps_its_commas_and_its_locked_rows(tmp_path):
    book = read_gradebook(write(tmp_path, MOODLE), None, 30.0, False)
    filled = fill(book, [given("501", 21.5), given("x", 9.0, email="jane@example.edu")])
    after = cells(filled.data, ";")
    assert after[1][4] == "21,5"
    assert after[2][4] == ""
    assert after[1][-1] == "keep; this"
    assert filled.unmatched == ["x (locked in the gradebook)"]
    assert filled.left == ["502", "503"]


def test_other_points_are_converted_only_when_asked(tmp_path):
    path = write(tmp_path, CANVAS)
    with pytest.raises(InputError, match="has 10 points and the assignment 30"):
        read_gradebook(path, "Homework 2 (816)", 30.0, False)
    filled = fill(read_gradebook(path, "Homework 2", 30.0, True), [given("12", 15.0)])
    assert cells(filled.data)[3][6] == "5"


GERMAN = (
    MOODLE.replace("Participant ", "Teilnehmer/in")
    .replace("Maximum Grade;Grade can be changed", "Bestwertung;Bewertung kann geändert werden")
    .replace(";No;", ";Nein;")
)


ALL_GERMAN = GERMAN.replace(";Grade;", ";Bewertung;")


@pytest.mark.parametrize("text", [GERMAN, ALL_GERMAN, "Name;Points\n"])
@pytest.mark.parametrize("column", [None, "Grade", "Points"])
def test_a_gradebook_of_which_the_columns_are_unknown_is_refused(tmp_path, text, column):
    """It was filled in rows that are locked."""
    with pytest.raises(InputError, match="nor a worksheet of Moodle in English"):
        read_gradebook(write(tmp_path, text), column, 30.0, False)


@pytest.mark.parametrize("number", ["Participant 501", "Participant501", "Teilnehmer/in501"])
@pytest.mark.parametrize(
    ("before", "after", "changed", "unmatched"),
    [
        ("", "21,5", [], []),
        ("-", "21,5", [], []),
        ("21.50", "21,5", [], []),
        ("12", "21,5", ["501"], []),
        ("EX", "EX", [], ["501 (excused in the gradebook)"]),
    ],
)
def test_what_stood_in_the_cell_is_understood(tmp_path, number, before, after, changed, unmatched):
    text = MOODLE.replace("Participant 501", number).replace('grading";;', f'grading";{before};')
    filled = fill(read_gradebook(write(tmp_path, text), None, 30.0, False), [given("501", 21.5)])
    assert cells(filled.data, ";")[1][4] == after
    assert (filled.changed, filled.unmatched) == (changed, unmatched)


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        (CANVAS, None, "name the column with --column; it has 'Student'"),
        (CANVAS, "Homework 3", "has no column 'Homework 3'"),
        (CANVAS.replace("Homework 2", "Homework 1"), "Homework 1", "has several columns"),
        ("", "x", "is empty"),
    ],
)
def test_a_gradebook_without_the_column_is_refused(tmp_path, text, column, says):
    with pytest.raises(InputError, match=says):
        read_gradebook(write(tmp_path, text), column, 30.0, False)


def test_the_command_writes_a_copy_and_leaves_the_file_alone(tmp_path, capsys):
    make_package(tmp_path / "package.zip")
    (tmp_path / "in").mkdir()
    for name in ("doejane_11_900", "raybob_LATE_12_901"):
        (tmp_path / "in" / f"{name}_answer.ipynb").write_bytes(notebook())
    path = write(tmp_path, CANVAS.replace("30.00", "35.00"))
    command = [str(tmp_path / "in"), "--assignment", str(tmp_path / "package.zip")]
    command += ["--out", str(tmp_path / "out")]
    assert cli.main(command, marker=fake_marker) == 0
    sheet = tmp_path / "out/manual.csv"
    sheet.write_text(sheet.read_text("utf-8-sig").replace(",q3,5,,", ",q3,5,5,"), "utf-8")
    more = ["--fill", str(path), "--column", "Homework 1", "--roster", str(path)]
    more += ["--due", "2026-03-01", "--late", "20 per day"]
    assert cli.main([*command, *more], marker=fake_marker) == 0
    assert path.read_bytes() == CANVAS.replace("30.00", "35.00").encode()
    after = cells((tmp_path / "out/book.csv").read_bytes())
    assert (after[4][5], after[3][5]) == ("35", "28")  # Bob's is marked late by Canvas: one day
    said = capsys.readouterr().out
    assert "2 marks written" in said
    assert "no final mark; their cell is as it was: 13" in said
