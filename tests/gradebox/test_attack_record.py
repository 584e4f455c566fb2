"""What the guide says of the attacks is about these attacks, and what it cites can be found."""

import json
import re
from pathlib import Path

from attacks.table import ATTACKS, GOALS

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "book/classroom/attacks.json"


def test_the_record_names_these_attacks_and_what_became_of_them():
    found = json.loads(RECORD.read_text("utf8"))
    assert list(found["attacks"]) == list(ATTACKS)
    assert found["total"] == len(ATTACKS)
    for name, row in found["attacks"].items():
        assert row["goal"] == GOALS[ATTACKS[name].succeeds]
        assert row["source"] == ATTACKS[name].source
        assert row["plain"]
        assert not row["bubblewrap"]
        assert not row["landlock"]


def test_the_guides_table_counts_what_is_recorded():
    guide = (ROOT / "book/classroom/instructors.md").read_text("utf8")
    found = json.loads(RECORD.read_text("utf8"))
    assert f"**{found['total']} attacks**" in guide
    rows = re.findall(r"^\| (.+) \|$", guide.partition("| goal | attacks |")[2], re.MULTILINE)[1:]
    for row, goal in zip(rows, found["goals"], strict=True):
        stopped = goal["stopped"]
        boxed = [stopped[name] - stopped["order"] for name in ("bubblewrap", "landlock")]
        ordered = stopped["order"] - stopped["process"]
        numbers = [goal["attacks"], stopped["process"], ordered, *boxed]
        assert row == f"{goal['goal']} | {' | '.join(map(str, numbers))}"
    sources = [one["source"] for one in found["attacks"].values() if one["source"]]
    assert f"\n{len(sources)} of them were published" in guide
    assert all(f"{{cite}}`{source}`" in guide for source in sources)


def test_what_was_published_is_in_the_books_list_of_works():
    works = (ROOT / "book/references.bib").read_text("utf8")
    for source in {attack.source for attack in ATTACKS.values()} - {""}:
        assert f"{{{source}," in works
