"""The command from end to end, with a marking that only looks at the text."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from classroom import (
    MUTANT,
    RIGHT,
    SECRET,
    STUB,
    fake_marker,
    grade,
    make_package,
    mark_by_hand,
    notebook,
    roster_csv,
    rows,
    write_class,
)
from gradebox.collect import Found
from gradebox.grades import MISSING, NOT_MARKED, STATUS, Attempt, Grade, decide, harmless, rounded
from gradebox.result import QuestionResult, Result
from gradebox.roster import LatePolicy, Student
from gradebox.run import Marker
from gradebox.same_person import person

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
    roster = roster_csv(room / "class.csv", [*kinds, "absent"])
    assert grade(room, "--jobs", 2, "--roster", roster) == 0
    found = rows(room)
    assert len(found) == 101
    assert found["absent"]["status"] == "missing"
    wanted = {"right": "30", "blank": "0", "mutant": "15", "copied": "30", "mixed": "20"}
    refused = {"broken": "unreadable", "other": "wrong-assignment"}  # no points, not even 0
    for name, kind in kinds.items():
        row = found[name]
        status, points = refused.get(kind, "ok"), wanted.get(kind, "")
        assert (row["status"], row["points"], row["total"]) == (status, points, "")
    copies = sum(kind == "copied" for kind in kinds.values())
    assert len(marked(room)) == 100 - copies + 1  # equal notebooks are marked once
    students, pages = ([*(room / "out" / one).iterdir()] for one in ("students", "feedback"))
    assert len(students) == len(pages) == 101
    assert any(SECRET in path.read_text() for path in students)
    assert not any(SECRET in path.read_text() for path in pages)
    said = capsys.readouterr().out
    assert "101 students" in said
    assert "answers without points by hand" in said


def test_killed_in_the_middle_it_goes_on_where_it_was(room):
    write_class(room / "in", 40)
    assert grade(room, out="calm") == 0
    (room / "log").unlink()
    code = "import sys, pathlib, classroom; classroom.grade(pathlib.Path(sys.argv[1]), '--jobs', 2)"
    path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "src/gradebox"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "GRADEBOX_FAKE_SECONDS": "0.1"}
    command = [sys.executable, "-c", code, str(room)]
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
    assert not {line.split()[0] for line in marked(room)[len(before) :]} & stored
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
    assert grade(room, marker=interrupted(phase)) == 130
    assert not (room / "out/grades.csv").exists()
    assert grade(room) == 0
    ended = [line for line in (room / "order").read_text().splitlines() if "ends" in line]
    assert len(ended) == len(set(ended)) == 3 * len({line.split()[2] for line in ended})
    assert not list((room / "out/work/begun").iterdir())
    first, calls = files(room / "out"), len(marked(room))
    assert grade(room, "--jobs", 3) == 0
    assert len(marked(room)) == calls
    assert files(room / "out") == first
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
    assert about["result"]["points"] == 25  # of both questions


def test_another_limit_or_no_sandbox_marks_anew_and_again_does_so_by_force(room):
    (room / "in/ada.ipynb").write_bytes(notebook())
    for more in ([], ["--seconds", "7"], ["--unsafe"], ["--again"]):
        assert grade(room, *more) == 0
    assert len(marked(room)) == 4


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
    room, forgotten, monkeypatch, capsys, sandbox, done, started, late
):
    """A late notebook was paid for answers that earlier ones had told the file system."""

    def marker(options):
        return replace(fake_marker(options), sandbox=sandbox)

    forgotten.done = done
    (room / "in/ada.ipynb").write_bytes(notebook())
    assert grade(room, marker=marker) == grade(room, marker=marker) == 0
    assert not forgotten  # the second marks nothing
    if started:  # anew, since then
        (room / "boot_id").write_text("another")
        monkeypatch.setattr(store, "BOOT_ID", room / "boot_id")
    (room / "in/late.ipynb").write_bytes(notebook(MUTANT))
    capsys.readouterr()
    assert grade(room, marker=marker) == 0
    assert len(forgotten) == (not started and sandbox != "unsafe")
    assert (run.TRACES in capsys.readouterr().out) is late
    assert [run.LATE in rows(room)[who]["notes"] for who in ("ada", "late")] == [False, late]


def test_another_way_to_compare_is_another_version_of_the_grader(tmp_path, monkeypatch):
    assert {*store.OUTER} <= {file.stem for file in Path(store.__file__).parent.glob("*.py")}
    before = store.grader_version()
    copy = shutil.copytree(store.folder_of("vitcheck"), tmp_path / "vitcheck")
    monkeypatch.setattr(store, "folder_of", lambda name: copy)
    assert store.grader_version() == before
    for name in ("exercises/weighted_average", "cases", "paired_models", "values"):
        before = store.grader_version()
        with open(copy / f"{name}.py", "a") as file:
            file.write("# changed")
        assert (store.grader_version() == before) is name.startswith("exercises")


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


def attempt(number, status, points, submitted=None):
    """The attempt of this number; what is no status is a problem with the file."""
    about = {"assignment": "a", "variant": "v", "possible": 30, "detail": "so it is"}
    result = Result(status=status, points=points, **about)
    result = result if status in STATUS and status != NOT_MARKED else None
    problem = "" if status in STATUS else "so it is"
    found = Found("ada", lambda: b"", attempt=number, submitted=submitted)
    return Attempt(found, "key", result, problem)


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


@pytest.mark.parametrize(("points", "counts"), [(16, 1), (20, 2), (18.75, 2)])
def test_the_best_attempt_is_so_after_lateness_and_of_equal_ones_the_last(points, counts):
    due = datetime(2026, 3, 1, tzinfo=UTC)
    tries = [attempt(1, "ok", 15, due), attempt(2, "ok", points, due + timedelta(hours=25))]
    [grade] = decide(tries, None, LatePolicy(due, 10), "best")
    assert grade.chosen.found.attempt == counts
    assert (grade.days_late, grade.lost_percent) == ((0, 0) if counts == 1 else (2, 20))


def test_a_time_that_the_instructor_typed_counts_and_is_shown_instead_of_the_platforms():
    due = datetime(2026, 3, 1, tzinfo=UTC)
    student = Student(person("ada"), submitted=due + timedelta(hours=49))
    [grade] = decide([attempt(1, "ok", 20, due)], [student], LatePolicy(due, 10), "last")
    assert (grade.submitted, grade.days_late, grade.lost_percent) == (student.submitted, 3, 30)


def test_lateness_is_taken_off_before_points_are_rounded():
    question = QuestionResult("q1", "Task", 2 / 3, 1.0)
    late = Attempt(None, "key", Result("a", "v", "ok", 2 / 3, 1.0, questions=[question]))
    assert Grade(person("7"), (late,), late, lost_percent=50).total == 0.33


@pytest.mark.parametrize(
    ("points", "said"), [(2.675, "2.68"), (2 / 3, "0.67"), (1 / 3, "0.33"), (2.0, "2")]
)
def test_points_are_rounded_to_a_hundredth_half_up_and_whole_ones_are_whole(points, said):
    assert str(rounded(points)) == said


BLANK = notebook(STUB.format(n=1), STUB.format(n=2), "")
UNCHANGED = "no points: the questions' cells are as they were handed out"
STUBS = [STUB.format(n=n) for n in (1, 2)]
ZERO = {
    "nothing was changed": ({"a2.ipynb": BLANK}, UNCHANGED),
    "half of it": (
        {"a2.ipynb": notebook("# Question 1\nanswer1 = None\n", STUBS[1], "")},
        "no points (wrong: q1, as handed out: q2, no answer: q3)",
    ),
    "to be read": ({"a2.ipynb": notebook(*STUBS)}, "no points yet (as handed out: q1, q2)"),
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
        {"a2.ipynb": notebook(*STUBS), "a2 (1).ipynb": BLANK},
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


REFUSED = [
    (["--jobs", "0"], {}, "--jobs must be at least 1"),
    (["--shard", "0/4"], {}, "--shard is written I/N"),
    (["--shard", "5/4"], {}, "--shard is written I/N"),
    (["--shard", "1/2", "--fill", "book.csv"], {}, "leave --shard out"),
    (["--question", "q9"], {}, "there is no question 'q9'"),
    (["--roster", "nowhere.csv"], {}, "there is no roster"),
    (["--late", "10 per day"], {}, "--late needs --due"),
    (["--late", "a lot", "--due", "2026-03-01"], {}, "--late is written like"),
    (["--fill", "nowhere.csv"], {}, "there is no gradebook"),
    (["--seconds", "-1"], {}, "must be greater than 0"),
    ([], {"source": "nowhere"}, "there is no folder or zip file"),
    ([], {"package": "nowhere.zip"}, "there is no package"),
    ([], {"package": "in"}, "there is no package"),
    ([], {"package": "class.csv"}, "is no package of `make assignment`"),
    ([], {"source": "empty"}, "holds no submissions"),
    ([], {"out": "in/out"}, "lies inside the submissions"),
]


@pytest.mark.parametrize(("more", "files", "says"), REFUSED)
def test_what_cannot_be_used_is_one_sentence_and_nothing_is_written(
    room, capsys, more, files, says
):
    (room / "in/ada.ipynb").write_bytes(notebook())
    (room / "empty").mkdir()
    roster_csv(room / "class.csv", ["ada"])
    assert grade(room, *more, **files) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert not list(room.glob("**/out"))
    assert not marked(room)


CONTRADICT = {
    "the number of another": ("José Pérez_3005", "3005,Anna Schmidt"),
    "and a first name in common": ("Anna Weber_3005", "3005,Anna Schmidt"),
    "two names for a number": ("Ann Lee_3005", "3005,Bob Ray\n3006,Ann Lee"),
    "all words of another's name": ("Anna Schmidt_3005", "3005,Anna Maria Schmidt"),
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
    mark_by_hand(room)
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


def test_a_student_can_be_forgotten(room):
    for name, q1 in {"ada": RIGHT, "bob": RIGHT, "cy": MUTANT}.items():
        (room / f"in/{name}.ipynb").write_bytes(notebook(q1))
    assert grade(room) == 0
    for name, left in (("ada", 2), ("cy", 1)):  # bob handed in the same bytes as ada
        assert cli.main(["--forget", name, "--out", str(room / "out")]) == 0
        assert len(list((room / "out/work/submissions").iterdir())) == left
    assert [path.stem for path in (room / "out/feedback").iterdir()] == ["bob"]
    assert cli.main(["--forget", "zoe", "--out", str(room / "out")]) == 2


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

    def found(id):
        (room / "class.csv").write_text(f"id,name\n{id},Ada Li\n")
        assert grade(room, "--roster", room / "class.csv", "--platform", "moodle") == 0
        return rows(room)

    mine = found("m-1")
    assert mine["m-1"]["status"] == "missing"
    assert {"4711", "4712"} < set(mine)
    assert "also called so" in mine["4711"]["notes"]
    assert mine["m-1"]["notes"] == 'decide: is "4711 (Ada Li)", "4712 (Ada Li)" the same person?'
    mine = found("4711")
    assert mine["4711"]["status"] == "ok"
    assert "its name is that of Ada Li (4711), its number is not" in mine["4712"]["notes"]


@pytest.mark.parametrize("listed", ["ada", "Ada", "ADA"])
def test_who_is_spelled_as_in_the_roster_has_its_row_and_nobody_else(room, listed):
    """Who hands in as "ada" beside "Ada" made an attempt of hers, and the last one counts."""
    for name, text in (("ada", "a stranger's"), ("Ada", "her own")):
        (room / "in" / name).mkdir()
        (room / "in" / name / "x.ipynb").write_bytes(notebook(q3=text))
    (room / "class.csv").write_text(f"id,name\n{listed},Ada Li\n")
    assert grade(room, "--platform", "folder", "--roster", room / "class.csv") == 0
    found = rows(room)
    assert found[listed]["status"] == ("missing" if listed == "ADA" else "ok")
    assert "attempts" not in found[listed]["notes"]
    for one in {"ada", "Ada"} - {listed}:
        assert "decide: one in the roster is also called so" in found[one]["notes"]
