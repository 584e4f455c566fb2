"""Make a release: one version, one commit, one tag. Nothing leaves this machine.

    python -m tools.release 0.2.0      (make release VERSION=0.2.0)

The version stands in pyproject.toml and nowhere else. It is written there, the section
"Unreleased" of CHANGELOG.md gets version and date, both are committed and tagged, and a second
commit begins the next development version. What is printed at the end publishes the release.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "## Unreleased\n"
VERSION = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def number(version: str) -> tuple[int, ...]:
    """The parts of "1.2.3" or of the tag "v1.2.3"; of "1.2.3.dev0" those of 1.2.3."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check(root: Path, version: str) -> None:
    """Refuse what cannot be released.

    Raises:
        ValueError: What is wrong, and what would be right.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"a version has three numbers, like 0.2.0; got {version!r}")
    if changed := git(root, "status", "--porcelain"):
        raise ValueError(f"commit or drop this first:\n{changed}")
    tags = [tag for tag in git(root, "tag", "--list", "v*").split() if number(tag)]
    if tags and number(version) <= max(map(number, tags)):
        raise ValueError(f"{max(tags, key=number)} is released already; take a later version")
    if not changes(root):
        raise ValueError(f"CHANGELOG.md says nothing under {UNRELEASED.strip()!r}")


def changes(root: Path) -> str:
    """What the change log says under "Unreleased"."""
    _, _, rest = (root / "CHANGELOG.md").read_text("utf8").partition(UNRELEASED)
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()


def write_version(root: Path, version: str) -> None:
    path = root / "pyproject.toml"
    text, found = VERSION.subn(f'version = "{version}"', path.read_text("utf8"))
    if found != 1:
        raise ValueError(f"pyproject.toml states {found} versions; it should be one")
    path.write_text(text, "utf8")


def release(root: Path, version: str, today: datetime.date) -> None:
    """Commit and tag the release, and begin the next development version."""
    check(root, version)
    log = root / "CHANGELOG.md"
    dated = f"{UNRELEASED}\n## {version} ({today.isoformat()})\n"
    log.write_text(log.read_text("utf8").replace(UNRELEASED, dated, 1), "utf8")
    write_version(root, version)
    git(root, "commit", "-q", "-m", f"Release {version}", "pyproject.toml", "CHANGELOG.md")
    git(root, "tag", "-a", f"v{version}", "-m", f"Release {version}")
    major, minor, patch = number(version)
    write_version(root, f"{major}.{minor}.{patch + 1}.dev0")
    git(root, "commit", "-q", "-m", f"After {version}", "pyproject.toml")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        raise SystemExit("Which version? make release VERSION=0.2.0")
    try:
        release(root, arguments[0], datetime.date.today())
    except ValueError as error:
        raise SystemExit(f"make release: {error}") from None
    branch, tag = git(root, "branch", "--show-current"), f"v{arguments[0]}"
    print(f"Tagged {tag}. To publish it: git push origin {branch} {tag}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
