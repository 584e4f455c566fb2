"""What a student reads, here and on Gradescope: nothing hidden, nothing that runs."""

import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from axe_playwright_python.sync_playwright import Axe
from classroom import MUTANT, RIGHT, SECRET, fake_mark, make_package, notebook
from gradebox.assignment import read_assignment
from gradebox.collect import Found
from gradebox.feedback import page
from gradebox.grades import Attempt, ByHand, Grade
from gradebox.hosted import results
from gradebox.result import Result
from gradebox.same_person import person

from gradebox import cli, hosted

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'--><svg/onload=alert(3)>\u202e\x1b[2J"
)


def made(tmp_path, data, who="Ada", attempts=1, **more):
    path = tmp_path / "x.ipynb"
    path.write_bytes(data)
    package = make_package(tmp_path / "package.zip")
    result = fake_mark(path, package)
    found = Found(who, lambda: data, name=who, file=who, attempt=attempts)
    attempt = Attempt(found, "key", result)
    return read_assignment(package), Grade(person(who, who), (attempt,) * attempts, attempt, **more)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]


SHOWN = {
    "page": page,
    "Gradescope": lambda assignment, grade: json.dumps(results(assignment, grade.chosen.result)),
}


@pytest.fixture(params=SHOWN.values(), ids=SHOWN)
def shown(request, tmp_path):
    """What a student reads of a notebook."""
    return lambda data, **more: request.param(*made(tmp_path, data, **more))


def test_nothing_that_a_student_wrote_becomes_part_of_the_page(shown):
    text = shown(notebook(q1=EVIL, q2=EVIL), who=EVIL)
    found = Tags(text)
    assert "&lt;script&gt;" in text
    assert not {"script", "img", "svg", "iframe", "a href=javascript"} & set(found.tags)
    assert not [name for name in found.attributes if name.startswith("on")]
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_hidden_tests_are_only_counted(shown):
    text = shown(notebook(q1="nothing"))
    assert SECRET not in text
    for words in ("Hidden tests: 0 of 1 passed.", "Hidden tests: 1 of 1 passed.", "got nothing"):
        assert words in text


@pytest.mark.parametrize(("answer", "named"), [(MUTANT, True), ("nothing", False), (RIGHT, False)])
def test_a_hidden_test_is_named_where_it_alone_fails(shown, answer, named):
    text = shown(notebook(q1=answer))
    said = "The first that did not: images that are &lt;not&gt; square."
    assert text.count(said) == named
    assert SECRET not in text


def test_a_comment_by_hand_and_lateness_are_said(tmp_path):
    late = {"days_late": 2, "lost_percent": 20.0, "by_hand": {"q3": ByHand(4.0, "Well said")}}
    text = page(*made(tmp_path, notebook(), attempts=2, **late))
    assert "27.2 of 35 points" in text
    assert "Well said" in text
    assert "by 2 days that began: 20 per cent" in text
    assert "Attempt 2 of 2 counts" in text


STATUSES = {
    "unreadable": "cannot be read",
    "wrong-variant": "another variant",
    "no-answers": "cell",
    "": "cannot be read",
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_notebook_that_was_not_marked_says_why_in_plain_words(tmp_path, status):
    assignment, grade = made(tmp_path, notebook())
    attempt = Attempt(grade.chosen.found, "", None, problem=f"A sentence for you. {EVIL}")
    if status:
        result = Result("a", "v", status, 0.0, 30.0, detail="A sentence for you.")
        attempt = Attempt(grade.chosen.found, "key", result)
    text = page(assignment, Grade(grade.person, (attempt,), attempt))
    assert STATUSES[status] in text
    assert "A sentence for you." in text
    assert "script" not in Tags(text).tags


def test_nothing_handed_in_is_a_page_too(tmp_path):
    assignment, _ = made(tmp_path, notebook())
    assert "Nothing was handed in." in page(assignment, Grade(person("ada"), (), None))


def test_a_page_stands_alone_and_follows_the_readers_colours(tmp_path):
    text = page(*made(tmp_path, notebook()))
    assert '<html lang="en">' in text
    assert "color-scheme: light dark" in text
    assert "default-src 'none'" in text  # a policy, should escaping ever fail
    assert not re.search(r"(https?:)?//|src=|@import|url\(", text.replace("<!doctype", ""))


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_the_page_and_nothing_in_it_runs(tmp_path, browser, scheme):
    text = page(*made(tmp_path, notebook(q1=EVIL, q2="nothing"), who=EVIL))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    view = browser.new_page(
        viewport={"width": 390, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    said = []
    view.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    view.goto((tmp_path / "page.html").as_uri())
    results = Axe().run(view)
    assert results.violations_count == 0, results.generate_report()
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    assert not said
    view.close()


# --- what goes to Gradescope; nothing here was run on Gradescope itself


def test_gradescope_gets_the_points_of_each_question(tmp_path):
    assignment, grade = made(tmp_path, notebook(q2=MUTANT))
    first, *others = grade.chosen.result.questions
    marked = replace(grade.chosen.result, questions=[replace(first, points=20 / 3), *others])
    found = results(assignment, marked)
    scores = [(one["score"], one["max_score"]) for one in found["tests"]]
    assert scores == [(6.67, 10.0), (10, 20.0)]
    assert "Marked by a person, later: Task q3." in found["output"]


def test_the_zip_holds_the_grader_the_package_and_scripts_that_start(tmp_path, capsys):
    package = make_package(tmp_path / "package.zip")
    path = tmp_path / "autograder.zip"
    assert cli.main(["--gradescope-zip", str(path), "--assignment", str(package)]) == 0
    assert "keep it private" in capsys.readouterr().out
    with zipfile.ZipFile(path) as opened:
        names = set(opened.namelist())
        opened.extractall(tmp_path / "source")
        assert opened.getinfo("run_autograder").external_attr >> 16 & 0o111
    wanted = {"setup.sh", "requirements.txt", "package.gradebox.zip", "packages/gradebox/cli.py"}
    assert wanted <= names
    assert not [name for name in names if "/recorded/" in name or "__pycache__" in name]
    for script in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", tmp_path / "source" / script], check=True)
    assert "torch==" in (tmp_path / "source/requirements.txt").read_text()
    assert "+" not in (tmp_path / "source/requirements.txt").read_text()


def test_without_a_package_there_is_no_zip(tmp_path, capsys):
    assert cli.main(["--gradescope-zip", str(tmp_path / "x.zip")]) == 2
    assert not (tmp_path / "x.zip").exists()
    assert "needs --assignment" in capsys.readouterr().err


def test_no_file_that_was_handed_in_stands_in_for_a_module(tmp_path):
    for folder in ("submission", "results"):
        (tmp_path / folder).mkdir()
    for name in ("json", "torch", "sitecustomize", "gradebox"):
        (tmp_path / f"submission/{name}.py").write_text("raise SystemExit('a file of a student')")
    script = (hosted.TEMPLATES / "gradescope_run_autograder").read_text()
    script = script.replace("/opt/gradebox/bin/python", sys.executable)
    script = script.replace("/autograder", str(tmp_path))
    subprocess.run(["bash", "-c", script], cwd=tmp_path / "submission", check=True)
    assert "no notebook" in json.loads((tmp_path / "results/results.json").read_text())["output"]
