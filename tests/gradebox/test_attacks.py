"""Every attack reaches its goal with a plain grader, and nothing here.

What stops it is measured too: each is also tried without a sandbox, where an answer runs in a
process of its own and is compared outside of it, with all notebooks at once ("process") and in
phases ("order"). Marked with two jobs, somebody innocent beside it. In `make test` one attack for
each goal shows that the plain grader falls, and all are tried in bubblewrap, but of those that wait
for an accomplice the first alone; `make test-deep` tries all with all. `make attacks` does so, too,
and prints and records what stopped each.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from attacks.arena import Arena
from attacks.table import ATTACKS, REACHED, SECRET
from gradebox.sandbox import Sandbox
from tiny import SOLUTIONS

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "book/classroom/attacks.json"
WRITE_TO = os.environ.get("ATTACKS_JSON")  # set by `make attacks`
GRADERS = ("plain", "process", "order", "bubblewrap", "landlock")
TABLE = {name: {} for name in ATTACKS}  # attack -> grader -> did it reach its goal?


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    found = Arena(tmp_path_factory.mktemp("arena"))
    yield found
    found.close()
    if WRITE_TO and all(set(row) == set(GRADERS) for row in TABLE.values()):
        Path(WRITE_TO).write_text(json.dumps(record(), indent=1) + "\n", "utf8")
    elif WRITE_TO:
        print(f"{WRITE_TO} stays as it was: not every attack was tried with every grader")


def record():
    """What was tried, as it is written down: by attack, and counted by goal."""
    attacks = {
        name: {"goal": ATTACKS[name].goal, "source": ATTACKS[name].source, **row}
        for name, row in TABLE.items()
    }
    goals = []
    for goal in REACHED:
        rows = [row for row in attacks.values() if row["goal"] == goal]
        stopped = {grader: sum(row.get(grader) is False for row in rows) for grader in GRADERS}
        goals.append({"goal": goal, "attacks": len(rows), "stopped": stopped})
    return {"total": len(attacks), "goals": goals, "attacks": attacks}


def needs_root(name):
    if name == "settings of the kernel" and not os.access("/proc/sys/kernel/core_pattern", os.W_OK):
        pytest.skip("only root can change the kernel's settings")


ONE_EACH = {next(name for name in ATTACKS if ATTACKS[name].goal == goal) for goal in REACHED}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ONE_EACH else pytest.mark.deep) for n in ATTACKS]
)
def test_the_attack_succeeds_with_a_plain_grader(arena, name):
    needs_root(name)
    outcome = arena.plain(ATTACKS[name])
    TABLE[name]["plain"] = ATTACKS[name].succeeds(outcome)
    assert TABLE[name]["plain"], outcome


@pytest.mark.deep
@pytest.mark.parametrize("grader", ["process", "order"])
@pytest.mark.parametrize("name", ATTACKS)
def test_what_stops_it_without_a_sandbox_is_as_recorded(arena, monkeypatch, name, grader):
    needs_root(name)
    monkeypatch.setenv("GRADER_TOKEN", SECRET)
    outcome, result = arena.ours(ATTACKS[name], Sandbox("unsafe"), in_order=grader == "order")
    TABLE[name][grader] = ATTACKS[name].succeeds(outcome)
    if not WRITE_TO:
        recorded = json.loads(RECORD.read_text("utf8"))["attacks"][name][grader]
        assert TABLE[name][grader] == recorded, (outcome, result)


PASSED_ON = [name for name, attack in ATTACKS.items() if attack.accomplice]


@pytest.mark.deep
@pytest.mark.parametrize("name", PASSED_ON)
def test_what_is_passed_on_arrives_when_all_are_marked_at_once_and_in_order_too_late(arena, name):
    def succeeds(in_order):
        return ATTACKS[name].succeeds(arena.ours(ATTACKS[name], Sandbox("unsafe"), in_order)[0])

    assert any(succeeds(in_order=False) for _ in range(4))  # it depends on who comes first
    assert not succeeds(in_order=True)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.deep if n in PASSED_ON[1:] else ()) for n in ATTACKS],
)
def test_the_attack_gains_nothing_in_bubblewrap(arena, bubblewrap, monkeypatch, name):
    gains_nothing(arena, bubblewrap, monkeypatch, name)


@pytest.mark.deep
@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_gains_nothing_behind_landlock(arena, landlock, monkeypatch, name):
    gains_nothing(arena, landlock, monkeypatch, name)


def gains_nothing(arena, sandbox, monkeypatch, name):
    monkeypatch.setenv("GRADER_TOKEN", SECRET)
    outcome, result = arena.ours(ATTACKS[name], sandbox)
    reached = ATTACKS[name].succeeds(outcome)
    TABLE[name][sandbox.name] = reached
    assert not reached, (outcome, result)
    assert (outcome.points, outcome.other) == (0, 10), (outcome, result)
    assert not outcome.written
    assert SECRET not in outcome.feedback
    assert result.status == ("unreadable" if ATTACKS[name].link_to else "ok")


def test_the_questions_that_an_attack_leaves_alone_keep_their_points(arena, bubblewrap):
    attack = ATTACKS["os._exit"]
    attack = replace(attack, cells={**SOLUTIONS, **attack.cells})
    outcome, result = arena.ours(attack, bubblewrap)
    assert [question.points for question in result.questions] == [0, 6, 1, 0]
    assert outcome.other == 10
