"""Marks in the instructor's own gradebook. The gradebooks are synthetic, written after the columns
that Canvas and Moodle document; no export of a real course was at hand."""

import csv
import io

import pytest
from classroom import grade, make_package, mark_by_hand, notebook
from gradebox.exports import fill, read_gradebook
from gradebox.grades import Attempt, Grade
from gradebox.result import QuestionResult, Result
from gradebox.same_person import person
from gradebox.sources import InputError

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


def filled(tmp_path, text, column, grades, convert=False):
    """What comes of a gradebook, and its cells."""
    book = read_gradebook(write(tmp_path, text), column, 30.0, convert)
    found = fill(book, grades)
    return found, cells(found.data, ";" if text.startswith("Identifier") else ",")


def test_only_one_column_of_a_canvas_gradebook_changes(tmp_path):
    grades = [given("11", 21.5), given("bray", 0.0), given("77", 3.0)]
    nothing = Grade(person("13"), (), None)
    found, after = filled(tmp_path, CANVAS, "Homework 1", [*grades, nothing])
    wanted = cells(CANVAS.encode())
    wanted[3][5], wanted[4][5] = "0", "21.5"
    assert after == wanted
    assert found.data.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in found.data
    told = (found.cells, found.changed, found.unmatched, found.left)
    assert told == (2, ["11"], ["77"], ["13"])


@pytest.mark.parametrize(("spelled", "mark"), [("Bob", "2"), ("BOB", "")])
def test_of_two_in_one_row_who_is_spelled_so_has_it_and_the_other_is_named(tmp_path, spelled, mark):
    """The last one had it, and nobody heard."""
    text = CANVAS.replace('"Ray, Bob",12,', '"Ray, Bob",Bob,')
    two = [given(spelled, 2), given("bob", 30)]
    found, after = filled(tmp_path, text, "Homework 1", two)
    assert after[3][5] == mark
    assert "bob (several are found in one row)" in found.unmatched


def test_a_moodle_worksheet_keeps_its_commas_and_its_locked_rows(tmp_path):
    grades = [given("501", 21.25), given("x", 9.0, email="jane@example.edu")]
    found, after = filled(tmp_path, MOODLE, None, grades)
    assert (after[1][4], after[2][4], after[1][-1]) == ("21,25", "", "keep; this")
    assert found.unmatched == ["x (locked in the gradebook)"]
    assert found.left == ["502", "503"]


def test_other_points_are_converted_only_when_asked(tmp_path):
    with pytest.raises(InputError, match="has 10 points and the assignment 30"):
        filled(tmp_path, CANVAS, "Homework 2 (816)", [])
    _, after = filled(tmp_path, CANVAS, "Homework 2", [given("12", 16.0)], convert=True)
    assert after[3][6] == "5.33"


GERMAN = (
    MOODLE.replace("Participant ", "Teilnehmer/in")
    .replace("Maximum Grade;Grade can be changed", "Bestwertung;Bewertung kann geändert werden")
    .replace(";No;", ";Nein;")
)


@pytest.mark.parametrize(
    "text", [GERMAN, GERMAN.replace(";Grade;", ";Bewertung;"), "Name;Points\n"]
)
@pytest.mark.parametrize("column", [None, "Grade", "Points"])
def test_a_gradebook_of_which_the_columns_are_unknown_is_refused(tmp_path, text, column):
    """It was filled in rows that are locked."""
    with pytest.raises(InputError, match="nor a worksheet of Moodle in English"):
        filled(tmp_path, text, column, [])


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
    found, rows = filled(tmp_path, text, None, [given("501", 21.5)])
    assert (rows[1][4], found.changed, found.unmatched) == (after, changed, unmatched)


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
        filled(tmp_path, text, column, [])


def test_the_command_writes_a_copy_and_leaves_the_file_alone(tmp_path, capsys):
    make_package(tmp_path / "package.zip")
    (tmp_path / "in").mkdir()
    for name in ("doejane_11_900", "raybob_LATE_12_901"):
        (tmp_path / "in" / f"{name}_answer.ipynb").write_bytes(notebook())
    text = CANVAS.replace("30.00", "35.00")
    path = write(tmp_path, text)
    assert grade(tmp_path) == 0
    mark_by_hand(tmp_path)
    more = ["--fill", path, "--column", "Homework 1", "--roster", path, "--due", "2026-03-01"]
    assert grade(tmp_path, *more, "--late", "20 per day") == 0
    assert path.read_bytes() == text.encode()
    after = cells((tmp_path / "out/book.csv").read_bytes())
    assert (after[4][5], after[3][5]) == ("35", "28")  # Bob's is marked late by Canvas: one day
    said = capsys.readouterr().out
    assert "2 marks written" in said
    assert "no final mark; their cell is as it was: 13" in said
