"""Find the Chromium that the browser tests drive; install it where that needs no question.

    python -m tools.browser             prints the path
    python -m tools.browser --install   the same, after installing what is missing

The environment variable VITBOOK_CHROMIUM names another one.
"""

import argparse
import os
import shutil
import sys
import sysconfig
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Quiet, and safe in containers; the sandbox needs rights that root in a container does not have.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DRIVER = "playwright/driver/node"  # playwright's own program, in site-packages
DRIVER_HELP = (
    "The browser tests need playwright's own program, and it does not start ({reason}). "
    "On Debian or Ubuntu: sudo apt install libatomic1"
)
HELP = (
    "The browser tests need Chromium. On Debian: sudo apt install chromium. On Ubuntu, whose\n"
    "chromium is a snap that cannot read /tmp: install Google Chrome, or run\n"
    "'.venv/bin/python -m playwright install --with-deps chromium'. Elsewhere, or for another\n"
    "browser of the family, set VITBOOK_CHROMIUM to its path."
)


def find_chromium() -> str | None:
    """The path of a Chromium that can be driven, or None.

    Raises:
        ValueError: VITBOOK_CHROMIUM is set and is not a program.
    """
    named = os.environ.get("VITBOOK_CHROMIUM")
    if named:
        if shutil.which(named) is None:
            raise ValueError(f"VITBOOK_CHROMIUM: {named!r} is not a program")
        return shutil.which(named)
    for name in [*NAMES, MAC]:
        path = shutil.which(name)
        if path and not is_snap(Path(path)):
            return path
    return playwrights_own()


def is_snap(path: Path) -> bool:
    """Ubuntu's packages only start a snap, which sees neither /tmp nor hidden folders."""
    if "/snap/" in str(path.resolve()):
        return True
    with path.open("rb") as file:
        start = file.read(2000)
    return start.startswith(b"#!") and b"snap" in start


def playwrights_own() -> str | None:
    """A Chromium that playwright installed; found without starting playwright."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    mac = sys.platform == "darwin"
    caches = Path.home() / ("Library/Caches" if mac else ".cache") / "ms-playwright"
    folder = Path(named) if named and named != "0" else caches
    program = "chrome-mac*/*.app/Contents/MacOS/*" if mac else "chrome-linux*/chrome"
    found = sorted(folder.glob(f"chromium-*/{program}"))
    return str(found[-1]) if found else None


def driver_complaint() -> str | None:
    """Why playwright's own program does not start, as a sentence with the command that mends it;
    None when it does."""
    import subprocess

    driver = Path(sysconfig.get_path("purelib")) / DRIVER
    try:
        done = subprocess.run([driver, "--version"], capture_output=True, text=True)
    except OSError as error:
        return DRIVER_HELP.format(reason=error)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return DRIVER_HELP.format(reason=said[-1].split(": ", 1)[-1])


def install() -> None:
    """What a machine lacks: a library of playwright's, and Debian's Chromium, or where there is
    none playwright's build."""
    import subprocess

    from tools.environment import apt_install, as_root

    driver = driver_complaint() is None or (apt_install("libatomic1") and not driver_complaint())
    if find_chromium() is not None or (is_debian() and apt_install("chromium")):
        return
    if driver and as_root() is not None:
        command = [sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]
        subprocess.run(command, check=False)


def is_debian() -> bool:
    """Debian itself, not Ubuntu, whose package of that name is a snap."""
    release = Path("/etc/os-release")
    return release.is_file() and "\nID=debian\n" in "\n" + release.read_text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    try:
        if options.install and (driver_complaint() or find_chromium() is None):
            install()
        path = find_chromium()
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if path is None:
        raise SystemExit(HELP)
    if complaint := driver_complaint():
        raise SystemExit(complaint)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
