"""Questions that a person marks: the sheet, and the totals that follow from it."""

import csv
import hashlib
import re
import time
from dataclasses import replace

import pytest
from classroom import grade, make_package, notebook, rows
from gradebox.grades import Attempt, ByHand, Grade, without_formulas
from gradebox.manual import Sheet, apply, cells
from gradebox.result import QuestionResult, Result
from gradebox.same_person import Table, person, read_table
from gradebox.sources import InputError


@pytest.fixture
def room(tmp_path):
    make_package(tmp_path / "package.zip")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ada.ipynb").write_bytes(notebook(q3='Because\nof softmax; it "sums" to 1.'))
    (tmp_path / "in/bob.ipynb").write_bytes(notebook(q3="No idea"))
    return tmp_path


def sheet_of(room):
    return read_table(room / "out/manual.csv", "sheet")


def answer_of(room, student):
    """What the sheet shows of a student's answer."""
    sheet = sheet_of(room)
    (shown,) = (sheet.cell(r, "answer") for r in sheet.rows if sheet.cell(r, "student") == student)
    return shown


def points_of(room):
    return {id: row["q3"] for id, row in rows(room).items()}


def write(room, change, **options):
    table = sheet_of(room)
    lines = [dict(zip(table.header, row, strict=False)) for row in table.rows]
    for line in lines:
        change(line)
    header = [*table.header, *[key for key in lines[0] if key not in table.header]]
    with open(room / "out/manual.csv", "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, header, **options)
        writer.writeheader()
        writer.writerows(lines)


def test_points_by_hand_go_into_the_total_and_the_page(room):
    assert grade(room) == 0
    sheet = (room / "out/manual.csv").read_text("utf-8-sig")
    assert "5: says why; 2: says what" in sheet
    assert "Because\nof softmax" in sheet
    assert rows(room)["ada"]["total"] == ""
    assert "open: q3" in rows(room)["ada"]["notes"]

    def give(line):
        if line["student"] == "ada":
            line |= {"points": "4,5", "comment": "Good <b>reason</b>", "my notes": "check"}

    write(room, give, delimiter=";", restval="")
    assert grade(room) == 0
    assert [rows(room)[name]["total"] for name in ("ada", "bob")] == ["34.5", ""]
    page = (room / "out/feedback/ada.html").read_text()
    for words in ("4.5 of 5 points", "Good &lt;b&gt;reason", "Marked by hand."):
        assert words in page
    assert "not marked yet" in (room / "out/feedback/bob.html").read_text()


def test_what_was_typed_survives_and_another_answer_waits_anew(room):
    assert grade(room) == 0
    write(room, lambda line: line.update({"points": "3", "mine": "x"}), delimiter=";")
    before = (room / "out/manual.csv").read_bytes()
    assert grade(room) == 0
    assert (room / "out/manual.csv").read_bytes() == before
    (room / "in/bob.ipynb").write_bytes(notebook(q3="Now I know"))
    assert grade(room) == 0
    table = sheet_of(room)
    assert (table.delimiter, table.header[-1], len(table.rows)) == (";", "mine", 3)
    assert [rows(room)[name]["total"] for name in ("ada", "bob")] == ["33", ""]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"points": "many"}, "points must be a number, got 'many'"),
        ({"points": "6"}, "q3 has at most 5 points, got 6"),
        ({"points": "-1"}, "q3 has at most 5 points"),
        ({"points": "nan"}, "at most 5 points"),
        ({"points": "0_4"}, "points must be a number, got '0_4'"),
        ({"points": "1", "question": "q9"}, "no question 'q9'"),
        (None, "has lost its column"),
    ],
)
def test_points_that_cannot_be_are_refused_with_their_line(room, capsys, change, says):
    assert grade(room) == 0
    grades = (room / "out/grades.csv").read_bytes()
    if change:
        write(room, lambda line: line.update(change))
    else:
        (room / "out/manual.csv").write_text("student,points\nada,3\n")
    assert grade(room) == 2
    said = capsys.readouterr().err
    assert says in said
    assert not change or "manual.csv, line 2" in said
    assert (room / "out/grades.csv").read_bytes() == grades


def as_a_spreadsheet_saves(cell):
    """What looks like a number becomes one: 00123 is 123, 90e3001674 something else."""
    try:
        return f"{float(cell):.5G}" if cell.strip() else cell
    except ValueError:
        return cell


def like_a_number():
    """An answer whose digest begins as 90e3001674 does."""
    for n in range(100_000):
        if re.fullmatch(r"\d+e\d+", hashlib.sha256(f"answer {n}".encode()).hexdigest()[:10]):
            return f"answer {n}"


def give(points, saved=True):
    """Types the points of each student, and saves the sheet as a spreadsheet does."""

    def change(line):
        line["points"] = points[line["student"]]
        if saved:
            line.update({name: as_a_spreadsheet_saves(cell) for name, cell in line.items()})

    return change


def test_no_mark_is_lost_in_a_spreadsheet(room):
    for name in ("00123", "1e5"):
        (room / f"in/{name}.ipynb").write_bytes(notebook(q3=like_a_number()))
    assert grade(room) == 0
    points = {"00123": "4", "1e5": "3", "ada": "2", "bob": "1"}
    write(room, give(points))
    assert grade(room) == 0
    assert points_of(room) == points


MOVED = [["id"], ["student"], ["name"], ["student", "name"], ["answer", "points"]]


@pytest.mark.parametrize("columns", MOVED, ids=" ".join)
@pytest.mark.parametrize("saved", [True, False])
def test_columns_that_were_sorted_without_the_others_are_refused(room, capsys, columns, saved):
    """Also where a spreadsheet has made numbers of some cells; that alone is no reason."""
    for name in ("ada", "bob"):
        (room / f"in/{name}.ipynb").unlink()
    points = {"00123": "4", "4711815": "3", "4901816": "2"}
    for n, id in enumerate(points):
        folder = room / f"in/Ann {chr(65 + n)}_{id}_assignsubmission_file_"
        folder.mkdir()
        (folder / "a.ipynb").write_bytes(notebook(q3=f"Because of {n}."))
    assert grade(room) == 0
    write(room, give(points, saved))
    assert grade(room) == 0
    assert points_of(room) == points
    table = sheet_of(room)
    at = [table.column(name) for name in columns]
    turned = [list(row) for row in table.rows]
    for row, other in zip(turned, [*table.rows[1:], table.rows[0]], strict=True):
        for one in at:
            row[one] = other[one]
    (room / "out/manual.csv").write_bytes(replace(table, rows=turned).encode())
    assert grade(room) == 2
    said = capsys.readouterr().err
    assert re.search(r"manual.csv, line \d: its (student|name|answer) is .*, and its id that", said)
    assert points_of(room) == points


def test_marks_of_one_students_answers_that_changed_places_are_refused():
    answers = [
        QuestionResult(f"q{n}", "Task", None, 5.0, "manual", manual=True, answer=f"Because of {n}")
        for n in (1, 2)
    ]
    attempt = Attempt(None, "key", Result("a", "v", "ok", 0.0, 10.0, questions=answers))
    grade = Grade(person("7", "Ann"), (attempt,), attempt)
    one, two = (cells(grade, answer) for answer in answers)
    header = [*one, "points", "comment"]
    for first, second, fits in ((one, two, True), (two, one, False)):
        rows = [
            [*({**given, "id": other["id"], "points": "1", "comment": ""}.values())]
            for given, other in ((one, first), (two, second))
        ]
        marks = {row[header.index("id")]: (n, ByHand(1.0)) for n, row in enumerate(rows, 2)}
        sheet = Sheet(Table(header, rows, ",", False, "\n"), marks)
        if fits:
            assert set(apply([grade], sheet)[0].by_hand) == {"q1", "q2"}
        else:
            with pytest.raises(InputError, match='line 2: its question is "q1", and its id that'):
                apply([grade], sheet)


LEFT_OVER = {
    "an id that was changed": ({"id": "9.00E+09"}, 'line 2 ("ada", q3: no such answer counts)'),
    "an id that was lost": ({"id": ""}, 'line 2 ("ada", q3: no such answer counts)'),
    "a question of the grader's": ({"question": "q2", "id": "x"}, "q2: the grader marks it)"),
}


@pytest.mark.parametrize(("change", "says"), LEFT_OVER.values(), ids=LEFT_OVER)
def test_typed_marks_that_fit_nobody_are_named(room, capsys, change, says):
    assert grade(room) == 0
    assert "count for nobody" not in capsys.readouterr().out
    mine = {"points": "3", **change}
    write(room, lambda line: line.update(mine if line["student"] == "ada" else {}))
    assert grade(room) == 0
    said = capsys.readouterr().out
    assert "points in manual.csv that count for nobody" in said
    assert says in said
    assert rows(room)["ada"]["q3"] == ""


def test_an_answer_with_two_marks_is_refused(room, capsys):
    assert grade(room) == 0
    write(room, lambda line: line.update(points="1"))
    table = sheet_of(room)
    again = list(table.rows[0])
    again[table.column("points")] = "2"
    (room / "out/manual.csv").write_bytes(replace(table, rows=[*table.rows, again]).encode())
    assert grade(room) == 2
    assert "line 4: the same answer has another mark in line 2" in capsys.readouterr().err


def test_nobody_has_to_mark_an_answer_that_is_not_there(room):
    (room / "in/eve.ipynb").write_bytes(notebook(q3=""))
    assert grade(room) == 0
    sheet = sheet_of(room)
    assert {sheet.cell(row, "student") for row in sheet.rows} == {"ada", "bob"}
    assert rows(room)["eve"]["total"] == "30"


def test_a_picture_in_an_answer_is_named(room):
    (room / "in/eve.ipynb").write_bytes(notebook(q3="See ![my drawing](attachment:image.png)"))
    assert grade(room) == 0
    file = answer_of(room, "eve").partition("is in ")[2].partition("]")[0]
    assert (room / "out" / file).read_bytes() == (room / "in/eve.ipynb").read_bytes()


@pytest.mark.parametrize("sign", list("=+-@＝＋－＠"))
def test_a_sign_of_any_width_begins_no_formula(sign):
    for before in ("", "a; ", "\t", "x\n", "a;;'"):
        assert without_formulas(f"{before}{sign}1+1") == f"{before}'{sign}1+1"
    assert without_formulas(f"1 {sign} 1") == f"1 {sign} 1"


@pytest.mark.parametrize("run", ["\t", ";", " ", "\t;'"])
def test_twenty_thousand_spaces_cost_no_more_than_letters(run):
    began = time.process_time()
    without_formulas(run * 20_000 + "=1")
    assert time.process_time() - began < 1


def test_no_line_of_an_answer_is_a_formula(room):
    """A spreadsheet that expects semicolons takes each line of an answer for a row of its own."""
    answer = 'It sums to 1.\n=HYPERLINK("x")\n  +1\n\t@x\n"-2"\na = b'
    (room / "in/eve.ipynb").write_bytes(notebook(q3=answer))
    assert grade(room) == 0
    safe = ["It sums to 1.", '\'=HYPERLINK("x")', "  '+1", "\t'@x", '"\'-2"', "a = b"]
    assert answer_of(room, "eve").splitlines() == safe
