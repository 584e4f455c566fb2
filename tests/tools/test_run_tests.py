"""One red thing cannot hide another: the parts of `make test`, and how tests are divided."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.run_tests import NONE_CHOSEN, Part, main, parts_of, run_parts

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["the browser", "the sandbox", "tests without the book", "the book", "tests of the site"]


REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_good"/>
<testcase classname="tests.a" name="test_bad[x]"><failure message="no"/></testcase>
<testcase classname="tests.b" name="test_broken"><error message="no"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(name=status, ...): run all parts; what was run, the exit status, the last lines.

    `reports` names a part whose pytest writes `REPORT`.
    """
    monkeypatch.setattr("tools.run_tests.ROOT", tmp_path)
    (tmp_path / "_build/html").mkdir(parents=True)
    (tmp_path / "_build/html/index.html").touch()

    def go(capsys, reports=None, **statuses):
        ran = []

        def run(words):
            ran.append(words)
            *words, report = words if words[0] == "pytest" else (*words, None)
            name = next(part.name for part in parts if part.words == tuple(words))
            if name == reports:
                Path(report.removeprefix("--junitxml=")).write_text(REPORT)
            return statuses.get(name.replace(" ", "_"), 0)

        parts = parts_of([], deep=False)
        status = run_parts(parts, run)
        return ran, status, capsys.readouterr().out.splitlines()

    return go


def test_what_needs_no_book_is_tested_before_the_book_is_built(machine, capsys):
    ran, status, said = machine(capsys)
    assert [words[0] for words in ran][2:] == ["pytest", "website.build", "pytest"]
    assert "without-book" in ran[2]
    assert "site" in ran[4]
    assert status == 0
    assert [line.split("  ")[0] for line in said[-5:]] == NAMES
    assert all(line.endswith(" s  ok") for line in said[-5:])


@pytest.mark.parametrize("name", NAMES)
def test_a_part_that_fails_hides_no_other_and_the_last_line_names_it(machine, capsys, name):
    ran, status, said = machine(capsys, **{name.replace(" ", "_"): 1})
    assert len(ran) == len(NAMES)
    assert status == 1
    assert said[-1] == f"FAILED: {name}"


def test_the_last_line_names_the_tests_that_failed(machine, capsys):
    _, _, said = machine(capsys, reports="tests of the site", tests_of_the_site=1, the_book=1)
    bad = "tests.a::test_bad[x] tests.b::test_broken"
    assert said[-1] == f"FAILED: the book, tests of the site {bad}"


def test_a_choice_may_lie_in_one_part_but_not_in_none(machine, capsys):
    _, status, said = machine(capsys, tests_without_the_book=NONE_CHOSEN)
    assert status == 0
    assert said[-3].endswith("no test chosen")
    _, status, said = machine(
        capsys, tests_without_the_book=NONE_CHOSEN, tests_of_the_site=NONE_CHOSEN
    )
    assert status == 1
    assert said[-1] == "FAILED: no test was chosen"
    assert machine(capsys, the_book=NONE_CHOSEN)[1] == 1, "it excuses no other command"


def test_without_a_site_its_tests_fail_in_one_line(machine, capsys, tmp_path):
    (tmp_path / "_build/html/index.html").unlink()
    ran, status, said = machine(capsys, the_book=1)
    assert len(ran) == 4
    assert status == 1
    assert "there is no index.html in" in said[-2]
    assert said[-1] == "FAILED: the book, tests of the site"


def test_what_make_is_given_goes_to_pytest_and_wins(monkeypatch):
    given = []
    monkeypatch.setattr("tools.run_tests.run_parts", lambda parts, run: given.append(parts) or 0)
    main(["-k", "word", "-m", "browser"])
    for part in (given[0][2], given[0][4]):
        assert part.words[-4:] == ("-k", "word", "-m", "browser")
        assert "not deep" in part.words
    assert [part.name for part in parts_of([], deep=True)][5:] == ["other processors"]
    main(["--deep", "tests/book"])
    assert len(given[1]) == 5  # a choice
    for part in (given[1][2], given[1][4]):
        assert part.words[-1] == "tests/book"
        assert "not deep" not in part.words


def test_a_command_that_is_run_says_how_it_ended(capfd):
    from tools.run_tests import run

    assert run(("tools.no_such_module",)) != 0
    assert run_parts([Part("x", ("pytest", "--version"))], run) == 0


@pytest.mark.parametrize(
    ("part", "kept", "reads"),
    [("site", [True], False), ("without-book", [False], True), (None, [True, False], True)],
)
def test_each_test_belongs_to_one_part(request, part, kept, reads):
    """Which of two tests is kept, one with the marker; is a file without the marker read?"""
    shared = request.config.pluginmanager.getplugin(str(ROOT / "tests/conftest.py"))
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    config = SimpleNamespace(getoption=lambda name: part, hook=hook)
    items = [SimpleNamespace(get_closest_marker=lambda _, m=m: m or None) for m in (True, False)]
    marked = dict(zip(map(id, items), (True, False), strict=True))
    shared.pytest_collection_modifyitems(config, items)
    assert [marked[id(one)] for one in items] == kept
    assert not shared.pytest_ignore_collect(ROOT / "tests/site/test_site.py", config)
    assert shared.pytest_ignore_collect(ROOT / "tests/package/test_vit.py", config) != reads


def test_the_marker_stands_in_the_very_file_of_its_tests():
    """A file is left aside by its text: a marker that it got from elsewhere would be missed."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert path.name.startswith("test_") or "pytest.mark.site" not in path.read_text(), path
