"""Install what the grader's sandboxes need, where that needs no question.

python -m tools.sandbox             says which of them work
python -m tools.sandbox --install   the same, after installing what is missing
"""

import argparse
import sys
from pathlib import Path

from gradebox.sandbox import Sandbox

PACKAGES = ["bubblewrap", "libseccomp2"]
HELP = """The grader's tests need a sandbox, and {complaint}.
On Debian or Ubuntu: sudo apt install bubblewrap libseccomp2. Ubuntu 24.04 also forbids it to all
but root, until: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"""


def in_chroot(mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Is the root folder of this process an ordinary folder of the machine's?

    The kernel gives nobody a new root there, so bubblewrap fails. (A chroot into a mount is as good
    as a machine.)
    """
    try:
        return not any(line.split()[4] == "/" for line in mounts.read_text().splitlines())
    except OSError:  # a machine has /proc, a bare folder has not
        return True


def complaint() -> str | None:
    """Why bubblewrap does not work here; None where it does, and where nothing could mend it."""
    if sys.platform != "linux":
        return None
    found = Sandbox("bubblewrap").complaint()
    return None if found and in_chroot() else found


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
