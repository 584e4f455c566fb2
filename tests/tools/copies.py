"""A copy of the repository, to write into, and mypy in it."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]

# folder: why mypy does not read it, but for what other folders import from there
WITHOUT_TYPES = {"tests": "each is run at every change, which shows more than its types would"}


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


@contextmanager
def memory_of_mypy():
    """One process at a time lets mypy read the repository itself.

    What it finds in libraries need not be found again; the first time takes half a minute.
    """
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / "_build" / "mypy.lock"):
        yield


def mypy(root):
    """All that `make lint` lets mypy read, in a copy, with what mypy remembers from there.

    A folder on PYTHONPATH counts as installed, and mypy says nothing of what it only meets there
    through an import: with the copy's root on it, 22 errors were no error.
    """
    command = [sys.executable, "-m", "mypy"]
    with memory_of_mypy():
        subprocess.run(command, cwd=ROOT, env=clean(), capture_output=True)
        shutil.copytree(ROOT / "_build/mypy", root / "_build/mypy")
    return subprocess.run(command, cwd=root, env=clean(), capture_output=True, text=True)


def clean():
    """The environment of a shell in which somebody types `make lint`."""
    inherited = {"PYTHONPATH", "MYPYPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    inherited |= {"CI", "FORCE_COLOR"}  # oxfmt colours names where it sees one of them
    return {name: value for name, value in os.environ.items() if name not in inherited}
