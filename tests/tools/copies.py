"""A copy of the repository, to write into, and mypy in it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]


def known(*patterns):
    """The files that git knows, or would know if they were added."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in sorted({*names.split("\0")} - {""}) if (ROOT / name).is_file()]


def copied(root):
    for name in known():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    return root


def warm():
    """Let mypy read the repository itself: what it finds in libraries need not be found again.

    The first time takes half a minute, which three tests would each take, side by side.
    """
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / "_build" / "mypy.lock"):
        command = [sys.executable, "-m", "mypy"]
        subprocess.run(command, cwd=ROOT, env=clean(), capture_output=True)


def mypy(root):
    """All that `make lint` lets mypy read, in a copy, with what mypy remembers from there.

    A folder on PYTHONPATH counts as installed, and mypy says nothing of what it only meets there
    through an import: with the copy's root on it, 22 errors were no error.
    """
    warm()
    for path in (ROOT / "_build/mypy").rglob("*.db"):  # which another test may be writing
        there = root / path.relative_to(ROOT)
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(there)) as new:
                old.backup(new)
    return subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=root, env=clean(), capture_output=True, text=True
    )


def clean():
    """The environment of a shell in which somebody types `make lint`."""
    inherited = {"PYTHONPATH", "MYPYPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return {name: value for name, value in os.environ.items() if name not in inherited}
