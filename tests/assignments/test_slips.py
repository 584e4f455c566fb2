"""Wrong answers that earlier cases gave all points: those of today do not."""

import json
import re
from pathlib import Path

import pytest
import yaml

from website.assignments.draw import Secret
from website.assignments.marks import without_marks
from website.assignments.prove import _Proof
from website.assignments.reader import read_master, read_name
from website.assignments.verify import keys

SLIPS = yaml.safe_load((Path(__file__).parent / "slips.yaml").read_text())
RAW = re.compile(r"(```\{raw-cell\}\n# (?:MUTANTS|ALTERNATIVES)\n).*?(?=\n```)", re.DOTALL)


def with_slips(master, slips, path):
    """The master with these answers in the place of all its mutants, and no other right ones."""
    parts = re.split(r"(?=```\{raw-cell\}\n# BEGIN QUESTION)", master.read_text())
    for i, part in enumerate(parts[1:], 1):
        own = json.dumps(slips.get(re.search(r"^name: (q\d+)$", part, re.MULTILINE)[1], []))
        parts[i] = RAW.sub(lambda raw, own=own: raw[1] + own * ("MUTANTS" in raw[1]), part)
    path.write_text("".join(parts))
    return path


@pytest.mark.parametrize("key", keys(2), ids=["public", "drawn", "drawn again"])
@pytest.mark.parametrize("stem", SLIPS)
def test_a_hidden_case_fails_each_slip(tmp_path, monkeypatch, stem, key):
    monkeypatch.setattr(_Proof, "_with_mistakes", lambda proof, case: case)  # no words are needed
    master = Path(__file__).parents[2] / f"assignments/{stem}.md"
    path = with_slips(master, SLIPS[stem], tmp_path / "slips.md")
    secret = Secret(key, read_name(path))
    drawn = read_master(path, secret.draw("variant 0"))
    before, passed = list(drawn.setup), []
    for question in drawn.questions:
        if question.name in SLIPS[stem]:
            proof = _Proof(question, before, secret, 0)
            hidden = {case.id for case in proof.cases if not case.public}
            slips = [row for row in proof.rows if row.who.startswith("mutant")]
            passed += [row.who for row in slips if not hidden & set(row.failed)]
            assert len(slips) == len(SLIPS[stem][question.name])
        if not question.manual:
            before.append(without_marks(question.solution))
    assert not passed
