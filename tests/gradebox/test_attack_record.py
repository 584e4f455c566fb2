"""What the guide says of the attacks is about these attacks, and what it cites can be found."""

import json
import re
from pathlib import Path

from attacks.table import ATTACKS

ROOT = Path(__file__).resolve().parents[2]
FOUND = json.loads((ROOT / "book/classroom/attacks.json").read_text("utf8"))


def test_the_record_names_these_attacks_and_what_became_of_them():
    assert list(FOUND["attacks"]) == list(ATTACKS)
    assert FOUND["total"] == len(ATTACKS)
    for name, row in FOUND["attacks"].items():
        assert (row["goal"], row["source"]) == (ATTACKS[name].goal, ATTACKS[name].source)
        assert (row["plain"], row["bubblewrap"], row["landlock"]) == (True, False, False)


def test_the_guides_table_counts_what_is_recorded_and_cites_what_was_published():
    guide = (ROOT / "book/classroom/instructors.md").read_text("utf8")
    assert f"**{FOUND['total']} attacks**" in guide
    rows = re.findall(r"^\| (.+) \|$", guide.partition("| goal | attacks |")[2], re.MULTILINE)[1:]
    for row, goal in zip(rows, FOUND["goals"], strict=True):
        stopped = goal["stopped"]
        boxed = [stopped[name] - stopped["order"] for name in ("bubblewrap", "landlock")]
        ordered = stopped["order"] - stopped["process"]
        numbers = [goal["attacks"], stopped["process"], ordered, *boxed]
        assert row == f"{goal['goal']} | {' | '.join(map(str, numbers))}"
    sources = [one["source"] for one in FOUND["attacks"].values() if one["source"]]
    assert f"\n{len(sources)} of them were published" in guide
    assert all(f"{{cite}}`{one}`" in guide for one in sources)  # which the build has to find
