"""Every attack reaches its goal with a plain grader, and nothing here.

`pytest -s` prints the table at the end: attack, its goal, the plain grader, ours.
"""

import os

import pytest
from attacks.arena import Arena
from attacks.table import ATTACKS, SECRET, Attack, disturbs
from tiny import SOLUTIONS

TABLE = {name: {} for name in ATTACKS}  # attack -> grader -> what it came to


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    found = Arena(tmp_path_factory.mktemp("arena"))
    yield found
    found.close()
    print(f"\n{table()}")


def table():
    """The attacks that were tried, as a table in Markdown."""
    graders = list(dict.fromkeys(grader for row in TABLE.values() for grader in row))
    lines = [" | ".join(["| attack", "goal", *graders, ""]), "|---" * (2 + len(graders)) + "|"]
    for name, row in TABLE.items():
        if row:
            cells = [row.get(grader, "not tried") for grader in graders]
            lines.append(" | ".join([f"| {name}", ATTACKS[name].succeeds.__name__, *cells, ""]))
    return "\n".join(lines)


def needs_root(name):
    if name == "settings of the kernel" and not os.access("/proc/sys/kernel/core_pattern", os.W_OK):
        pytest.skip("only root can change the kernel's settings")


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_succeeds_with_a_plain_grader(arena, name):
    needs_root(name)
    outcome = arena.plain(ATTACKS[name])
    reached = ATTACKS[name].succeeds(outcome)
    TABLE[name]["plain grader"] = "succeeds" if reached else "FAILS"
    assert reached, outcome


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_gains_nothing_in_bubblewrap(arena, bubblewrap, monkeypatch, name):
    gains_nothing(arena, bubblewrap, monkeypatch, name)


@pytest.mark.deep
@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_gains_nothing_behind_landlock(arena, landlock, monkeypatch, name):
    gains_nothing(arena, landlock, monkeypatch, name)


def gains_nothing(arena, sandbox, monkeypatch, name):
    monkeypatch.setenv("GRADER_TOKEN", SECRET)
    outcome, result = arena.ours(ATTACKS[name], sandbox, beside=True)
    reached = ATTACKS[name].succeeds(outcome)
    TABLE[name][sandbox.name] = "SUCCEEDS" if reached else f"nothing, {outcome.points:g} points"
    assert not reached, (outcome, result)
    assert (outcome.points, outcome.other) == (0, 10), (outcome, result)
    assert not outcome.written
    assert SECRET not in outcome.feedback
    assert result.status == ("unreadable" if ATTACKS[name].link_to else "ok")


def test_the_questions_that_an_attack_leaves_alone_keep_their_points(arena, bubblewrap):
    crash = ATTACKS["os._exit"].cells["q1"]
    attack = Attack(disturbs, {**SOLUTIONS, "q1": crash})
    outcome, result = arena.ours(attack, bubblewrap, beside=True)
    assert [question.points for question in result.questions] == [
        0,
        6,
        1,
        0,
    ]  # nothing was explained
    assert outcome.other == 10
