"""The grader is a distribution of its own: instructors get it, students do not."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]


def built(source, folder, *kinds):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run([*command, *kinds], cwd=source, check=True, capture_output=True)
    return sorted(folder.iterdir())


def test_the_students_wheel_and_sdist_hold_nothing_of_the_grader(tmp_path):
    wheel, sdist = built(ROOT, tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        names += archive.getnames()
    assert any("vitcheck/cases.py" in name for name in names)
    assert not [name for name in names if "gradebox" in name or "assignments/" in name]


def test_the_graders_wheel_is_whole_and_has_the_packages_version(tmp_path):
    (wheel,) = built(ROOT / "src/gradebox", tmp_path, "-t", "wheel")
    assert wheel.name == f"gradebox-{read_settings(ROOT).version}-py3-none-any.whl"
    source = ROOT / "src/gradebox"
    files = {path.relative_to(source).as_posix() for path in source.glob("gradebox/**/*.py")}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert files <= names
    assert not [name for name in names if name.startswith(("vitbook", "vitcheck", "tests"))]


def test_a_release_puts_the_grader_on_its_page_only():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf8"))
    steps = [step.get("run", "") for step in workflow["jobs"]["release"]["steps"]]
    assert steps.index("make publish") < steps.index("make grader")
    assert "_build/gradebox/*.whl" in steps[-1]


@pytest.mark.site
def test_the_site_holds_nothing_of_the_grader():
    files = [path.name for path in (ROOT / "_build/html").rglob("*") if path.is_file()]
    assert files
    assert not [name for name in files if "gradebox" in name]
