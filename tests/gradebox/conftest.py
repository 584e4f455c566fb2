"""The tiny assignment's package, and the sandboxes that work here.

Where there is no bubblewrap, tests/conftest.py decides. The tests of Landlock are skipped where the
kernel has none, which nobody can install.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/gradebox"))

import tiny
from gradebox.package import load_package
from gradebox.sandbox import Sandbox


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The tiny assignment, as the grader reads it."""
    return load_package(tiny.package(tmp_path_factory.mktemp("package") / "tiny.gradebox.zip"))


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def sandbox(request, no_sandbox):
    """Each of the two sandboxes."""
    return working(request.param, no_sandbox)


@pytest.fixture(scope="session")
def bubblewrap(no_sandbox):
    return working("bubblewrap", no_sandbox)


@pytest.fixture(scope="session")
def landlock(no_sandbox):
    return working("landlock", no_sandbox)


def working(name: str, no_sandbox: Callable[[str], NoReturn]) -> Sandbox:
    """The sandbox of that name; skips, or fails where it is required, when it does not work."""
    complaint = Sandbox(name).complaint()
    if complaint is None:
        return Sandbox(name)
    if name == "bubblewrap":
        no_sandbox(complaint)
    pytest.skip(complaint)
