"""What `make book` ends with: the site, and what failed on the way to it."""

import pytest

from website.build import __main__ as build
from website.pages.failures import Failure

FAILURE = Failure("book/one.md", 12, "did not hold: x > 60; found 58.3 > 60")
TOLD = "  book/one.md, line 12: did not hold: x > 60; found 58.3 > 60"
DEFECTS = "the site has defects (above)"


UNFINISHED = f"make book: {DEFECTS}; the site is not finished."
BUILT = "All pages are built, and say what did not hold. 1 failure on this machine:"


@pytest.mark.parametrize(
    ("failures", "complaint", "status", "ends"),
    [
        ([], None, 0, []),
        ([FAILURE], None, 1, [BUILT, TOLD]),
        ([], DEFECTS, 1, [UNFINISHED]),
        ([FAILURE], DEFECTS, 1, [UNFINISHED, "1 failure on this machine:", TOLD]),
    ],
    ids=["all is well", "a failure", "a defect", "both"],
)
def test_the_last_lines_name_failures_and_defects_and_the_next_build_tries_again(
    tmp_path, monkeypatch, capsys, failures, complaint, status, ends
):
    finished = []
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["build"])
    monkeypatch.setattr(build, "watched", lambda root: {})
    monkeypatch.setattr(build, "cell_timeout", lambda root: 60)
    monkeypatch.setattr(build, "execute", lambda *arguments: failures)
    monkeypatch.setattr(build, "finish", lambda folder: finished.append(folder) or complaint)
    (tmp_path / "_build").mkdir()
    assert build.main() == status
    assert finished == [tmp_path / "_build"]
    told = capsys.readouterr()
    *lines, processor = told.err.splitlines() or [""]
    assert [*lines, processor][: len(ends)] == ends
    assert processor.startswith("Processor: ") == bool(failures)
    assert ("The site is in" in told.out) == (complaint is None)
    assert (tmp_path / "_build" / "site.json").is_file() == (status == 0)
