"""A release, tried on small repositories: version, change log, tag, and the branch that is read."""

import datetime
import subprocess
import zipfile
from pathlib import Path

import pytest

from tools.bundle import bundle
from tools.publish import publish
from tools.release import check, git, main, release
from website.pages.settings import BRANCH, read_settings

ROOT = Path(__file__).resolve().parents[2]
DAY = datetime.date(2026, 1, 31)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository that can be released, and the bare one that it is pushed to."""
    for key in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{key}_NAME", "somebody")
        monkeypatch.setenv(f"{key}_EMAIL", "somebody@localhost")
    root = tmp_path / "root"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0.1.0.dev0"\n')
    (root / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- The first pages.\n")
    (root / ".gitignore").write_text("_build/\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "origin.git")], check=True)
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    return root


def shown(root, name):
    return git(root, "show", name)


def test_a_release_is_a_commit_with_version_and_date_a_tag_and_a_fresh_start(repository):
    release(repository, "0.1.0", DAY)
    assert 'version = "0.1.0"\n' in shown(repository, "v0.1.0:pyproject.toml") + "\n"
    log = shown(repository, "v0.1.0:CHANGELOG.md")
    assert log == "# Changes\n\n## Unreleased\n\n## 0.1.0 (2026-01-31)\n\n- The first pages."
    assert 'version = "0.1.1.dev0"' in shown(repository, "HEAD:pyproject.toml")
    assert git(repository, "status", "--porcelain") == ""
    with pytest.raises(ValueError, match=r"CHANGELOG\.md says nothing"):
        check(repository, "0.2.0")


REFUSED = [
    ("next", lambda root: None, "three numbers"),
    ("0.1.0", lambda root: (root / "new.txt").touch(), "commit or drop"),
    ("0.1.0", lambda root: git(root, "tag", "v0.2.0"), r"0\.2\.0 is released"),
]


@pytest.mark.parametrize(("version", "spoil", "words"), REFUSED)
def test_what_cannot_be_released_is_refused_and_nothing_changes(repository, version, spoil, words):
    spoil(repository)
    before = git(repository, "rev-parse", "HEAD"), git(repository, "tag")
    with pytest.raises(SystemExit, match=words):
        main([version], repository)
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "tag")) == before


def build(root, words):
    site = root / "_build" / "html"
    (site / "notebooks").mkdir(parents=True, exist_ok=True)
    (site / "index.html").write_text(words)
    (site / "notebooks" / "a.ipynb").write_text(words)
    return site


def files(root):
    origin = root.parent / "origin.git"
    return set(git(origin, "ls-tree", "-r", "--name-only", BRANCH).split())


def released(root, version):
    """Release and publish what says its version; back to the branch afterwards."""
    release(root, version, DAY)
    git(root, "checkout", "-q", f"v{version}")
    publish(root, build(root, f"this is {version}"), f"v{version}", "origin")
    git(root, "checkout", "-q", "main")
    with (root / "CHANGELOG.md").open("a") as file:
        file.write("x")
    log = (root / "CHANGELOG.md").read_text()
    (root / "CHANGELOG.md").write_text(log.replace("## Unreleased\n", "## Unreleased\n\n- More.\n"))
    git(root, "commit", "-q", "-a", "-m", "more")


def test_the_branch_holds_the_newest_release_and_each_one_for_good(repository):
    released(repository, "0.1.0")
    assert files(repository) == {
        "index.html", "notebooks/a.ipynb", "v0.1.0/index.html", "v0.1.0/notebooks/a.ipynb"
    }  # fmt: skip
    released(repository, "0.2.0")
    origin = repository.parent / "origin.git"
    assert shown(origin, f"{BRANCH}:index.html") == "this is 0.2.0"
    assert shown(origin, f"{BRANCH}:v0.1.0/index.html") == "this is 0.1.0"
    assert shown(origin, f"{BRANCH}:v0.2.0/notebooks/a.ipynb") == "this is 0.2.0"
    assert git(origin, "rev-list", "--count", BRANCH) == "2"


def test_only_the_releases_commit_with_a_site_is_published_and_only_once(repository):
    with pytest.raises(ValueError, match="run make book first"):
        publish(repository, repository / "_build/html", "v0.1.0", "origin")
    with pytest.raises(ValueError, match=r"'0\.1\.0' was not released; released were: none"):
        publish(repository, build(repository, "x"), "v0.1.0", "origin")
    released(repository, "0.1.0")
    with pytest.raises(ValueError, match=r"not that of v0\.1\.0: git checkout"):
        publish(repository, build(repository, "x"), "v0.1.0", "origin")
    git(repository, "checkout", "-q", "v0.1.0")
    with pytest.raises(ValueError, match="published already"):
        publish(repository, build(repository, "y"), "v0.1.0", "origin")


def test_a_release_whose_tag_was_lost_is_found_by_its_commit(repository, capsys):
    main(["0.1.0"], repository)
    said = capsys.readouterr().out
    assert "git push origin main v0.1.0" in said
    assert "--find 0.1.0" in said
    tagged = git(repository, "rev-list", "-1", "v0.1.0")
    git(repository, "tag", "-d", "v0.1.0")
    main(["--find", "0.1.0"], repository)
    assert capsys.readouterr().out.strip() == tagged
    main(["--list"], repository)
    assert capsys.readouterr().out.strip() == "0.1.0"
    git(repository, "checkout", "-q", tagged)
    publish(repository, build(repository, "x"), "v0.1.0", "origin")
    assert "v0.1.0/index.html" in files(repository)
    git(repository, "checkout", "-q", "main")
    with pytest.raises(SystemExit, match=r"0\.1\.0 is released already"):
        main(["0.1.0"], repository)
    with pytest.raises(SystemExit, match=r"'0\.3\.0' was not released; released were: 0\.1\.0"):
        main(["--find", "0.3.0"], repository)


def test_the_bundle_holds_the_notebooks_the_package_and_how_to_begin(tmp_path):
    settings, folder = read_settings(ROOT), tmp_path / "notebooks"
    folder.mkdir()
    for name in ("a.ipynb", "b.ipynb", "a.py"):
        (folder / name).write_text("{}")
    with pytest.raises(ValueError, match="run make book first"):
        bundle(settings, folder, tmp_path)
    (folder / settings.wheel).write_text("wheel")
    path = bundle(settings, folder, tmp_path)
    with zipfile.ZipFile(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.namelist()}
        readme = archive.read(f"{path.stem}/README.md").decode()
    assert names == {"README.md", "a.ipynb", "b.ipynb", settings.wheel}
    assert settings.wheel in readme
    assert "scikit-learn" in readme


def test_the_version_stands_in_one_place():
    version = read_settings(ROOT).version
    listed = git(ROOT, "ls-files", "*.py", "*.toml", "*.yml", "*.cff", "Makefile", ".ci/run")
    names = [name for name in listed.split() if not name.startswith("tests/")]
    stated = [name for name in names if version in (ROOT / name).read_text("utf8")]
    assert stated == ["pyproject.toml"]
    citation = (ROOT / "CITATION.cff").read_text("utf8")
    assert "\nversion:" not in citation
    import vitbook

    assert vitbook.__version__ == version
