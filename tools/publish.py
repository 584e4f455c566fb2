"""Publish the built site as a release: on the branch gh-pages, once as a whole and once for good.

    python -m tools.publish            push to origin
    python -m tools.publish REMOTE     push to another repository

The branch holds the newest release at its top, and each release in a folder of its own (v0.2.0/),
which no later release touches: a class that stays on one finds its pages, notebooks and package
there. Pages, notebooks and package come from the one build in _build/html, whose commit has to
be that of the release.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release import find, git
from website.pages.settings import BRANCH, read_settings

ROOT = Path(__file__).resolve().parents[1]


def tree_of(root: Path, folder: Path) -> str:
    """Write all files of ``folder`` into the repository's store; the name of their tree."""
    with tempfile.TemporaryDirectory() as scratch:
        index = {**os.environ, "GIT_INDEX_FILE": str(Path(scratch) / "index")}
        place = ["git", f"--git-dir={git(root, 'rev-parse', '--absolute-git-dir')}"]
        place.append(f"--work-tree={folder}")
        for words in (["add", "--all", "--force", "."], ["write-tree"]):
            done = subprocess.run(
                [*place, *words], cwd=folder, env=index, capture_output=True, text=True, check=True
            )
    return done.stdout.strip()


def published(root: Path, remote: str) -> str | None:
    """The commit that is published now, fetched; None before the first release."""
    if not git(root, "ls-remote", "--heads", remote, BRANCH):
        return None
    git(root, "fetch", "-q", remote, BRANCH)
    return git(root, "rev-parse", "FETCH_HEAD")


def publish(root: Path, site: Path, tag: str, remote: str) -> str:
    """Push ``site`` as the release ``tag``. Returns the new commit.

    Raises:
        ValueError: There is no site, its commit is not that of the release, the release is
            published already, or git could not do its part.
    """
    if not (site / "index.html").is_file():
        raise ValueError(f"there is no site in {site}: run make book first")
    here, released = git(root, "rev-parse", "HEAD"), find(root, tag)
    if here != released:
        raise ValueError(f"this commit is not that of {tag}: git checkout {released[:10]}")
    before = published(root, remote)
    listed = git(root, "ls-tree", before).splitlines() if before else []
    releases = [line for line in listed if line.split("\t")[1].startswith("v") and "tree" in line]
    releases = [line for line in releases if line.split("\t")[1][1:2].isdigit()]
    if any(line.split("\t")[1] == tag for line in releases):
        raise ValueError(f"{tag} is published already, and a release never changes")
    tree = tree_of(root, site)
    entries = [*git(root, "ls-tree", tree).splitlines(), *releases, f"040000 tree {tree}\t{tag}"]
    made = subprocess.run(
        ["git", "mktree"], cwd=root, input="\n".join(entries), capture_output=True, text=True
    )
    if made.returncode:
        raise ValueError(f"git mktree: {made.stderr.strip()}")
    who = ["-c", "user.name=release", "-c", "user.email=release@localhost"]
    parent = ["-p", before] if before else []
    message = f"Release {tag}"
    commit = git(root, *who, "commit-tree", made.stdout.strip(), *parent, "-m", message)
    git(root, "push", "-q", remote, f"{commit}:refs/heads/{BRANCH}")
    return commit


def main() -> int:
    remote = sys.argv[1] if len(sys.argv) > 1 else "origin"
    settings = read_settings(ROOT)
    try:
        publish(ROOT, ROOT / "_build" / "html", settings.tag, remote)
    except ValueError as error:
        raise SystemExit(f"make publish: {error}") from None
    print(f"Published {settings.tag} on {BRANCH}: {settings.release_url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
