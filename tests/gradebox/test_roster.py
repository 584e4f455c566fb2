"""Who is who, and what lateness costs."""

from datetime import UTC, datetime, timedelta

import pytest
from gradebox.roster import LatePolicy, Student, read_late, read_roster
from gradebox.same_person import Matcher, person, read_table
from gradebox.sources import InputError

DUE = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def roster(tmp_path, text, **options):
    path = tmp_path / "class.csv"
    path.write_text(text, encoding="utf-8", **options)
    return path


def test_a_roster_has_numbers_names_addresses_and_extensions(tmp_path):
    text = "ID;Name;E-mail;Extension\n7;Åsa Öberg;asa@example.edu;2026-03-03\n8;Bo Li;;\n\n"
    asa, bo = read_roster(roster(tmp_path, text, newline="\r\n"))
    assert (asa.person.id, asa.person.name) == ("7", "Åsa Öberg")
    assert asa.extension.hour == 23
    assert asa.extension.tzinfo
    assert bo.extension is None
    assert ("email", "asa@example.edu") in asa.person.keys


@pytest.mark.parametrize(("column", "read"), [("id", "S 00123"), ("identifier", "00123")])
def test_only_of_moodles_identifier_the_number_alone_counts(tmp_path, column, read):
    (one,) = read_roster(roster(tmp_path, f"{column},name\nS 00123,Ann Lee\n"))
    assert one.person.id == read


def test_a_canvas_gradebook_is_a_roster_without_its_rows_of_points(tmp_path):
    path = roster(
        tmp_path,
        "Student,ID,SIS User ID,SIS Login ID,Section,HW 1 (5)\n    Points Possible,,,,,10\n"
        '"Doe, Jane",4711,U1,jdoe,A,\n"Student, Test",99,,,A,\n',
    )
    (jane,) = read_roster(path)
    assert {("id", "4711"), ("id", "u1"), ("id", "jdoe"), ("name", "jane doe")} <= jane.person.keys


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            ("4711",),
            ("jane@example.edu",),
            ("x", "Jane Doe"),
            ("x", "Doe, Jane"),
            ("x", "doejane"),
        ),
        *(("x", "JANE DOE"), ("Jane_Doe",), ("4711", "J. Doe"), ("4711", "Doe, Jane Maria")),
        *(("4711", "doemariajane"), ("4711", "4711"), (r"Jane\u00a0Doe", r"Jane\u00a0Doe")),
    ],
)
def test_a_student_is_found_by_number_address_or_name(wanted):
    people = [person("1", "Bob Ray"), person("4711", "Doe, Jané", "Jane@Example.edu")]
    assert Matcher(people).find(person(*wanted)) == 1


def test_nobody_is_guessed():
    people = [person("1", "Jane Doe"), person("2", "Jane Doe"), person("3", "Bob Ray")]
    # two have this name, another platform's number 1
    for one in (("9", "Jane Doe"), ("1", "Bob Ray"), ("9", "Nobody")):
        assert Matcher(people).find(person(*one)) is None


@pytest.mark.parametrize(
    ("after", "grace", "days", "lost"),
    [
        (-HOUR, 0, 0, 0),
        (HOUR, 0, 1, 10),
        (HOUR, 90, 0, 0),
        (25 * HOUR, 0, 2, 20),
        (timedelta(days=30), 0, 30, 50),
    ],
)
def test_each_day_that_began_costs_up_to_the_cap(after, grace, days, lost):
    policy = read_late("10 per day, at most 50", DUE.isoformat(), grace)
    assert policy.days(DUE + after, False, None) == days
    assert policy.lost(days) == lost


def test_minutes_that_are_forgiven_are_so_where_lateness_costs_nothing_too():
    policy = read_late(None, DUE.isoformat(), grace_minutes=15)
    days = [policy.days(DUE + timedelta(minutes=n), False, None) for n in (14, 16)]
    assert (days, policy.lost(1)) == ([0, 1], 0)


def test_an_extension_moves_the_due_date_and_an_unknown_time_counts_as_one_day():
    policy = LatePolicy(DUE, 10, 50)
    extended = Student(person("1"), extension=DUE + 48 * HOUR)
    assert [policy.days(DUE + n * HOUR, True, extended) for n in (47, 49)] == [0, 1]
    assert policy.days(None, True, None) == 1
    assert policy.days(None, True, extended) == 0  # the platform's mark knows no extension
    assert policy.days(None, False, None) == 0


@pytest.mark.parametrize(
    ("words", "percent"),
    [("10 per day", 10), ("10%/day", 10), ("10 % per day, at most 50 %", 10), ("5 a day", 5)],
)
def test_a_policy_is_written_in_words(words, percent):
    assert read_late(words, "2026-03-01").percent == percent


@pytest.mark.parametrize("above", ["\n\n", "sep=;\r\n", '\n"SEP=;"\n', ";;\r\n \r\n", "sep=;\n;\n"])
def test_what_spreadsheets_write_above_a_header_is_no_header(tmp_path, above):
    """Nor is it lost, and the lines are counted with it."""
    path = roster(tmp_path, f"{above}id;name,first;x\n7;Ann,A;\n", newline="")
    table = read_table(path, "roster")
    assert (table.header, table.rows) == (["id", "name,first", "x"], [["7", "Ann,A", ""]])
    assert table.encode().split() == path.read_bytes().split()
    path = roster(tmp_path, f"{above}id;name\n7;Ann\n7;Bob\n", newline="")
    first = len(above.splitlines()) + 2
    with pytest.raises(InputError, match=f"lines {first} and {first + 1} are both '7'"):
        read_roster(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("colour,shape\nred,round\n", "names no student"),
        ("id,name\n7,Ann\n7,Bob\n", "lines 2 and 3 are both '7'"),
        ("id,extension\n7,soon\n", "line 2: extension is written like"),
        ('id,name\n7,"Ann\n8,Bob\n', "is no CSV file: unexpected end of data"),  # Bob was lost
        ('id,name\n7,"Ann\n8,Bob\n9,"Cy\n', "is no CSV file: ',' expected"),
        ("id,name\n1,Caf\xe9\n", "save the roster as CSV"),
        (None, "there is no roster"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, says):
    if text is not None:
        (tmp_path / "class.csv").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=says):
        read_roster(tmp_path / "class.csv")


@pytest.mark.parametrize(
    ("words", "due", "says"),
    [
        ("much", "2026-03-01", "--late is written like"),
        ("200 per day", "2026-03-01", "at most 100"),
        ("10 per day", "tomorrow", "--due is written like 2026-03-01"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused(words, due, says):
    with pytest.raises(InputError, match=says):
        read_late(words, due)
