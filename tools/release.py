"""Make a release: one version, one commit, one tag. Nothing leaves this machine.

    python -m tools.release 0.2.0      (make release VERSION=0.2.0)

The version stands in pyproject.toml and nowhere else. It is written there, the section
"Unreleased" of CHANGELOG.md gets version and date, both are committed and tagged, and a second
commit begins the next development version. What is printed at the end publishes the release.

A tag may be lost: a copy need not have it. So a release is also known by its commit, whose subject
is "Release 0.2.0".

    python -m tools.release --find 0.2.0      the release's commit: git checkout $(...)
    python -m tools.release --list            all releases, the newest first
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

from website.pages.changelog import NAME, UNRELEASED, read_changes

ROOT = Path(__file__).resolve().parents[1]
NEXT = """\
Tagged v{version}. To publish it: git push origin {branch} v{version}
Should the tag be lost on the way:
  git tag -a v{version} -m 'Release {version}' $(python -m tools.release --find {version})
  git push origin v{version}"""
HEADING = f"## {UNRELEASED}\n"
RELEASE = re.compile(r"\d+\.\d+\.\d+")
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
    if not RELEASE.fullmatch(version):
        raise ValueError(f"a version has three numbers, like 0.2.0; got {version!r}")
    if changed := git(root, "status", "--porcelain"):
        raise ValueError(f"commit or drop this first:\n{changed}")
    there = releases(root)
    if there and number(version) <= number(there[0]):
        raise ValueError(f"{there[0]} is released already; take a later version")
    if read_changes(root)[0].empty:
        raise ValueError(f"{NAME} says nothing under {HEADING.strip()!r}")


def releases(root: Path) -> list[str]:
    """The versions that were released, by tag or by commit, the newest first."""
    tags = [tag.removeprefix("v") for tag in git(root, "tag", "--list", "v*").split()]
    subjects = git(root, "log", "--format=%s", "--grep", "^Release ").splitlines()
    found = {*tags, *(subject.removeprefix("Release ") for subject in subjects)}
    return sorted(filter(RELEASE.fullmatch, found), key=number, reverse=True)


def find(root: Path, version: str) -> str:
    """The commit of a release: that of its tag, else the one whose subject names it.

    Raises:
        ValueError: It was not released.
    """
    version = version.removeprefix("v")
    if git(root, "tag", "--list", f"v{version}"):
        return git(root, "rev-list", "-1", f"v{version}")
    for line in git(root, "log", "--format=%H %s", "--grep", "^Release ").splitlines():
        commit, _, subject = line.partition(" ")
        if subject == f"Release {version}":
            return commit
    there = ", ".join(releases(root)) or "none"
    raise ValueError(f"{version!r} was not released; released were: {there}")


def write_version(root: Path, version: str) -> None:
    path = root / "pyproject.toml"
    text, found = VERSION.subn(f'version = "{version}"', path.read_text("utf8"))
    if found != 1:
        raise ValueError(f"pyproject.toml states {found} versions; it should be one")
    path.write_text(text, "utf8")


def release(root: Path, version: str, today: datetime.date) -> None:
    """Commit and tag the release, and begin the next development version."""
    check(root, version)
    log = root / NAME
    dated = f"{HEADING}\n## {version} ({today.isoformat()})\n"
    log.write_text(log.read_text("utf8").replace(HEADING, dated, 1), "utf8")
    write_version(root, version)
    git(root, "commit", "-q", "-m", f"Release {version}", "pyproject.toml", NAME)
    git(root, "tag", "-a", f"v{version}", "-m", f"Release {version}")
    major, minor, patch = number(version)
    write_version(root, f"{major}.{minor}.{patch + 1}.dev0")
    git(root, "commit", "-q", "-m", f"After {version}", "pyproject.toml")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        match arguments:
            case ["--list"]:
                print("\n".join(releases(root)))
            case ["--find", version]:
                print(find(root, version))
            case [version]:
                release(root, version, datetime.date.today())
                print(NEXT.format(version=version, branch=git(root, "branch", "--show-current")))
            case _:
                raise SystemExit("Which version? make release VERSION=0.2.0")
    except ValueError as error:
        raise SystemExit(f"make release: {error}") from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
