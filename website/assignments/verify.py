"""Prove every master, and print who gets how many points: make verify-assignments.

python -m website.assignments.verify            the public variant of each, and one drawn from a key
python -m website.assignments.verify --draws 20     so many drawn ones instead
"""

import argparse
import sys
from pathlib import Path

from website.assignments.draw import PUBLIC
from website.assignments.master import MasterError
from website.assignments.patience import EndlessError
from website.assignments.prove import Drawn, ProofError, draw_assignment
from website.pages.settings import version_of

ROOT = Path(__file__).resolve().parents[2]
LEAST = 8  # mutants


def keys(draws: int) -> list[bytes]:
    """The public secret, and others that are only for proofs."""
    return [PUBLIC, *(f"a key for proofs only, number {i}".encode() for i in range(draws))]


def table(drawn: Drawn) -> str:
    """One line for each answer: who, its points, and the cases that it fails."""
    master = drawn.master
    asked = f"{len(master.questions)} questions, {master.points:g} points, {master.minutes} minutes"
    lines = [f"{master.title}, variant {drawn.cases.variant}: {asked}"]
    for row in drawn.rows:
        failed = f"  fails {' '.join(row.failed)}" if row.failed else ""
        lines.append(f"  {row.question}  {row.points:g}/{row.of:g}  {row.who}{failed}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("masters", nargs="*", type=Path, help="default: all of assignments/")
    parser.add_argument("--draws", type=int, default=1, help="how many beside the public variant")
    options = parser.parse_args(arguments)
    failures = 0
    for path in options.masters or sorted((ROOT / "assignments").glob("a*.md")):
        for number, key in enumerate(keys(options.draws)):
            try:
                drawn = draw_assignment(path, key, version_of(ROOT))
            except (MasterError, ProofError, EndlessError) as error:
                failures += 1
                print(f"{path.name}, draw {number}: {error}", file=sys.stderr)
                continue
            mutants = [row for row in drawn.rows if row.who.startswith("mutant")]
            print(table(drawn) if number == 0 else f"  {drawn.name} holds", flush=True)
            print(f"  {len(mutants)} mutants, all caught", flush=True)
            for why in drawn.refused:
                print(f"  drawn again, since the draw before did not hold: {why}", flush=True)
            if len(mutants) < LEAST:
                failures += 1
                print(f"{path.name}: at least {LEAST} mutants are needed", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
