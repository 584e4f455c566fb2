"""A layer of one's own beside the record's: what is equal, and what cannot be compared."""

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from experiments.machinery.experiment import checksum
from experiments.machinery.generated import LEARNED
from experiments.token_mixing import mixing_pictures
from experiments.token_mixing import time_to_learn as time_to_learn_record
from experiments.token_mixing.mixing_recall import images_of
from experiments.token_mixing.together import Together
from vitbook.book.intervals import Interval
from vitbook.book.records import FOLDER, load_record
from vitbook.command.cli import main
from vitbook.comparison import contest, garments_task
from vitbook.comparison.candidate import mixer_model, prepare
from vitbook.comparison.contest import compare
from vitbook.comparison.layer import read_layer, source_of
from vitbook.comparison.recall_task import RECALL_GUESS, looks_until, time_to_learn
from vitbook.comparison.tasks import BLOCK, BUDGET, SEEDS, TASKS, record_of
from vitbook.comparison.times import (
    Times,
    by_time,
    ratio,
    ratio_in_words,
)
from vitbook.comparison.verdict import (
    BESIDE,
    Contest,
    difference_in_words,
    in_short,
)
from vitbook.data import ImageSet
from vitbook.data.recall import recall
from vitbook.models.cost import count_parameters
from vitbook.training import TrainConfig

pytestmark = pytest.mark.slow  # models are trained

# Instruction sets on which the last bits of float32 noise are those of the records
AS_RECORDED = ("AVX2", "AVX512")
LAYERS = """
import torch
from torch import nn
from vitbook.layers.attention import MultiHeadSelfAttention

class Ours(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attention = MultiHeadSelfAttention(embed_dim=embed_dim, num_heads=num_heads)
    def forward(self, x):
        return self.attention(x)

class Neighbours(nn.Module):
    def __init__(self, grid):
        super().__init__()
        self.grid, self.pool = grid, nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    def forward(self, x):
        y = x.mT.unflatten(2, self.grid)
        return (self.pool(y) - y).flatten(2).mT

class Theirs(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.a = nn.MultiheadAttention(embed_dim, 2)
    def forward(self, x):
        return self.a(x, x, x)[0]

class Shorter(nn.Module):
    def forward(self, x):
        return x[:, 1:]

class Cut(nn.Module):
    def forward(self, x):
        return x.detach()

class Dice(nn.Module):
    def forward(self, x):
        return x * torch.rand(1)

class Infinite(nn.Module):
    def forward(self, x):
        return x / 0

class Fixed(nn.Module):
    def forward(self, x):
        return x.view(1, 16, 64)

class Asks(nn.Module):
    def __init__(self, temperature):
        super().__init__()

class Heavy(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(300, 1000))
    def forward(self, x):
        return x

class Never(nn.Module):
    def __init__(self, embed_dim):
        raise ValueError("not today")

def nothing():
    return 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("layer") / "layers.py"
    path.write_text(LAYERS)
    return path


REFUSED = {
    "Theirs": "looks at the other images of the batch",
    "Shorter": "must give the shape that it takes: for (4, 16,",
    "Cut": "cuts the gradient",
    "Dice": "another answer to the same tokens",
    "Infinite": "nan or inf",
    "Fixed": "refuses tokens of (4, 16,",
    "Asks": "asks for temperature, which has no default",
    "Heavy": "no width gives about 48,244 parameters",
    "Never": "cannot be made with any even width from 16 to 160; D = 160: not today",
    "nothing": "must make a torch.nn.Module, got int",
    "Nobody": "has no class Nobody",
    "nowhere.py:Layer": "LAYER must be FILE.py:CLASS of a file that exists",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compared_is_refused_in_one_sentence(file, name, tmp_path, capsys):
    layer = name if ":" in name else f"{file}:{name}"
    assert main(["compare", layer, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert REFUSED[name] in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", TASKS)
def test_a_layer_gets_as_many_parameters_and_multiplications_as_that_of_the_record(file, task):
    record = record_of(task)
    whole, steps = record.settings["models"]["ViT"], record.settings["training"]["steps"]
    found = prepare(f"{file}:Ours", record, task)  # the very layer of the record
    assert (found.width, found.parameters) == (whole["embed_dim"], whole["parameters"])
    assert found.multiplies == whole["multiplies"]
    assert found.steps == found.whole == steps
    found = prepare(f"{file}:Neighbours", record, task)
    assert found.parameters == pytest.approx(whole["parameters"], rel=0.05)
    assert found.steps * found.multiplies == pytest.approx(steps * whole["multiplies"], rel=0.01)
    layer = read_layer(f"{file}:Neighbours")
    model = mixer_model(layer, found.width, 0, record, TASKS[task].read_out)
    assert count_parameters(model) == found.parameters
    sizes = record.settings["images"]
    images = torch.rand(2, sizes["in_channels"], sizes["image_size"], sizes["image_size"])
    read = {"garments": (2, 10)}.get(task, (2, 16, 4))
    assert model(images).shape == read


class Here(nullcontext):
    """The processes of a contest, in this one."""

    def __init__(self, *options, **named):
        super().__init__(self)

    def submit(self, call, *given):
        done = Future()
        done.set_result(call(*given))
        return done


@pytest.fixture
def small(tmp_path, monkeypatch, small_image_files):
    """The records with few images and updates, and results of their own: contests of seconds."""
    monkeypatch.setattr(contest, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(garments_task, "PER_CLASS", LEARNED)
    garments_task.garment_images.cache_clear()
    folder = tmp_path / "records"
    folder.mkdir()
    monkeypatch.setattr("vitbook.comparison.tasks.TRIALS", 1)
    for name in {BLOCK, *(task.record for task in TASKS.values())}:
        content = json.loads((FOLDER / f"{name}.json").read_text())
        content["settings"]["counts"] = {"train": 64, "validation": 20, "test": 20}
        content["settings"]["training"] |= {"steps": 3, "warmup_steps": 1}
        content["settings"]["trial_seeds"] = 1
        content["choice"]["grid"] = [0.002, 0.004]
        if name == TASKS["places"].record:
            content["settings"]["looks"]["first"] = 2
            for run in content["runs"]:
                if run["condition"]["model"] == "ViT":
                    run["metrics"]["until_half"] = [0.5] * 20
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_contest_goes_on_where_it_was_stopped(file, small, tmp_path):
    mine = tmp_path / "mine.py"
    shutil.copy(file, mine)
    first = compare(f"{mine}:Ours", tmp_path / "out", workers=1, progress=False, folder=small)
    lines = (tmp_path / "out" / "trainings.jsonl").read_text().splitlines()
    assert len(lines) >= 2 + 5
    kept = lines[:3]
    (tmp_path / "out" / "trainings.jsonl").write_text("\n".join(kept) + "\n")
    again = compare(f"{mine}:Ours", tmp_path / "out", workers=1, progress=False, folder=small)
    assert again == first
    now = (tmp_path / "out" / "trainings.jsonl").read_text().splitlines()
    assert now[:3] == kept
    assert len(now) == len(lines)


EDITED = '"""Mine."""\nimport torch\nfrom torch import nn\nN = 3\ndef help(x):\n    return x + N\n'
EDITED += "class Mine(nn.Module):\n    def forward(self, x):\n        return help(x)\n"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("", "", True),
        ('"""Mine."""\n', "", True),
        ("\nclass", "\nclass Other(nn.Module):\n    pass\nclass", True),
        ("        return", "        # a remark\n        return", True),
        ("help(x)\n", "help(2 * x)\n", False),
        ("x + N", "x - N", False),
        ("N = 3", "N = 4", False),
        ("N = 3", "N = 3\ntorch.set_default_dtype(torch.float64)", False),
    ],
)
def test_a_training_is_kept_while_the_layer_and_what_it_uses_stay_the_same(
    old, new, same, tmp_path
):
    path = tmp_path / "mine.py"
    path.write_text(EDITED)
    before = source_of(f"{path}:Mine")
    assert old in EDITED
    path.write_text(EDITED.replace(old, new, 1))
    assert (source_of(f"{path}:Mine") == before) == same


@pytest.mark.parametrize(
    ("task", "parameters"), [("places", "48,244"), ("labels", "48,244"), ("garments", "43,978")]
)
def test_the_page_holds_the_verdict_a_table_and_a_figure(
    file, small, tmp_path, capsys, monkeypatch, small_image_files, task, parameters
):
    monkeypatch.setattr(contest, "record_of", lambda task, folder: record_of(task, small))
    out = tmp_path / "out"
    asked = ["compare", f"{file}:Ours", "--out", str(out), "--no-progress"]
    asked += ["--task", task] if task != "places" else []
    asked += ["--root", str(small_image_files)] if task == "garments" else []
    assert main(asked) == 0
    printed, timed = capsys.readouterr().out, TASKS[task].timed
    assert printed.startswith(
        f"Ours: D = 48, {parameters} parameters, 3 updates{' at most' if timed else ''}; "
    )
    assert re.search(r"^learning rate [\d.e-]+; 5 trainings for the test$", printed, re.M)
    page = (out / "index.html").read_text()
    told = json.loads((out / "verdict.json").read_text())
    assert told["sentence"] in printed.replace("\n", " ")
    assert ("has not learned within this budget" in told["sentence"]) == bool(timed)
    record = record_of(task, small)
    others = [c["model"] for c in record.conditions] if timed else BESIDE
    assert page.count("--mean:") == len(others) + 1
    assert "<img" not in page, "the figure is drawn by the page, in its colours"
    for name in (*others, "Ours"):
        assert f'<th scope="row">{name}</th>' in page
    assert f"The task, {task}: " in page
    assert f"The best guess is right in {100 * TASKS[task].guess:.1f}\N{NO-BREAK SPACE}%" in page
    assert ("after 25% of the updates" in page) == (task == "garments")
    assert told["task"] == task
    assert len(told["found"]) == 5
    assert all(0 <= one["accuracy"] <= 1 for one in told["found"])


def test_fifteen_more_seeds_follow_where_one_of_five_learns(file, small, tmp_path, monkeypatch):
    monkeypatch.setattr(contest, "record_of", lambda task, folder: record_of(task, small))

    def trained(of, rate, seed, part, *where):
        right = seed == learns
        return {"loss": rate, "accuracy": 0.3 + right, "half": 2 * right, "most": 0}

    monkeypatch.setattr(contest, "train_one", trained)
    seeds = []
    for learns in (SEEDS[4], SEEDS[5]):
        found = compare(f"{file}:Ours", tmp_path / str(learns), progress=False)
        seeds.append(len(found.found))
    assert seeds == [20, 5]


def test_a_model_learns_as_those_of_the_record_and_is_asked_as_often():
    given = record_of("places").settings
    at = given["looks"]
    assert looks_until(7200, at["first"], at["ratio"]) == time_to_learn_record.looks_of(7200)
    images, labels = time_to_learn_record.images_of("validation", 0.1)
    known, asked = ImageSet(images[:18], labels[:18]), ImageSet(images[18:], labels[18:])
    recipe = {"steps": 9, "batch_size": 4, "warmup_steps": 4, "learning_rate": 4e-3}
    models = [time_to_learn_record.build("ViT", 3, "place") for _ in range(2)]
    whole = Together(models[1:], known, TrainConfig(**recipe), (3,))
    losses = []
    for done in range(1, 10):
        whole.update()
        losses += [whole.answered(asked)[0].item()] if done in (5, 9) else []
    found = time_to_learn(models[0], known, asked, TrainConfig(**recipe, seed=3), (5, 9))
    assert found["loss"] == pytest.approx(sum(losses) / 2, rel=1e-4)
    assert (found["half"], found["most"]) == (0, 0)


def test_a_training_ends_with_its_answers_and_notes_when_they_were_right(monkeypatch):
    shares = iter([(1.0, 0.3), (0.8, 0.6), (0.4, 0.7), (0.2, 0.96), (0.1, 1.0)])
    monkeypatch.setattr("vitbook.comparison.recall_task.answered", lambda *_: next(shares))
    known = ImageSet(torch.rand(8, 3, 32, 32), torch.zeros(8, 16, dtype=torch.long))
    model = time_to_learn_record.build("ViT", 0, "place")
    config = TrainConfig(steps=6, batch_size=4, warmup_steps=1)
    found = time_to_learn(model, known, known, config, (1, 2, 3, 4, 6))
    assert found == {"half": 2, "most": 4, "accuracy": 0.96, "loss": pytest.approx(2.4 / 5)}


RATIOS = {  # of medians: ours, our budget, theirs, their budget
    "later": ([4] * 5, 6, [2] * 9, 50, "A needs about 2.0 times the", "(2.0 to 2.0)."),
    "sooner": ([1] * 5, 6, [4] * 9, 50, "A needs about 0.25 times the", "(0.25 to 0.25)."),
    "tie": ([1, 2, 2, 2, 3], 6, [1, 2, 3], 50, "No difference to B is shown: A needs about 1", ""),
    "near": ([6] * 5, 9, [5] * 9, 50, "A needs about 1.2 times the", "rate could make as much."),
    "never": ([math.inf] * 5, 6, [4] * 9, 50, "A needs more than 1.5 times the", "are right."),
    "open": ([math.inf] * 5, 6, [math.inf] * 9, 50, "No difference to B is shown", ""),
    "they never": ([1] * 5, 6, [math.inf] * 9, 50, "A needs less than 0.02 times", "are right."),
    "rarely": ([1, 1] + [math.inf] * 8, 6, [0.5] * 9, 50, "A needs more than 7.0", "are right."),
}


@pytest.mark.parametrize("case", RATIOS)
def test_a_ratio_holds_what_a_budget_leaves_open(case):
    ours, budget, theirs, longest, begin, end = RATIOS[case]
    found = ratio(Times(np.array(ours, float), budget), Times(np.array(theirs, float), longest))
    said = ratio_in_words("A", "B", found)
    assert said.startswith(begin)
    assert said.endswith(end)


def test_a_budget_is_told_as_times_of_attention_and_some_seeds_are_counted():
    record = record_of("places")
    each = record.settings["models"]["ViT"]["multiplies"]
    steps = record.settings["training"]["steps"]
    of = Contest("a.py:A", "places", 48, 1, each, steps, steps)
    never = {"half": 0, "most": 0, "accuracy": 0.3}
    said = by_time(of, [never] * 5, record, RECALL_GUESS)[0]
    assert said.startswith("A has not learned within this budget: in none of 5 seeds were half")
    assert f"{BUDGET} times what attention needs. At best 30.0 % were right; a guess" in said
    said, rows = by_time(of, [{"half": 300, "most": 600}] * 9 + [never], record, RECALL_GUESS)
    assert said.endswith("It learned within the budget in 9 of 10 seeds.")
    assert rows[-1].cells[0].endswith("(9 of 10)")
    cells = {row.name: row.cells for row in rows}
    assert cells["no mixing"][0].startswith("not within")
    assert cells["no mixing"][1].endswith(": sooner")
    assert cells["no mixing"][2].endswith(": sooner")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal mask")
def test_ctrl_c_is_not_heard_by_workers_and_ends_them_at_once():
    code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    told = []
    for around in (contest._deaf, nullcontext):
        with around():
            told.append(subprocess.check_output([sys.executable, "-c", code], text=True).strip())
    assert told == ["True", "False"]

    def stopped():
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        with pool, contest._ended_at_once(pool):
            for _ in range(3):
                pool.submit(time.sleep, 60)
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert time.monotonic() - began < 30


def test_recall_draws_the_images_of_its_experiment_and_a_guess_is_what_it_says():
    for name, partner in (("places", "named"), ("labels", "labelled")):
        task, record = TASKS[name], record_of(name)
        count, seed = record.settings["counts"]["test"], record.settings["first_seed"] + 2
        found = task.images(record, "test", record.settings["first_seed"], None)
        assert all(map(torch.equal, found, images_of("test", partner=partner)))
        if torch.backends.cpu.get_cpu_capability() in AS_RECORDED:
            assert checksum(*found) == record.data[f"recall, {task.timed}, test"]
        drawn = recall(count, seed=seed, partner=partner)
        other = (drawn.labels != drawn.colors).double().mean()
        guess = pytest.approx(RECALL_GUESS, abs=0.005)
        assert other / 3 == guess, "each of the three other colours"


def test_garments_are_those_of_the_record_and_are_missed_in_one_sentence(
    file, tmp_path, capsys, monkeypatch, small_image_files
):
    monkeypatch.setattr(garments_task, "PER_CLASS", LEARNED)
    garments_task.garment_images.cache_clear()
    first = load_record(TASKS["garments"].record).settings["first_seed"]
    assert first == mixing_pictures.FIRST
    mixing_pictures.images_of.cache_clear()
    for part in ("train", "validation", "test"):
        here = garments_task.garment_images(part, first, small_image_files)
        there = mixing_pictures.images_of(part)
        assert torch.equal(here.images, there.images)
        assert torch.equal(here.labels, there.labels)
    asked = ["compare", f"{file}:Ours", "--task", "garments", "--out", str(tmp_path / "out")]
    assert main([*asked, "--root", str(tmp_path / "nowhere")]) == 2
    told = capsys.readouterr().err
    assert "nowhere does not exist: name the folder that holds fashion-mnist" in told
    assert main([*asked, "--download"]) == 2  # and nothing is put into the present folder
    assert "root must say in which folder fashion-mnist is (--root DIR)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_training_for_one_task_is_not_taken_for_the_other(file, small, tmp_path):
    ledgers = []
    for task in TASKS:
        found = prepare(f"{file}:Ours", record_of(task, small), task)
        ledgers.append(contest.Ledger(tmp_path / "trainings.jsonl", found, LAYERS))
    ledgers[0].add("test 0.002 0", {"loss": 1.0, "accuracy": 0.5})
    again = contest.Ledger(tmp_path / "trainings.jsonl", found, LAYERS)
    assert again.known == {}


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(0.02, 0.01, 0.03), "better by 2.0 points (1.0 to 3.0)."),
        (Interval(-0.715, -0.761, -0.669), "worse by 71.5 points (66.9 to 76.1)."),
        (Interval(0.01, -0.01, 0.03), "about 21 seeds would be needed"),
        (Interval(0.001, -0.02, 0.022), "more than 1,000 seeds"),
        (Interval(1e-5, -0.01, 0.01), "shown, 0.0 points (\N{MINUS SIGN}1.0 to +1.0)."),
        (Interval(1e-6, -2e-5, 2e-5), "equal to a tenth of a point."),
        (Interval(0.0, 0.0, 0.0), "equal to a tenth of a point."),
    ],
)
def test_a_verdict_says_no_more_than_its_interval(interval, words):
    short = in_short(interval)
    assert short == ("tie" if interval.low <= 0 <= interval.high else words.split()[0])
    assert words in difference_in_words(interval, 5)
