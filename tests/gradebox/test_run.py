"""The command from end to end, with a marking that only looks at the text."""

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import (
    MUTANT,
    RIGHT,
    SECRET,
    STUB,
    fake_marker,
    make_package,
    notebook,
    roster_csv,
    write_class,
)
from gradebox.collect import Found
from gradebox.grades import MISSING, NOT_MARKED, STATUS, Attempt, decide, harmless
from gradebox.people import person
from gradebox.result import Result
from gradebox.roster import LatePolicy, Student
from gradebox.run import Marker

from gradebox import cli, run, store

HERE = Path(__file__).resolve().parent


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder with a package, an empty folder of submissions, and a log of what was marked."""
    make_package(tmp_path / "package.zip")
    (tmp_path / "in").mkdir()
    monkeypatch.setenv("GRADEBOX_FAKE_LOG", str(tmp_path / "log"))
    return tmp_path


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """How often the system was to forget what an earlier run looked at; here it is only counted,
    and whether it did is ``calls.done``."""

    class Calls(list):
        done = True

        def forget(self):
            self.append(1)
            return self.done

    calls = Calls()
    monkeypatch.setattr(run, "forget", calls.forget)
    return calls


def grade(room, *more, source="in", package="package.zip"):
    arguments = [str(room / source), "--assignment", str(room / package)]
    return cli.main([*arguments, "--out", str(room / "out"), *map(str, more)], marker=fake_marker)


def rows(room):
    with open(room / "out/grades.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def marked(room):
    return (room / "log").read_text().splitlines() if (room / "log").exists() else []


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "work" not in path.parts
    }


def test_a_hundred_students_of_all_kinds_get_what_they_earned(room, capsys):
    kinds = write_class(room / "in", 100)
    names = [*kinds, "absent"]
    roster = roster_csv(room / "class.csv", names)
    assert grade(room, "--jobs", 2, "--roster", roster) == 0
    found = rows(room)
    assert len(found) == 101
    assert found["absent"]["status"] == "missing"
    wanted = {"right": "30", "blank": "0", "mutant": "15", "copied": "30", "mixed": "20"}
    for name, kind in kinds.items():
        row = found[name]
        if kind in wanted:
            assert (row["status"], row["points"], row["total"]) == ("ok", wanted[kind], "")
        else:  # no points, not even 0
            status = {"broken": "unreadable", "other": "wrong-assignment"}[kind]
            assert (row["status"], row["points"], row["total"]) == (status, "", "")
    copies = sum(kind == "copied" for kind in kinds.values())
    assert len(marked(room)) == 100 - copies + 1  # equal notebooks are marked once
    assert len(list((room / "out/students").glob("*.json"))) == 101
    assert len(list((room / "out/feedback").glob("*.html"))) == 101
    said = capsys.readouterr().out
    assert "101 students" in said
    assert "answers without points by hand" in said


def test_started_again_it_marks_nothing_and_writes_the_same(room):
    write_class(room / "in", 21)
    assert grade(room) == 0
    first, calls = files(room / "out"), len(marked(room))
    assert grade(room, "--jobs", 3) == 0
    assert files(room / "out") == first
    assert len(marked(room)) == calls


def test_killed_in_the_middle_it_goes_on_where_it_was(room):
    write_class(room / "in", 40)
    assert (
        cli.main(
            [
                str(room / "in"),
                "--assignment",
                str(room / "package.zip"),
                "--out",
                str(room / "calm"),
            ],
            marker=fake_marker,
        )
        == 0
    )
    (room / "log").unlink()
    code = "import sys; from gradebox import cli; from classroom import fake_marker;"
    code += "sys.exit(cli.main(sys.argv[1:], marker=fake_marker))"
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "src/gradebox"), *sys.path])
    command = [sys.executable, "-c", code, str(room / "in"), "--jobs", "2"]
    command += ["--assignment", str(room / "package.zip"), "--out", str(room / "out")]
    environment = {**os.environ, "PYTHONPATH": path, "GRADEBOX_FAKE_SECONDS": "0.1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(marked(room)) < 10 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = marked(room)
    stored = {path.name.split("-")[0] for path in (room / "out/work/marks").glob("*.json")}
    assert 10 <= len(before) < 35
    assert len(stored) >= 8
    assert not (room / "out/grades.csv").exists()
    assert grade(room) == 0
    repeated = {line.split()[0] for line in marked(room)[len(before) :]} & stored
    assert not repeated
    assert files(room / "out") == files(room / "calm")


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_nobody_begins_a_phase_before_all_have_ended_the_last(room, monkeypatch, jobs):
    monkeypatch.setenv("GRADEBOX_FAKE_ORDER", str(room / "order"))
    monkeypatch.setenv("GRADEBOX_FAKE_SECONDS", "0.02")
    write_class(room / "in", 12)
    assert grade(room, "--jobs", jobs) == 0
    phases = [int(line.split()[1]) for line in (room / "order").read_text().splitlines()]
    assert phases == sorted(phases)
    assert len(phases) == 2 * 3 * len({line.split()[0] for line in marked(room)})


def interrupted(phase):
    """A marker that is stopped in the middle of a phase."""

    def stopping(options):
        fake, begun = fake_marker(options), []

        def go_on(path, questions, so_far):
            if (so_far["phase"] if so_far else 0) == phase:
                begun.append(path)
                if len(begun) > 5:
                    raise KeyboardInterrupt
            return fake.go_on(path, questions, so_far)

        return Marker(go_on, fake.phases)

    return stopping


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_stopped_in_any_phase_it_repeats_none_that_was_done(room, monkeypatch, phase):
    monkeypatch.setenv("GRADEBOX_FAKE_ORDER", str(room / "order"))
    write_class(room / "in", 12)
    arguments = [str(room / "in"), "--assignment", str(room / "package.zip")]
    arguments += ["--out", str(room / "out")]
    assert cli.main(arguments, marker=interrupted(phase)) == 130
    assert not (room / "out/grades.csv").exists()
    assert grade(room) == 0
    ended = [line for line in (room / "order").read_text().splitlines() if "ends" in line]
    assert len(ended) == len(set(ended)) == 3 * len({line.split()[2] for line in ended})
    assert not list((room / "out/work/begun").iterdir())
    first = files(room / "out")
    assert grade(room, "--again") == 0
    assert files(room / "out") == first


def test_shards_together_are_the_whole(room, capsys):
    write_class(room / "in", 20)
    for number in (1, 2, 3):
        assert grade(room, "--shard", f"{number}/3") == 0
        assert not (room / "out/grades.csv").exists()
    calls = marked(room)
    assert grade(room) == 0
    assert marked(room) == calls
    assert len(rows(room)) == 20
    assert "shard 3 of 3 is done" in capsys.readouterr().out


def test_one_question_is_marked_anew_with_a_mended_package(room):
    write_class(room / "in", 14)
    assert grade(room) == 0
    before, calls = rows(room), len(marked(room))
    make_package(room / "package.zip", edition=2)  # forgives what was wrong in q2
    assert grade(room, "--question", "q2") == 0
    after = rows(room)
    ours = marked(room)[calls:]
    assert {line.split()[1] for line in ours} == {"q2", "all"}  # "all": what had no marks before
    mutant = next(name for name, row in before.items() if row["q2"] == "10" and row["q1"] == "5")
    assert (after[mutant]["q1"], after[mutant]["q2"]) == ("5", "20")
    calls = len(marked(room))
    assert grade(room, "--question", "q2") == 0
    assert len(marked(room)) == calls
    about = json.loads((room / f"out/students/{mutant}.json").read_text())
    assert "marked anew: q2" in about["result"]["notes"]


def test_a_changed_limit_marks_anew_and_again_does_so_by_force(room):
    (room / "in/ada.ipynb").write_bytes(notebook())
    for more in ([], ["--seconds", "7"], ["--again"]):
        assert grade(room, *more) == 0
    assert len(marked(room)) == 3


@pytest.mark.parametrize(
    ("sandbox", "done", "started", "late"),
    [
        ("bubblewrap", True, False, False),
        ("bubblewrap", False, False, True),
        ("bubblewrap", False, True, False),
        ("landlock", True, False, True),
        ("landlock", True, True, True),
        ("unsafe", False, False, False),
    ],
)
def test_what_is_marked_later_cannot_see_what_was_looked_at_or_its_row_says_so(
    room, forgotten, monkeypatch, tmp_path, capsys, sandbox, done, started, late
):
    """A late notebook was paid for answers that earlier ones had told the file system."""

    def marker(options):
        return replace(fake_marker(options), sandbox=sandbox)

    arguments = [str(room / "in"), "--assignment", str(room / "package.zip")]
    arguments += ["--out", str(room / "out")]
    forgotten.done = done
    (room / "in/ada.ipynb").write_bytes(notebook())
    assert cli.main(arguments, marker=marker) == cli.main(arguments, marker=marker) == 0
    assert not forgotten  # the second marks nothing
    if started:  # anew, since then
        (tmp_path / "boot_id").write_text("another")
        monkeypatch.setattr(store, "BOOT_ID", tmp_path / "boot_id")
    (room / "in/late.ipynb").write_bytes(notebook(MUTANT))
    capsys.readouterr()
    assert cli.main(arguments, marker=marker) == 0
    assert len(forgotten) == (not started and sandbox != "unsafe")
    assert (run.TRACES in capsys.readouterr().out) is late
    assert [run.LATE in rows(room)[who]["notes"] for who in ("ada", "late")] == [False, late]


def test_another_way_to_compare_is_another_version_of_the_grader(tmp_path, monkeypatch):
    before = store.grader_version()
    copy = shutil.copytree(store.folder_of("vitcheck"), tmp_path / "vitcheck")
    monkeypatch.setattr(store, "folder_of", lambda name: copy)
    assert store.grader_version() == before
    for name, marks in (
        ("exercises/weighted_average", False),
        ("cases", True),
        ("twins", True),
        ("values", True),
    ):
        before = store.grader_version()
        with open(copy / f"{name}.py", "a") as file:
            file.write("# changed")
        assert (store.grader_version() != before) is marks


def test_no_two_students_share_a_file_on_any_disk():
    students = ["ada", "Ada", "ADA", "ada_", "ada ", "ada/", ".ada", "aux", "AUX", "aux.x"]
    students += ["İ", "i", "4711", "ada@example.edu", "x" * 60, "x" * 61, "x" * 62]
    names = [store.file_name(student).casefold() for student in students]
    assert len(set(names)) == len(names)
    assert {"ada", "4711", "ada@example.edu"} <= set(names)  # and most are as they were
    assert not {"aux", "aux.x"} & set(names)


@pytest.mark.parametrize("separator", ["-", "~"])
@pytest.mark.parametrize("digits", [8, 32, 64])
def test_nobody_can_take_the_name_of_anothers_page(room, separator, digits):
    """Whoever calls himself as another's file is called, whatever he computes."""
    twin = f"m_ller{separator}{hashlib.sha256('müller'.encode()).hexdigest()[:digits]}"
    assert store.file_name("müller") != store.file_name(twin)
    for name in ("müller", twin):
        (room / "in" / f"{name}.ipynb").write_bytes(notebook(q3=name))
    assert grade(room) == 0
    for folder in ("feedback", "students"):
        assert len(list((room / "out" / folder).iterdir())) == len(rows(room)) == 2


def test_no_two_rows_have_one_id():
    handed_in = [("7", "Bob Ray"), ("7 (Bob Ray)", "me"), ("7 (Bob Ray) (me)", "me")]
    attempts = [Attempt(Found(id, lambda: b"", name), "", None) for id, name in handed_in]
    roster = [Student(person("7", "Ada Li")), Student(person("7 (Bob Ray)", "Cy Wu"))]
    ids = [grade.person.id for grade in decide(attempts, roster, LatePolicy(), "last")]
    assert len(set(ids)) == len(ids) == 5


def test_what_the_machine_cannot_do_is_tried_again_next_time(room, capsys):
    (room / "in/ada.ipynb").write_bytes(notebook(q1="# machine fails"))
    (room / "in/bob.ipynb").write_bytes(notebook())
    assert grade(room) == 1
    assert "no space left on device" in capsys.readouterr().out
    found = rows(room)
    assert found["ada"]["status"] == "not-marked"
    assert found["ada"]["total"] == ""
    assert found["bob"]["points"] == "30"
    assert grade(room) == 1
    assert len(marked(room)) == 3


def test_last_or_best_of_several_attempts_counts(room):
    (room / "in/ada").mkdir()
    (room / "in/bob.ipynb").write_bytes(notebook())
    good, bad = notebook(q1=RIGHT, q2=RIGHT), notebook(q1=MUTANT, q2=MUTANT)
    for name, data in (("1.ipynb", bad), ("2.ipynb", good), ("3.ipynb", bad)):
        (room / "in/ada" / name).write_bytes(data)
    assert grade(room) == 0
    assert (rows(room)["ada"]["attempt"], rows(room)["ada"]["points"]) == ("3", "15")
    assert grade(room, "--keep", "best") == 0
    assert (rows(room)["ada"]["attempt"], rows(room)["ada"]["points"]) == ("2", "30")


def attempt(number, status, points):
    """The attempt of this number; what is no status is a problem with the file."""
    about = {"assignment": "a", "variant": "v", "possible": 30, "detail": "so it is"}
    result = Result(status=status, points=points, **about) if status in STATUS else None
    result = None if status == NOT_MARKED else result
    problem = "" if status in STATUS else "so it is"
    return Attempt(Found("ada", lambda: b"", attempt=number), "key", result, problem)


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("status", [*(one for one in STATUS if one != MISSING), "broken"])
def test_an_attempt_that_cannot_be_marked_takes_nothing_from_an_earlier_one(status, keep):
    early, late = attempt(1, "ok", 15), attempt(2, status, 20)
    [grade] = decide([early, late], None, LatePolicy(), keep)
    counts = status == "ok" or (status == NOT_MARKED and keep == "last")
    assert grade.chosen is (late if counts else early)
    assert ("attempt 2: so it is" in grade.notes) is (status not in {"ok", NOT_MARKED})
    [grade] = decide([late], None, LatePolicy(), keep)
    assert grade.chosen is late


BLANK = notebook(STUB.format(n=1), STUB.format(n=2), "")
UNCHANGED = "no points: the questions' cells are as they were handed out"
NOTHING = "# Question {n}\nanswer{n} = None\n"
ZERO = {
    "nothing was changed": (
        {"a2.ipynb": BLANK},
        "no points: the questions' cells are as they were handed out",
    ),
    "half of it": (
        {"a2.ipynb": notebook(NOTHING.format(n=1), STUB.format(n=2), "")},
        "no points (wrong: q1, as handed out: q2, no answer: q3)",
    ),
    "to be read": (
        {"a2.ipynb": notebook(STUB.format(n=1), STUB.format(n=2))},
        "no points yet (as handed out: q1, q2)",
    ),
    "a blank after answers": (
        {"a2.ipynb": notebook(), "a2 (1).ipynb": BLANK},
        'last of 2 attempts, in the order of their names: "a2 (1).ipynb" counts; attempt 1, '
        f'"a2.ipynb", has more points: 30, not 0; {UNCHANGED}',
    ),
    "an archive that cannot be read": (
        {"a2.ipynb": BLANK, "a2 (1).zip": b"PK"},
        '"a2.ipynb" counts; attempt 2: broken, or no zip file',
    ),
    "a blank after words": (
        {"a2.ipynb": notebook(STUB.format(n=1), STUB.format(n=2)), "a2 (1).ipynb": BLANK},
        'attempt 1, "a2.ipynb", has answers to 1 questions, not to 0',
    ),
}


@pytest.mark.parametrize(("files", "why"), ZERO.values(), ids=ZERO)
def test_no_points_have_a_reason_in_words(room, files, why):
    (room / "in/ada").mkdir()
    (room / "in/bob.ipynb").write_bytes(notebook())
    for name, data in files.items():
        (room / "in/ada" / name).write_bytes(data)
    assert grade(room) == 0
    row = rows(room)["ada"]
    assert (row["points"], row["status"]) == ("0", "ok")
    assert why in row["notes"]
    page = (room / "out/feedback/ada.html").read_text()
    assert "<p>No points" in page
    for words in ("has more points: 30", "has answers to 1", "attempt 2: broken"):
        assert (words in page.replace("Attempt", "attempt")) is (words in why)
    assert "The cell of this question is as it was handed out." in page


def test_lateness_costs_what_was_said_and_an_extension_nothing(room):
    for name in ("ada", "bob", "cy"):
        (room / "in" / f"{name}.ipynb").write_bytes(notebook(q3=name))
    roster = room / "class.csv"
    roster.write_text(
        "id,extension,submitted\nada,,2026-03-01T23:00Z\nbob,,2026-03-04T12:00Z\n"
        "cy,2026-03-05T00:00Z,2026-03-04T12:00Z\n"
    )
    sheet = room / "out/manual.csv"
    assert grade(room) == 0
    sheet.write_text(sheet.read_text("utf-8-sig").replace(",q3,5,,", ",q3,5,5,"), "utf-8")
    late = ["--due", "2026-03-02T00:00Z", "--late", "10 per day, at most 25", "--roster", roster]
    assert grade(room, *late) == 0
    found = rows(room)
    assert [found[name]["total"] for name in ("ada", "bob", "cy")] == ["35", "26.25", "35"]
    assert [found[name]["days late"] for name in ("ada", "bob", "cy")] == ["", "3", ""]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--shard", "0/4"], "--shard is written I/N"),
        (["--shard", "5/4"], "--shard is written I/N"),
        (["--shard", "1/2", "--fill", "book.csv"], "leave --shard out"),
        (["--question", "q9"], "there is no question 'q9'"),
        (["--roster", "nowhere.csv"], "there is no roster"),
        (["--late", "10 per day"], "--late needs --due"),
        (["--late", "a lot", "--due", "2026-03-01"], "--late is written like"),
        (["--fill", "nowhere.csv"], "there is no gradebook"),
        (["--seconds", "-1"], "must be greater than 0"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_nothing_is_written(room, capsys, more, says):
    (room / "in/ada.ipynb").write_bytes(notebook())
    assert grade(room, *more) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert not (room / "out").exists()
    assert not marked(room)


@pytest.mark.parametrize(
    ("source", "package", "says"),
    [
        ("nowhere", "package.zip", "there is no folder or zip file"),
        ("in", "nowhere.zip", "there is no package"),
        ("in", "in", "there is no package"),
        ("in", "class.csv", "is no package of `make assignment`"),
        ("empty", "package.zip", "holds no submissions"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_nothing_is_written(room, capsys, source, package, says):
    (room / "in/ada.ipynb").write_bytes(notebook())
    (room / "empty").mkdir()
    roster_csv(room / "class.csv", ["ada"])
    assert grade(room, source=source, package=package) == 2
    assert says in capsys.readouterr().err
    assert not (room / "out").exists()


def test_results_among_the_submissions_are_refused(room, capsys):
    (room / "in/ada.ipynb").write_bytes(notebook())
    arguments = [str(room / "in"), "--assignment", str(room / "package.zip")]
    assert cli.main([*arguments, "--out", str(room / "in/out")], marker=fake_marker) == 2
    assert "lies inside the submissions" in capsys.readouterr().err


def test_a_stranger_with_the_number_of_another_does_not_take_that_place(room):
    for name, text in (("7", "ada"), ("Bob Ray_7_assignsubmission_file_x", "bob")):
        (room / "in" / f"{name}.ipynb").write_bytes(notebook(q3=text))
    (room / "class.csv").write_text("id,name\n7,Ada Li\n9,Bob Ray\n")
    assert grade(room, "--roster", room / "class.csv", "--platform", "moodle") == 0
    found = rows(room)
    assert found["7"]["status"] == "missing"
    assert found["9"]["status"] == "missing"
    assert found["7 (Bob Ray)"]["notes"].startswith("not in the roster")


CONTRADICT = {
    "the number of another": ("José Pérez_3005", "3005,Anna Schmidt"),
    "and a first name in common": ("Anna Weber_3005", "3005,Anna Schmidt"),
    "two names for a number": ("Ann Lee_3005", "3005,Bob Ray\n3006,Ann Lee"),
    "all words of another's name": ("Anna Schmidt_3005", "3005,Anna Maria Schmidt"),
    "the same letters, other words": ("Lee Ann E_4000", "3005,Anne Lee"),
    "the same words, the other way round": ("James Thomas_4000", "3005,Thomas James"),
    "a number of the same kind": ("Ann Lee_4000", "3005,Ann Lee\n3007,Cy Wu"),
}


@pytest.mark.parametrize(("handed_in", "roster"), CONTRADICT.values(), ids=CONTRADICT)
def test_a_name_and_a_number_that_contradict_each_other_wait_for_a_person(
    room, capsys, handed_in, roster
):
    for who in (handed_in, *(["Cy Wu_3007"] if "3007" in roster else [])):
        moodle = room / "in" / f"{who}_assignsubmission_file_"
        moodle.mkdir()
        (moodle / "x.ipynb").write_bytes(notebook())
    book = room / "book.csv"
    header = "Identifier,Full name,Grade,Maximum Grade,Grade can be changed"
    book.write_text("\n".join([header, *(f"{line},,35" for line in roster.splitlines())]))
    assert grade(room, "--roster", book) == 0
    sheet = room / "out/manual.csv"
    sheet.write_text(sheet.read_text("utf-8-sig").replace(",q3,5,,", ",q3,5,5,"), "utf-8")
    assert grade(room, "--roster", book, "--fill", book) == 0
    found = rows(room)
    listed = [line.partition(",")[0] for line in roster.splitlines()]
    assert {found[id]["status"] for id in listed if id != "3007"} == {"missing"}
    (stranger,) = (row for id, row in found.items() if id not in listed)
    assert (stranger["total"], "not in the roster" in stranger["notes"]) == ("35", True)
    if handed_in.endswith("3005"):
        assert "decide: its number is that of" in stranger["notes"]
        assert f'decide: is "{stranger["student"]}" the' in found["3005"]["notes"]
    filled = (room / "out/book.csv").read_text().replace("3007,Cy Wu,35", "3007,Cy Wu,")
    assert filled == book.read_text() + "\n"
    assert "have a mark and no row that takes it: " + stranger["student"] in capsys.readouterr().out


def test_a_table_holds_no_formula_of_a_student(room):
    (room / "in/=HYPERLINK(1).ipynb").write_bytes(notebook(q3="=1+1"))
    assert grade(room) == 0
    assert next(iter(rows(room))).startswith("'=")
    assert ",'=1+1," in (room / "out/manual.csv").read_text("utf-8-sig")


def test_a_student_can_be_forgotten(room, capsys):
    (room / "in/ada.ipynb").write_bytes(notebook())
    (room / "in/bob.ipynb").write_bytes(notebook())
    (room / "in/cy.ipynb").write_bytes(notebook(q1=MUTANT))
    assert grade(room) == 0
    out = ["--out", str(room / "out")]
    assert cli.main(["--forget", "ada", *out]) == 0  # bob handed in the same bytes
    assert len(list((room / "out/work/submissions").iterdir())) == 2
    assert cli.main(["--forget", "cy", *out]) == 0
    assert len(list((room / "out/work/submissions").iterdir())) == 1
    left = {path.stem for path in (room / "out/feedback").iterdir()}
    assert left == {"bob"}
    assert cli.main(["--forget", "zoe", *out]) == 2


def test_no_page_for_a_student_holds_a_hidden_test(room):
    write_class(room / "in", 14)
    assert grade(room) == 0
    assert any(SECRET in path.read_text() for path in (room / "out/students").iterdir())
    for path in (room / "out/feedback").iterdir():
        assert SECRET not in path.read_text(), path


def test_no_word_becomes_a_formula_where_cells_end_at_semicolons():
    for text in ("=1+1", "a; =1+1", 'stopped: "x": ;@SUM(A1)', "a;\t-1", "a ;'+1"):
        safe = harmless(text)
        assert all(not part.strip(' \t"').startswith(tuple("=+-@")) for part in safe.split(";"))
    assert harmless("open: q1; late by 1 day - one") == "open: q1; late by 1 day - one"


def test_two_people_with_one_name_do_not_share_a_row(room):
    """Who calls himself on the platform as another is called takes nobody's place."""
    for number, text in (("4711", "ada"), ("4712", "a stranger")):
        file = room / "in" / f"Ada Li_{number}_assignsubmission_file_" / "x.ipynb"
        file.parent.mkdir()
        file.write_bytes(notebook(q3=text))
    (room / "class.csv").write_text("id,name\nm-1,Ada Li\n")
    assert grade(room, "--roster", room / "class.csv", "--platform", "moodle") == 0
    found = rows(room)
    assert found["m-1"]["status"] == "missing"
    assert {"4711", "4712"} < set(found)
    assert "also called so" in found["4711"]["notes"]
    assert found["m-1"]["notes"] == ('decide: is "4711 (Ada Li)", "4712 (Ada Li)" the same person?')
    (room / "class.csv").write_text("id,name\n4711,Ada Li\n")
    assert grade(room, "--roster", room / "class.csv", "--platform", "moodle") == 0
    assert rows(room)["4711"]["status"] == "ok"
    assert "its name is that of Ada Li (4711), its number is not" in rows(room)["4712"]["notes"]


def test_of_two_in_the_roster_both_rows_ask_who_handed_in(room):
    (room / "in/Ada Li.ipynb").write_bytes(notebook())
    (room / "class.csv").write_text("id,name\n1,Ada Li\n2,Ada Li\n")
    assert grade(room, "--roster", room / "class.csv") == 0
    for id in "12":
        asked = 'decide: is "Ada Li (Ada Li)" the same person?'
        assert (rows(room)[id]["status"], rows(room)[id]["notes"]) == ("missing", asked)


@pytest.mark.parametrize(
    "names", [(" bob", "bob ", "bob"), ("zo\u00e9", "zoe\u0301"), ("=x", "'=x"), ("a  b", "a b")]
)
def test_rows_of_two_students_look_different(room, names):
    for name in names:
        (room / f"in/{name}.ipynb").write_bytes(notebook())
    assert grade(room) == 0
    assert len({unicodedata.normalize("NFC", id) for id in rows(room)}) == len(names)


@pytest.mark.parametrize("listed", ["ada", "Ada", "ADA"])
def test_who_is_spelled_as_in_the_roster_has_its_row_and_nobody_else(room, listed):
    """Who hands in as "ada" beside "Ada" made an attempt of hers, and the last one counts."""
    for name, text in (("ada", "a stranger's"), ("Ada", "her own")):
        (room / "in" / name).mkdir()
        (room / "in" / name / "x.ipynb").write_bytes(notebook(q3=text))
    (room / "class.csv").write_text(f"id,name\n{listed},Ada Li\n")
    assert grade(room, "--platform", "folder", "--roster", room / "class.csv") == 0
    found = rows(room)
    others = {"ada", "Ada"} - {listed}
    assert found[listed]["status"] == ("missing" if listed == "ADA" else "ok")
    assert "attempts" not in found[listed]["notes"]
    for one in others:
        assert "decide: one in the roster is also called so" in found[one]["notes"]
