"""Exports of all platforms, and everything odd that may lie in them. All fixtures are synthetic."""

import os
import shutil
import stat
import tracemalloc
import zipfile
from pathlib import PurePosixPath

import pytest
from classroom import notebook
from gradebox.collect import collect
from gradebox.grades import Attempt, decide
from gradebox.reading import NotReadableError
from gradebox.roster import LatePolicy
from gradebox.sources import InputError

from gradebox import reading

NOTEBOOK = notebook()


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return path


def problem(found):
    try:
        found.read()
    except NotReadableError as error:
        return str(error)
    return ""


def by_student(found):
    return {(one.student, one.attempt): one for one in found}


def put(folder, names, data=NOTEBOOK):
    """Files with these names; a folder where a name ends in "/"."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (folder / name).mkdir(exist_ok=True)
        else:
            (folder / name).write_bytes(data)


def handed(folder, names, zip):
    """These files in a folder or in an archive; its path."""
    put(folder / "in", names)
    if zip:
        shutil.make_archive(folder / "in", "zip", folder / "in")
    return folder / ("in.zip" if zip else "in")


def on_moodle(names):
    return [name.replace("/", "_77_assignsubmission_file_/", 1) for name in names]


IN_ORDER = [
    ["v2.ipynb", "v9.ipynb", "v10.ipynb"],
    ["a2.ipynb", "a2 (1).ipynb", "a2 (10).ipynb"],
    ["a2.ipynb", "a2-Copy1.ipynb", "A2-copy2.zip"],
    ["9/a.ipynb", "10/a.ipynb"],
    ["x" + "1" * 100 + ".ipynb", "x" + "2" * 100 + ".ipynb", "x1" + "0" * 100 + ".ipynb"],
]


@pytest.mark.parametrize("names", IN_ORDER, ids=lambda names: names[-1][:20])
def test_attempts_in_a_folder_are_in_the_order_that_people_read(tmp_path, names):
    put(tmp_path, ["bob.ipynb", *(f"ada/{name}" for name in names)])
    found = [one for one in collect(tmp_path) if one.student == "ada"]
    # a name that says which one it is; the folder, too, where the names are alike
    assert [one.file for one in found] == [f"ada/{x}" if "/" in x else x for x in names]
    assert all(one.by_name for one in found)


@pytest.mark.parametrize(("system", "between"), [(3, "/"), (0, "/"), (0, "\\")])
def test_a_zipped_folder_is_read_without_its_wrapper(tmp_path, system, between):
    """Windows, which packed the last one, has 0."""
    members = {zipfile.ZipInfo(f"hw{between}{name}.ipynb"): NOTEBOOK for name in ("ada", "bob")}
    for one in members:
        one.create_system = system
    path = zipped(tmp_path / "all.zip", members)
    assert [one.student for one in collect(path)] == ["ada", "bob"]


CANVAS = ["ann_101_5001_a.ipynb", "bob_102_5002_a.ipynb", "cyd_103_5003_a.ipynb"]
MOODLE = [f"Ann A_{n}_assignsubmission_file_/a.ipynb" for n in (101, 102, 103)]
GRADESCOPE = ["submission_1/a.ipynb", "submission_2/a.ipynb"]
WRAPPED = {
    "a folder around": (["hw/ann.ipynb", "hw/bob.ipynb"], "ann bob", 'folder, inside "hw"'),
    "what systems leave": (
        [
            "hw/ann.ipynb",
            "hw/bob.ipynb",
            "hw/.ipynb_checkpoints/x.ipynb",
            "__MACOSX/hw/._ann.ipynb",
        ],
        "ann bob",
        'folder, inside "hw"',
    ),
    "one student": (["ann/a.ipynb"], "ann", "folder"),
    "one in a class": (["hw/ann/a.ipynb"], "ann", 'folder, inside "hw"'),
    "canvas": ([f"submissions/{one}" for one in CANVAS], "101 102 103", "canvas"),
    "canvas, a list": ([*CANVAS, "class.csv"], "101 102 103", "canvas"),
    "canvas, a text": ([*CANVAS, "README.txt"], "101 102 103 README.txt", "canvas"),
    "canvas, sections": (
        [f"s1/{CANVAS[0]}", *(f"s2/{one}" for one in CANVAS[1:]), "a/README.txt", "class.csv"],
        "101 102 103 a/README.txt",
        "canvas",
    ),
    "moodle, a list": (["hw/" + one for one in MOODLE] + ["class.csv"], "101 102 103", "moodle"),
    "moodle, one": ([MOODLE[0], MOODLE[0][:-7] + "b.ipynb"], "101", "moodle"),
    "gradescope": ([f"x/y/{one}" for one in GRADESCOPE], "1001 1002 ann@example.edu", "gradescope"),
}


@pytest.mark.parametrize(("names", "students", "read_as"), WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("zip", [False, True])
def test_neither_a_folder_around_nor_a_file_beside_changes_who_handed_in(
    tmp_path, names, students, read_as, zip
):
    if read_as == "gradescope":
        above = next(name for name in names if "sub" in name).partition("submission")[0]
        metadata = METADATA.partition("submission_3")[0].encode()
        put(tmp_path / "in", [f"{above}submission_metadata.yml"], metadata)
    said = []
    found = collect(handed(tmp_path, names, zip), say=said.append)
    assert " ".join(sorted({one.student for one in found})) == students
    assert said[0].startswith(f"read as: {read_as}")
    left_out = ['left out: "class.csv"'] * ("class.csv" in names)
    assert [one for one in said if "left out" in one] == left_out


def test_a_folder_that_may_be_a_student_or_the_class_is_asked_about(tmp_path):
    """Or is named, where others handed in as well."""
    put(tmp_path, ["hw/ann.ipynb", "hw/bob.ipynb", "more/x.pdf"])
    with pytest.raises(InputError, match=r'in the folder "hw" \(2\): give that folder if'):
        collect(tmp_path)
    assert [one.student for one in collect(tmp_path, "folder")] == ["hw", "hw", "more"]
    put(tmp_path, ["late/cy.ipynb"])
    said = []
    assert len(collect(tmp_path, say=said.append)) == 4
    assert said[1:] == ['several notebooks in a folder are attempts of one student: "hw" (2)']


EMPTY = {
    "an empty folder": ["eve/"],
    "one called like a notebook": ["eve/eve.ipynb/"],
    "folders in it": ["eve/a/", "eve/b/c/"],
    "left by systems": ["eve/.DS_Store", "eve/Thumbs.db", "eve/__MACOSX/._a1.ipynb"],
    "one of these": ["eve/Thumbs.db"],
}


@pytest.mark.parametrize("names", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("zip", [False, True])
@pytest.mark.parametrize("platform", [list, on_moodle])
def test_who_handed_in_nothing_to_mark_has_a_row(tmp_path, names, zip, platform):
    names = platform(["ann/a.ipynb", "bob/a.ipynb", *names])
    found = collect(handed(tmp_path, names, zip))
    assert len(found) == 3
    (eve,) = (one for one in found if "eve" in one.student)
    assert problem(eve) == "no notebook (.ipynb) was handed in, but: nothing"


ONLY = [
    ".ipynb",
    ".hidden.ipynb",
    "._mine.ipynb",
    ".IPYNB",
    ".ipynb_checkpoints/a-checkpoint.ipynb",
]


@pytest.mark.parametrize("name", ONLY)
@pytest.mark.parametrize("zip", [False, True])
def test_every_notebook_that_was_handed_in_has_a_row(tmp_path, name, zip):
    """Alone, in a student's folder, in a student's archive and on Moodle."""
    put(tmp_path / "in", [f"bob/{name}"], b"not this one")
    alone = [] if "/" in name else [name]
    found = collect(handed(tmp_path, [f"ada/{name}", "bob/x.ipynb", *alone], zip))
    assert {one.student for one in found} == {"ada", "bob", *(PurePosixPath(x).stem for x in alone)}
    assert [one.read() for one in found] == [NOTEBOOK] * len(found)
    assert max(one.attempt for one in found) == 1
    inner = zipped(tmp_path / "inner.zip", {f"x/{name}": NOTEBOOK}).read_bytes()
    moodle = {
        f"Jane Doe_815_assignsubmission_file_/{name}": NOTEBOOK,
        "Ann Lee_816_assignsubmission_file_/x.zip": inner,
    }
    assert all(one.read() == NOTEBOOK for one in collect(zipped(tmp_path / "m.zip", moodle)))


def test_a_folder_that_cannot_be_read_has_a_row(tmp_path, monkeypatch):
    def closed(path):
        if str(path).endswith("bob"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", closed)
    put(tmp_path, ["ada.ipynb", "bob/"])
    ada, bob = map(problem, collect(tmp_path))
    assert ada == ""
    assert "a folder that cannot be read: Permission denied" in bob


def test_canvas_names_say_who_and_whether_late(tmp_path):
    path = zipped(
        tmp_path / "submissions.zip",
        {
            "doejane_4711_900_answer.ipynb": NOTEBOOK,
            "doejane_4711_950_answer-1.ipynb": NOTEBOOK,
            "rayvandermeer_LATE_4712_901_my_answer_2.ipynb": NOTEBOOK,
            "oneill_4713_902_answer.pdf": b"%PDF",
            "typed_4714_text.html": b"<p>",
            "annlee_4715_question_33_903_answer.ipynb": NOTEBOOK,  # of a quiz
            "_4716_904_12_answer.ipynb": NOTEBOOK,  # of a name without letters
        },
    )
    found = by_student(collect(path))
    assert set(found) == {("4711", 2), *((str(number), 1) for number in range(4711, 4717))}
    assert (found["4715", 1].name, found["4716", 1].name) == ("annlee", "")
    assert found["4711", 2].file.endswith("answer-1.ipynb")  # the greater attachment is later
    assert found["4712", 1].late
    assert not found["4711", 1].late
    assert found["4712", 1].name == "rayvandermeer"
    assert 'no notebook (.ipynb) was handed in, but: "oneill' in problem(found["4713", 1])
    assert "no notebook" in problem(found["4714", 1])


@pytest.mark.parametrize("flat", [True, False])
def test_moodle_with_folders_and_without(tmp_path, flat):
    between = "" if flat else "/"
    path = zipped(
        tmp_path / "moodle.zip",
        {
            f"Jane Doe_815_assignsubmission_file_{between}answer.ipynb": NOTEBOOK,
            f"Jane Doe_815_assignsubmission_onlinetext_{between}onlinetext.html": b"<p>",
            f"Ann_Lee_816_assignsubmission_file_{between}answer.py": b"x = 1",
            f"Cy Wu_817_assignsubmission_noto_{between}answer.ipynb": NOTEBOOK,  # of a plugin
        },
    )
    found = by_student(collect(path))
    assert set(found) == {("815", 1), ("816", 1), ("817", 1)}
    assert found["815", 1].name == "Jane Doe"
    assert found["815", 1].read() == NOTEBOOK
    assert "answer.py" in problem(found["816", 1])


MOODLES = "Right A_4712_assignsubmission_file_hw.ipynb"
CANVASS = "rightanne_4712_815_hw.ipynb"
FORGED = [
    (MOODLES, "Blank Z_4711_assignsubmission_file_X_4712_assignsubmission_file_hw.ipynb"),
    (MOODLES, "Blank Z_4711_assignsubmission_file__4712_assignsubmission_file_/hw.ipynb"),
    (MOODLES, "Blank Z_4711_assignsubmission_file_/Right A_4712_assignsubmission_file_/hw.ipynb"),
    (MOODLES, "Blank Z_4711_assignsubmission_file_rightanne_4712_9999_hw.ipynb"),
    (CANVASS, "blankzoe_4711_{}_{}rightanne_4712_9999_hw.ipynb"),
    (CANVASS, "blankzoe_4711_{}_{}X_4712_assignsubmission_file_hw.ipynb"),
    (CANVASS, "blankzoe_4711_{}_{}LATE_4712_9999_hw.ipynb"),
    (CANVASS, "blankzoe_4711_{}_{}4712_text.html_9_x.ipynb"),
    (CANVASS, "blankzoe_4711_{}_{}x\\rightanne_4712_9999_hw.ipynb"),
]


@pytest.mark.parametrize(("right", "forged"), FORGED)
def test_a_files_name_does_not_make_it_another_students(tmp_path, right, forged):
    mine = b'{"cells": []}'
    names = dict.fromkeys((forged.format(816 + n, n or "") for n in range(4)), mine)  # the most
    found = by_student(collect(zipped(tmp_path / "in.zip", {right: NOTEBOOK, **names})))
    assert {student for student, _ in found} == {"4711", "4712"}
    assert found["4712", 1].read() == NOTEBOOK
    assert found["4711", 1].read() == mine
    assert not any(one.late for one in found.values())


def test_on_gradescope_a_files_name_does_not_make_it_another_students(tmp_path):
    mine = b'{"cells": []}'
    names = {
        "export/submission_metadata.yml": METADATA.encode(),
        "export/submission_1/submission_2/answer.ipynb": mine,
        "export/submission_1/submission_metadata.yml": METADATA.replace("_1:", "_9:").encode(),
        "export/submission_2/answer.ipynb": NOTEBOOK,
    }
    found = by_student(collect(zipped(tmp_path / "gradescope.zip", names)))
    ann = next(one for one in found.values() if one.name == "Ann Lee")
    assert ann.read() == NOTEBOOK


def test_on_moodle_a_name_that_is_not_understood_is_not_dropped(tmp_path):
    put(tmp_path, [*MOODLE[:2], "stray.ipynb"])
    assert {one.student for one in collect(tmp_path)} == {"101", "102", "stray.ipynb"}


def test_no_student_decides_how_the_class_is_read(tmp_path):
    forged = b"submission_1:\n  :submitters:\n  - {:name: Ann Lee}\n"
    put(tmp_path / "moodle", MOODLE[:2])
    metadata = MOODLE[0].replace("a.ipynb", "submission_metadata.yml")
    put(tmp_path / "moodle", [metadata], forged)
    assert {one.student for one in collect(tmp_path / "moodle")} == {"101", "102"}
    put(tmp_path / "in", ["ada.ipynb", "bob.ipynb", "x_1_assignsubmission_file_x.ipynb"])
    assert len(collect(tmp_path / "in")) == 3
    for at, end in enumerate(("_assignsubmission_file_/a", "_9_a")):
        mine = [f"eve/x_{n}{end}" for n in range(9)]
        put(tmp_path / str(at), ["ada/a.ipynb", "bob/a.ipynb", *mine])
        assert {one.student for one in collect(tmp_path / str(at))} == {"ada", "bob", "eve"}


METADATA = """---
submission_1:
  :submitters:
  - :name: Jane Doe
    :sid: '1001'
    :email: jane@example.edu
  - :name: Bob Ray
    :sid: '1002'
    :email: bob@example.edu
  :created_at: 2026-03-01 22:59:30.123000000 Z
  :score: 0.0
submission_2:
  :submitters:
  - :name: Ann Lee
    :sid:
    :email: ann@example.edu
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-03-02 01:00:00 Z
submission_3:
  :submitters: []
"""


def gradescope(folder, metadata, numbers=(1,)):
    """An export with a notebook under each number."""
    names = {f"submission_{n}/{n}.ipynb": NOTEBOOK for n in numbers}
    path = zipped(folder / "export.zip", {"submission_metadata.yml": metadata, **names})
    return by_student(collect(path))


def test_gradescope_metadata_name_the_students_of_a_group_and_the_time(tmp_path):
    folder = tmp_path / "assignment_7_export"
    put(folder, [f"submission_{n}/answer.ipynb" for n in (1, 2, 4)])
    put(folder, ["submission_metadata.yml"], METADATA.encode())
    put(folder, ["submission_3/readme.txt"])
    found = by_student(collect(tmp_path))
    people = {("1001", 1), ("1002", 1), ("ann@example.edu", 1), ("submission_3", 1)}
    assert set(found) == {*people, ("submission_4", 1)}  # which the metadata do not name
    assert found["1002", 1].submitted.isoformat() == "2026-03-01T22:59:30.123000+00:00"
    assert found["ann@example.edu", 1].submitted is None  # a tag is never turned into an object
    assert "readme.txt" in problem(found["submission_3", 1])


def test_gradescope_submissions_under_a_name_alone_need_not_be_one_students(tmp_path):
    one = ":submitters:\n  - :name: Ann Lee\n"
    found = gradescope(tmp_path, "".join(f"submission_{n}:\n  {one}" for n in (1, 2)), (1, 2))
    assert set(found) == {("submission_1", 1), ("submission_2", 1)}
    assert {one.name for one in found.values()} == {"Ann Lee"}


@pytest.mark.parametrize("number", ["00123", "1_000", "0x1A", "12:30", "1.50", "1e5", "No"])
def test_gradescope_numbers_of_students_stay_as_they_are_written(tmp_path, number):
    assert (number, 1) in gradescope(tmp_path, METADATA.replace("'1001'", number))


@pytest.mark.parametrize("time", ["2026-03-01 22:59:30 Z", "at noon", ""])
def test_gradescope_submissions_of_one_time_are_in_the_order_of_their_numbers(tmp_path, time):
    one, numbers = f":submitters:\n  - :email: a@b.edu\n  :created_at: {time}\n", (9, 10, 100)
    found = gradescope(tmp_path, "".join(f"submission_{n}:\n  {one}" for n in numbers), numbers)
    assert [one.file for one in found.values()] == ["9.ipynb", "10.ipynb", "100.ipynb"]


TIMES = {
    "2026-03-01 22:59:30.123000000 Z": "2026-03-01T22:59:30.123000+00:00",
    "2026-03-01 22:59:30 +02:00": "2026-03-01T22:59:30+02:00",
    "2026-03-01 22:59:30 UTC": "2026-03-01T22:59:30+00:00",
    "'2026-03-01T22:59:30'": "2026-03-01T22:59:30+00:00",
}


@pytest.mark.parametrize("time", TIMES)
def test_gradescope_times_are_read_however_they_are_written(tmp_path, time):
    found = gradescope(tmp_path, METADATA.replace("2026-03-01 22:59:30.123000000 Z", time))
    assert found["1002", 1].submitted.isoformat() == TIMES[time]


@pytest.mark.parametrize(
    "name", ["Assignment 2: patches.ipynb", "x/12:30.ipynb", "a:b/c: d.ipynb", "C:mine.ipynb"]
)
def test_a_colon_in_a_name_is_no_crime(tmp_path, name):
    zipped(tmp_path / "ada.zip", {name: NOTEBOOK})
    (one,) = collect(tmp_path)
    assert problem(one) == ""


def test_names_that_lead_out_of_an_archive_lead_nowhere(tmp_path):
    names = [
        "../../ada",
        "../../eve",
        "/etc/bob",
        "/etc/flo",
        "C:\\Users\\dan\\a",
        "C:\\Users\\gus\\a",
    ]
    names = [f"{name}.ipynb" for name in (*names, "cy")]
    path = zipped(tmp_path / "evil.zip", dict.fromkeys(names, NOTEBOOK))
    before = sorted(tmp_path.rglob("*"))
    found = collect(path)
    assert [problem(one) for one in found].count("its name leads out of the archive") == 6
    assert len({one.student for one in found}) == 7
    assert sorted(tmp_path.rglob("*")) == before


def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret.ipynb").write_bytes(b"the instructor's solution")
    folder = tmp_path / "in"
    (folder / "bob").mkdir(parents=True)
    (folder / "ada.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (folder / "bob/x.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (folder / "cy").symlink_to(tmp_path)
    os.mkfifo(folder / "dan.ipynb")
    link = zipfile.ZipInfo("eve.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    zipped(folder / "eve.zip", {link: b"../secret.ipynb"})
    found = {one.student: problem(one) for one in collect(folder)}
    for student in ("ada", "bob", "cy", "eve"):
        assert "link" in found[student] or "no notebook" in found[student], found
    assert found["dan"] == "this is no ordinary file"


def test_a_zip_bomb_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 100_000)
    bomb = zipped(tmp_path / "ada.zip", {"answer.ipynb": b"0" * 5_000_000}).read_bytes()
    zipped(tmp_path / "bob.zip", {"deeper.zip": bomb})
    lies = bytearray(bomb)  # of its size
    at = lies.rindex(b"PK\x01\x02") + 24
    lies[at : at + 4] = (100).to_bytes(4, "little")
    (tmp_path / "cy.zip").write_bytes(lies)
    assert len(bomb) < 10_000
    found = {one.student: problem(one) for one in collect(tmp_path)}
    assert found["ada"].startswith("larger than")
    assert "no notebook" in found["bob"]  # archives inside archives are not opened
    assert found["cy"]


LONG = {
    "deep": ("a/" * 32_700, 7),
    "long": ("a" * 65_000, 100),
    "deep and many": ("b/" * 480, 5_000),
}


@pytest.mark.parametrize(("name", "times"), LONG.values(), ids=LONG)
def test_names_that_no_disk_holds_cost_nobody_anything(tmp_path, name, times):
    """They took all of the memory, and the command ended."""
    names = [f"{at}/{name}x.txt" for at in range(times)]
    for student, more in {"ada": ["hw.ipynb"], "bob": []}.items():
        zipped(tmp_path / f"{student}.zip", dict.fromkeys([*names, *more], NOTEBOOK[:0]))
    tracemalloc.start()
    found = {one.student: problem(one) for one in collect(tmp_path)}
    assert tracemalloc.get_traced_memory()[1] < 500_000_000
    tracemalloc.stop()
    assert found["ada"] == ""
    assert "no notebook" in found["bob"]
    assert "too long" in found["bob"]


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_python_unpacks_at_one_go_is_not_unpacked(tmp_path, packed):
    with zipfile.ZipFile(tmp_path / "ada.zip", "w", packed) as opened:
        opened.writestr("answer.ipynb", b"0" * 30_000_000)
    assert (tmp_path / "ada.zip").stat().st_size < 100_000
    (one,) = collect(tmp_path / "ada.zip")
    tracemalloc.start()
    assert "ordinary zip" in problem(one)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("damage", ["cut", "noise", "locked", "empty"])
def test_a_broken_archive_of_one_student_is_only_a_problem_of_that_student(tmp_path, damage):
    (tmp_path / "bob.ipynb").write_bytes(NOTEBOOK)
    path = zipped(tmp_path / "ada.zip", {"answer.ipynb": NOTEBOOK * 50})
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    if damage == "noise":
        data[40:200] = os.urandom(160)
    if damage == "locked":
        data[data.index(b"PK\x03\x04") + 6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(b"" if damage == "empty" else data)
    found = {one.student: problem(one) for one in collect(tmp_path)}
    assert found["bob"] == ""
    assert found["ada"]


BESIDE = {  # what else is handed in, and what is named of it
    "a picture": (["shot.png"], ["shot.png"]),
    "an archive": (["final.zip"], ["final.zip"]),
    "an autosave": ([".ipynb_checkpoints/a-checkpoint.ipynb"], ["a-checkpoint.ipynb"]),
    "many": ([f"{at}.pdf" for at in range(9)], [f"{at}.pdf" for at in range(6)]),
    "left by systems": ([".DS_Store", "__MACOSX/._a.ipynb"], []),
}


@pytest.mark.parametrize("platform", [list, on_moodle])
@pytest.mark.parametrize("what", BESIDE)
def test_what_nobody_looks_at_stands_in_the_students_row(tmp_path, what, platform):
    names, named = BESIDE[what]
    names = [f"{who}/{name}" for who in ("ada", "bob") for name in ("a.ipynb", *names)]
    if platform is list:  # there an archive is an attempt of its own
        names, named = ([name for name in one if name[-4:] != ".zip"] for one in (names, named))
    put(tmp_path, platform(names))
    attempts = (Attempt(one, "", None) for one in collect(tmp_path))
    said = ", ".join(f'"{name}"' for name in named) + " and 3 more" * (len(names) > 15)
    for grade in decide(attempts, None, LatePolicy(), "last"):
        assert grade.notes == ((f"also handed in, not looked at: {said}",) if named else ())


def test_several_notebooks_in_a_students_archive_are_named(tmp_path):
    zipped(tmp_path / "ada.zip", {"a.ipynb": NOTEBOOK, "b.ipynb": NOTEBOOK})
    zipped(tmp_path / "bob.zip", {"a.ipynb": NOTEBOOK, "__MACOSX/._a.ipynb": b"x", ".x.ipynb": b""})
    found = {one.student: problem(one) for one in collect(tmp_path)}
    assert "several notebooks" in found["ada"]
    assert found["bob"] == ""


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ((b"M\xfcller", b"M\xf6ller", b"caf\xe9\x1b[31m"), r"M\xfcller"),
        ((b"a\x85", "a\u0085", "a?", "a\ufffd"), r"a\u0085"),
        (("a\u200f", "a\u200e", "a", "a\U000e0001", "a\ue000"), r"a\u200f"),
        (("x\ny", "x\ty", "x?y", "x y", "x\u00a0y", b"x\xa0y"), r"x\u000ay"),
    ],
)
def test_no_two_names_become_one_and_all_can_be_read(tmp_path, names, shown):
    for name in names:
        name = name if isinstance(name, bytes) else name.encode()
        (tmp_path / os.fsdecode(name + b".ipynb")).write_bytes(name)
    found = collect(tmp_path)
    assert len({one.student for one in found}) == len(names)
    assert shown in {one.student for one in found}
    assert all(one.student.encode().decode().isprintable() for one in found)
    assert {one.read() for one in found} == {os.fsencode(name) for name in names}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no folder or zip file"),
        (lambda path: path.write_text("hello"), "neither a folder nor a zip file"),
        (lambda path: path.mkdir(), "holds no submissions"),
        (lambda path: zipped(path, {"x/submission_metadata.yml": "[1, 2"}), "cannot be read"),
        (lambda path: zipped(path, {"submission_metadata.yml": "- 1"}), "lists no submissions"),
    ],
)
def test_what_is_no_export_is_refused_in_a_sentence(tmp_path, make, says):
    make(tmp_path / "in")
    with pytest.raises(InputError, match=says):
        collect(tmp_path / "in")
