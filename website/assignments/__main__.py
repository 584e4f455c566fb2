"""Draw an assignment, prove it, and write everything that is made from it.

    make assignment A=1 KEY_FILE=course.key     assignment 1, drawn from the secret in course.key
    make assignment A=1                         its one public variant, for who learns alone
    make assignment MASTER=path KEY_FILE=...    a master of your own, from anywhere
    python -m website.assignments --new-key course.key

Nothing is written before the proof holds: the solution gets all points, the blank notebook none,
every mutant is caught.
"""

import argparse
import sys
from pathlib import Path

from website.assignments.draw import PUBLIC, read_key, write_key
from website.assignments.prove import draw_assignment
from website.assignments.write import write_all
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]


def find_master(root: Path, number: str | None, master: Path | None) -> Path:
    """The master that was asked for.

    Raises:
        ValueError: there is none, or nothing was asked for.
    """
    there = sorted((root / "assignments").glob("a*.md"))
    if master is not None:
        if not master.is_file():
            raise ValueError(f"MASTER={master} is no file")
        return master
    names = ", ".join(path.stem[1:].partition("_")[0] for path in there)
    if not number:
        raise ValueError(f"which assignment? A={names.replace(', ', ' or A=')}, or MASTER=path")
    found = [path for path in there if path.stem.startswith(f"a{number}_")]
    if not found:
        raise ValueError(f"there is no assignment A={number}; there are {names}")
    return found[0]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("number", nargs="?", help="which assignment of assignments/")
    parser.add_argument("--master", type=Path, help="a master from anywhere instead")
    parser.add_argument("--key-file", type=Path, help="the instructor's secret; none: public")
    parser.add_argument("--out", type=Path, help="folder; default: _build/assignments")
    parser.add_argument("--new-key", type=Path, help="only write a new secret into this file")
    options = parser.parse_args(arguments)
    settings = read_settings(ROOT)
    out = options.out or ROOT / "_build" / "assignments"
    try:
        if options.new_key:
            write_key(options.new_key)
            print(f"{options.new_key}: a new secret. Keep it private, and keep a copy.")
            return 0
        path = find_master(ROOT, options.number, options.master)
        key = PUBLIC if options.key_file is None else read_key(options.key_file)
        drawn = draw_assignment(path, key, settings.version)
        folder = write_all(drawn, settings, out)
    except (ValueError, OSError) as error:
        print(f"make assignment: {error}", file=sys.stderr)
        return 1
    mutants = sum(row.who.startswith("mutant") for row in drawn.rows)
    print(
        f"{drawn.master.title}, variant {drawn.cases.variant}: the solution gets all "
        f"{drawn.master.points:g} points, the blank notebook 0, {mutants} mutants are caught."
    )
    if "dev" in settings.version:
        print(
            f"NOTE: {settings.version} is no release. The notebook's first cell installs this very "
            "version, which nobody has published: for a class, check out a release first."
        )
    print(f"Written to {folder}:")
    for file in sorted(folder.iterdir()):
        print(f"  {file.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
