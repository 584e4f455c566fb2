"""A class's layers against each other: what stops one entry stops no other, and ties are ties."""

import csv
import json
import pickle
from concurrent.futures import Future
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from gradebox.contest import YARDSTICKS, Rules, contested, enter, hold, kept
from gradebox.process import BrokenError
from gradebox.ranking import Entry, in_lines, ranked, write_csv
from gradebox.remote import SET_UP, EntryError, Remote, count_with_sandbox
from gradebox.sandbox import Limits
from gradebox.session import Session
from gradebox.sources import InputError

from gradebox import cli
from vitbook.book.records import FOLDER
from vitbook.comparison.candidate import mixer_model, prepare
from vitbook.comparison.contest import Ledger
from vitbook.comparison.layer import read_layer
from vitbook.comparison.tasks import BLOCK, BUDGET, TASKS, record_of

MIXER = """
import torch
from torch import nn
class MyMixing(nn.Module):
    def __init__(self, num_tokens):
        super().__init__()
        self.mix = nn.Linear(num_tokens, num_tokens)
    def forward(self, x):
        {body}
"""
RIGHT = MIXER.format(body="return self.mix(x.mT).mT")


def gives(words):
    """Calls a layer whose forward gives this, after what comes before it."""
    return MIXER.format(body=words)


OUT = {
    "loops for ever": (gives("while True: pass"), "did not end in time"),
    "ends its process": (gives("import os; os._exit(0)"), "ended the process"),
    "writes a file": (gives("open('/tmp/mine', 'w')"), "Error"),
    "opens the network": (
        gives("import socket; return x * socket.socket().fileno()"),
        "PermissionError",
    ),
    "reads the grader": (f"text = open({__file__!r}).read()", 'its file stops and says "line 1: '),
    "takes much memory": (gives("return x + torch.zeros(2**31).sum()"), "allocate"),
    "gives another shape": (gives("return x[:, 1:]"), "must be of (4, 16, 64)"),
    "gives another type": (gives("return x.double()"), "torch.float32; it is of (4, 16, 64), "),
    "is no Python": ("class", 'its file stops and says "SyntaxError'),
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory, bubblewrap):
    """A contest of seconds: few images, few updates."""
    folder = tmp_path_factory.mktemp("records")
    for name in (BLOCK, TASKS["places"].record):
        content = json.loads((FOLDER / f"{name}.json").read_text())
        content["settings"]["counts"] = {"train": 64, "validation": 20, "test": 20}
        content["settings"]["training"] |= {"warmup_steps": 1}
        content["choice"] |= {"grid": [0.002, 0.004], "limit": 2}
        for run in content["runs"]:  # a budget of three updates
            run["metrics"]["until_half"] = [3 / BUDGET] * 20
        (folder / f"{name}.json").write_text(json.dumps(content))
    limits = Limits(call_s=1, memory_mb=1024)
    return Rules("MyMixing", "places", 3, 1, 7, limits, bubblewrap, folder)


class Here:
    """The processes of a contest, in this one."""

    __init__ = __exit__ = lambda self, *options, **named: None

    def __enter__(self):
        return self

    def submit(self, call, *given):
        done = Future()
        try:
            done.set_result(call(*pickle.loads(pickle.dumps(given))))
        except Exception as error:
            done.set_exception(error)
        return done


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Only the widths that attention and the mixer get, and no further processes."""
    monkeypatch.setattr("vitbook.comparison.candidate.WIDTHS", (48, 64))
    monkeypatch.setattr("gradebox.contest.ProcessPoolExecutor", Here)


@pytest.fixture
def folder(tmp_path):
    """Where a contest keeps what it has."""
    (tmp_path / "entries").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", OUT)
def test_an_entry_that_cannot_be_compared_is_out_with_a_sentence(name, rules, folder):
    source, words = OUT[name]
    entry = enter("ada", source, folder, rules)
    assert entry.times == []
    assert words in entry.said
    assert len(entry.said.splitlines()) == 1
    assert kept(folder, "ada", source, rules) == entry
    assert kept(folder, "ada", source + "#", rules) is None
    for other in ({"first": 8}, {"length": 2}, {"seeds": 5}, {"task": "labels"}):
        assert kept(folder, "ada", source, replace(rules, **other)) is None


@pytest.fixture
def remote(rules):
    with Session(rules.sandbox, rules.limits, SET_UP) as session:
        yield Remote(session, YARDSTICKS["attention"].format(name="MyMixing"), "MyMixing")


def test_a_layer_in_the_sandbox_learns_as_one_that_is_not(remote, rules, tmp_path):
    record = record_of("places", rules.records)
    (tmp_path / "mine.py").write_text(YARDSTICKS["attention"].format(name="MyMixing"))
    far = mixer_model(remote, 48, 3, record)
    near = mixer_model(read_layer(f"{tmp_path / 'mine.py'}:MyMixing"), 48, 3, record)
    images, labels = torch.rand(5, 3, 32, 32), torch.randint(4, (5 * 16,))
    pairs = list(zip(far.parameters(), near.parameters(), strict=True))
    with torch.no_grad():
        for ours, theirs in pairs:
            ours.copy_(theirs)
    for model in (far, near):
        F.cross_entropy(model(images).flatten(0, 1), labels).backward()
    assert all(torch.equal(ours.grad, theirs.grad) for ours, theirs in pairs)
    decayed = [n.endswith("weight") for n, _ in far.named_parameters()]
    assert decayed == [n.endswith("weight") for n, _ in near.named_parameters()]


def test_attention_in_the_sandbox_gets_the_width_and_the_updates_of_the_record(remote):
    record = record_of("places")
    whole, steps = record.settings["models"]["ViT"], record.settings["training"]["steps"]
    found = prepare("x.py:MyMixing", record, layer=remote, count=count_with_sandbox)
    assert (found.width, found.multiplies) == (whole["embed_dim"], whole["multiplies"])
    assert found.steps == found.whole == steps


def test_dropout_in_the_sandbox_is_drawn_anew_in_each_step(rules):
    with Session(rules.sandbox, rules.limits, SET_UP) as session:
        layer = Remote(session, gives("return nn.functional.dropout(x)"), "MyMixing")(
            embed_dim=64, num_tokens=16, grid=(4, 4), num_heads=4
        )
        x = torch.ones(1, 16, 64)
        assert not torch.equal(layer(x), layer(x))


LIES = {
    "a count below zero": ("contest_multiplies = lambda *_: -1", "cannot be counted"),
    "no parameters": ("contest_make = lambda *_: 3", "not what a layer has"),
    "half parameters": (
        "import torch\ncontest_make = lambda *_: (0, {'w': torch.ones(2).half()})",
        "must be of float32",
    ),
    "gradients of another shape": (
        "import torch\ncontest_backward = lambda *_: (torch.ones(1), {})",
        "its gradient must be of",
    ),
    "no gradients": ("contest_backward = lambda *_: 3", "its gradients are none"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_a_file_makes_of_the_calls_themselves_is_not_believed(name, rules, tmp_path):
    lie, words = LIES[name]
    with pytest.raises(EntryError, match=words):
        contested("ada", f"{RIGHT}\n{lie}", tmp_path / "ada", rules)


SPY = """
import gc, sys
from torch import nn, Tensor
class MyMixing(nn.Module):
    def forward(self, x):

        found = [t for t in gc.get_objects() if isinstance(t, Tensor)]
        labels = [t for t in found if not t.is_floating_point()]
        images = [t for t in found if t.ndim == 4]
        if images or labels or "recall" in str(sys.argv):
            raise RuntimeError("found them")
        return x
"""


def test_no_image_no_label_and_no_seed_of_them_is_in_the_sandbox(rules, folder):
    assert len(enter("spy", SPY, folder, rules).times) == 3


def test_a_contest_goes_on_where_it_stopped_and_equal_layers_tie(rules, tmp_path):
    files, out = tmp_path / "in", tmp_path / "out"
    files.mkdir()
    for name, layer in {"ada": RIGHT, "bob": RIGHT, "carl": gives("return x[:, 1:]")}.items():
        (files / f"{name}.py").write_text(layer)
    told = []
    assert hold(files, out, rules, say=told.append) == 0
    with open(out / "contest.csv", newline="") as file:
        rows = {row["entrant"]: row for row in csv.DictReader(file)}
    ranks = {"(attention)": "", "(no mixing)": "", "ada": "1=", "bob": "1=", "carl": ""}
    assert {name: row["rank"] for name, row in rows.items()} == ranks
    assert rows["ada"]["learned"] == rows["bob"]["learned"] == "0 of 3"
    assert "must be of (4, 16" in rows["carl"]["said"]
    assert len(told) == 5

    def now():
        times = {path: path.stat().st_mtime_ns for path in (out / "entries").iterdir()}
        return times, (out / "contest.csv").read_bytes()

    before = now()
    assert hold(files, out, replace(rules, first=0), say=told.append) == 0
    assert now() == before
    with pytest.raises(InputError, match="holds a contest of MyMixing by places"):
        hold(files, out, replace(rules, name="Other"))
    assert cli.main(["--forget", "ada", "--out", str(out)]) == 0
    assert not list((out / "entries").glob("ada*"))


def test_a_machine_that_fails_is_no_entrys_fault(rules, tmp_path, monkeypatch):
    (tmp_path / "ada.py").write_text(RIGHT)

    def broken(*_):
        raise BrokenError("the sandbox ended")

    monkeypatch.setattr("gradebox.session.fork_server_for", broken)
    told = []
    assert hold(tmp_path, tmp_path / "out", rules, say=told.append) == 1
    assert len(told) == 3
    assert told[2] == "not run, by this machine's fault: ada: MachineError: the sandbox ended"
    monkeypatch.undo()
    assert kept(tmp_path / "out", "ada", RIGHT, rules) is None


def test_a_training_that_is_done_is_not_repeated(rules, folder, monkeypatch):
    first = enter("ada", RIGHT, folder, rules)
    (folder / "entries/ada.json").unlink()
    monkeypatch.setattr(Ledger, "add", lambda *given: pytest.fail("trained again"))
    assert enter("ada", RIGHT, folder, rules) == first


def test_a_rank_counts_who_is_shown_to_be_better_and_all_else_is_a_tie():
    times = {"ada": [0.1, 0.13, 0.12], "bob": [0.11, 0.11, 0.1], "carl": [0.7, 0.71, 0.82]}
    entries = [Entry(*one) for one in times.items()]
    entries.append(Entry("dora", said="a call of it: it did not end in time"))
    entries.append(Entry("(floor)", [1.0, 1.0, 1.0]))
    rows = ranked(entries, ("floor",))
    ranks = {"bob": "1=", "ada": "1=", "carl": "3", "(floor)": "", "dora": ""}
    assert [(row["entrant"], row["rank"]) for row in rows] == list(ranks.items())
    assert rows[0]["against floor"] == "better"
    assert rows[3]["against floor"] == ""
    assert in_lines(rows)[-1].endswith("it did not end in time")


def test_with_every_further_entry_more_has_to_be_shown_and_no_yardstick_takes_a_rank():
    near = [Entry("ada", [0.2, 0.2, 0.2]), Entry("bob", [0.24, 0.26, 0.28])]
    assert [row["rank"] for row in ranked(near, ())] == ["1", "2"]
    more = [Entry("(floor)", [0.01, 0.01, 0.012]), Entry("(top)", [0.9, 0.9, 0.8])]
    ranks = {row["entrant"]: row["rank"] for row in ranked([*near, *more], ("floor", "top"))}
    assert ranks == {"ada": "1=", "bob": "1=", "(floor)": "", "(top)": ""}


def test_a_layer_is_judged_on_other_seeds_and_images_than_its_rate_is_chosen_on(
    rules, folder, monkeypatch
):
    asked = []

    def never_learns(layer, plan, rate, seed, part, *more):
        asked.append((part, seed))
        return {"loss": rate, "half": 0}

    monkeypatch.setattr("gradebox.contest.train_layer", never_learns)
    entry = enter("ada", RIGHT, folder, rules)
    chosen, judged = ({at for of, at in asked if of == part} for part in ("validation", "test"))
    assert chosen
    assert not chosen & judged
    assert entry.times == [1.0] * len(judged) == [1.0] * rules.seeds  # of the budget, all


def test_a_name_or_a_sentence_is_no_formula_of_the_table(tmp_path):
    write_csv(tmp_path / "contest.csv", ranked([Entry("=1+1", said="@SUM(A1)")], ()))
    assert "'=1+1,,'@SUM(A1)" in (tmp_path / "contest.csv").read_text()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--contest", "MyMixing"], "needs FOLDER and --out"),
        (["IN", "--out", "OUT", "--contest", "my mixing"], "needs the name of a class"),
        (["nowhere", "--out", "OUT", "--contest", "A"], "must be a folder"),
        (["IN", "--out", "OUT", "--contest", "A"], "holds no STUDENT.py"),
        (["IN", "--out", "OUT", "--contest", "A", "--seeds", "2"], "at least 3 --seeds"),
        (["IN", "--out", "OUT", "--contest", "A", "--length", "0"], "a --length up to 100"),
    ],
)
def test_what_the_command_cannot_use_is_named(asked, words, tmp_path, capsys, bubblewrap):
    (tmp_path / "in").mkdir()
    places = {"IN": str(tmp_path / "in"), "OUT": str(tmp_path / "out")}
    assert cli.main([places.get(word, word) for word in asked]) == 2
    assert words in capsys.readouterr().err
