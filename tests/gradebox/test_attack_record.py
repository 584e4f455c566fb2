"""What the guide says of the attacks is about these attacks, and what it cites can be found."""

import json
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


def test_what_was_published_is_in_the_books_list_of_works():
    works = (ROOT / "book/references.bib").read_text("utf8")
    for source in {attack.source for attack in ATTACKS.values()} - {""}:
        assert f"{{{source}," in works
