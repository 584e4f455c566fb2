"""The grader is a distribution of its own: instructors get it, students do not."""

import subprocess
import sys
import zipfile
from pathlib import Path

from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]


def test_the_graders_wheel_is_whole_and_has_the_packages_version(tmp_path):
    source = ROOT / "src/gradebox"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.iterdir()
    assert wheel.name == f"gradebox-{read_settings(ROOT).version}-py3-none-any.whl"
    files = {path.relative_to(source).as_posix() for path in source.glob("gradebox/**/*.py")}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert files <= names
    assert not [name for name in names if name.startswith(("vitbook", "vitcheck", "tests"))]
