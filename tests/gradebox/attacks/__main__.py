"""Attack by attack: what it reaches with a plain grader, and with ours.

PYTHONPATH=tests/gradebox .venv/bin/python -m attacks [bubblewrap | landlock]
"""

import sys
import tempfile
import time
from pathlib import Path

from gradebox.sandbox import find_sandbox

from attacks.arena import Arena
from attacks.table import ATTACKS


def main(name: str = "bubblewrap") -> int:
    sandbox, broken = find_sandbox(name), 0
    print(f"| attack | goal | plain grader | gradebox, {name} | s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder))
        for title, attack in ATTACKS.items():
            plain = attack.succeeds(arena.plain(attack))
            began = time.monotonic()
            outcome, result = arena.ours(attack, sandbox, beside=True)
            held = not attack.succeeds(outcome) and outcome.other == 10 and outcome.points == 0
            broken += held is not True or not plain
            words = f"{'nothing' if held else 'SUCCEEDS'}, {result.status}"
            words += f", {result.restarts} restarts" if result.restarts else ""
            seconds = time.monotonic() - began
            goal = attack.succeeds.__name__
            reached = "succeeds" if plain else "FAILS"
            print(f"| {title} | {goal} | {reached} | {words} | {seconds:.1f} |", flush=True)
        arena.close()
    print(f"\n{len(ATTACKS)} attacks, {broken} rows not as they should be")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
