"""The tiny assignment's package, and the sandboxes that work here.

`VITBOOK_REQUIRE_SANDBOX=1` turns "no bubblewrap, skipped" into a failure; CI sets it. In a chroot,
where it may not work at all, its tests are skipped with the reason; so are those of Landlock where
the kernel has none, which nobody can install.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/gradebox"))

import tiny
from gradebox.package import load_package
from gradebox.sandbox import Sandbox

from tools.sandbox import in_chroot


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The tiny assignment, as the grader reads it."""
    return load_package(tiny.package(tmp_path_factory.mktemp("package") / "tiny.gradebox.zip"))


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def sandbox(request):
    """Each of the two sandboxes."""
    return working(request.param)


@pytest.fixture(scope="session")
def bubblewrap():
    return working("bubblewrap")


@pytest.fixture(scope="session")
def landlock():
    return working("landlock")


def working(name: str) -> Sandbox:
    """The sandbox of that name; skips, or fails where it is required, when it does not work."""
    complaint = Sandbox(name).complaint()
    if complaint is None:
        return Sandbox(name)
    required = name == "bubblewrap" and os.environ.get("VITBOOK_REQUIRE_SANDBOX") == "1"
    if required and not in_chroot():
        pytest.fail(f"the sandbox {name} is required: {complaint}", pytrace=False)
    pytest.skip(f"{name}{' in a chroot' if in_chroot() else ''}: {complaint}")
