"""Install what the grader's sandboxes need, where that needs no question.

python -m tools.sandbox             says which of them work
python -m tools.sandbox --install   the same, after installing what is missing
"""

from __future__ import annotations

import argparse
import os
import sys

from gradebox.sandbox import Sandbox

PACKAGES = ["bubblewrap", "libseccomp2"]
HELP = """The grader's tests need a sandbox, and {complaint}.
On Debian or Ubuntu: sudo apt install bubblewrap libseccomp2. Elsewhere the grader refuses to run
students' code, and its tests are skipped."""


def in_chroot() -> bool:
    """Is the root folder of this process another than that of the machine's first process?

    There the kernel allows neither new user namespaces nor another root, so bubblewrap fails.
    """
    try:
        return not os.path.samefile("/", "/proc/1/root")
    except OSError:  # somebody else's process: only root may ask, and only root can chroot
        return False


def complaint() -> str | None:
    """Why bubblewrap does not work here; None where it does, and where nothing could mend it."""
    if sys.platform != "linux" or in_chroot():
        return None
    return Sandbox("bubblewrap").complaint()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true")
    if parser.parse_args().install and complaint() is not None:
        from tools.environment import apt_install

        apt_install(*PACKAGES)
    for name in ("bubblewrap", "landlock"):
        print(f"{name}: {Sandbox(name).complaint() or 'works'}")
    if (found := complaint()) is not None:
        raise SystemExit(HELP.format(complaint=found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
