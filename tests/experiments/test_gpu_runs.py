"""The long runs for a GPU: sizes, commands, and a small rehearsal on a processor."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tools import gpu_relatives, gpu_runs
from tools.gpu_runs import RUNS, Run, main, parameters, summary, time_to
from vitbook.command.parser import parser
from vitbook.command.recipes import settings_of, train_config

QUICK = {"embed_dim": 8, "depth": 1, "num_heads": 2, "batch_size": 32, "warmup_steps": 2}
QUICK |= {"steps": 50, "shift": 1, "precision": "bf16"}


def test_the_models_stay_below_a_million_parameters_and_the_grey_ones_within_30_epochs():
    assert set(RUNS) == {"mnist", "fashion-mnist", "cifar10"}
    assert all(parameters(name) < 1_000_000 for name in RUNS)
    assert all(RUNS[name].settings["epochs"] <= 30 for name in ("mnist", "fashion-mnist"))


def test_the_readme_names_these_models_and_epochs_and_no_aims_as_they_were_not_run():
    text = (Path(gpu_runs.__file__).parents[1] / "experiments" / "README.md").read_text("utf8")
    text = text.split("## The long runs, on a GPU")[1].split("\n## ")[0]
    assert "**they have not been run**" in text
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if "|" in line
    ]
    assert [row[0] for row in rows[2:]] == ["MNIST", "Fashion-MNIST", "CIFAR-10"]
    for (name, run), row in zip(RUNS.items(), rows[2:], strict=True):
        size = f"{parameters(name):,} parameters, patches of {run.settings['patch_size']}"
        assert row[1] in (size, "the same")
        assert row[2] == str(run.settings["epochs"])
        assert len(row) == 3
        assert f"{100 * run.target:g} %" not in text
    assert parameters("mnist") == parameters("fashion-mnist")


def test_the_plan_prints_commands_that_the_program_understands(capsys):
    assert main(["--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    commands = [shlex.split(line) for line in lines if not line.startswith("#")]
    assert len(commands) == 3 * 5
    for words in commands:
        assert words[:4] == ["python", "-m", "vitbook", "train"]
        options = vars(parser().parse_args(words[3:]))
        settings = settings_of({k: v for k, v in options.items() if k in ("data", "learn_from")})
        assert settings["learn_from"] == "train"  # the test images choose nothing
        given = {**RUNS[options["data"]].settings, "seed": options["seed"]}
        assert {name: options[name] for name in given} == given
        assert train_config({**settings, **given}).precision == "bf16"
        assert options["resume"]
    assert sorted({words[words.index("--seed") + 1] for words in commands}) == list("01234")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(gpu_runs, "RUNS", {"digits": Run(0.15, QUICK)})


def test_a_rehearsal_trains_tests_keeps_each_seed_and_ends_with_a_summary(quick, tmp_path, capsys):
    words = ["--device", "cpu", "--root", str(tmp_path), "--out", str(tmp_path / "runs")]
    assert main([*words, "--seeds", "0"]) == 0
    assert "one seed, no interval" in capsys.readouterr().out
    first = (tmp_path / "runs" / "digits" / "0" / "result.json").read_bytes()
    assert main([*words, "--seeds", "0", "1"]) == 0
    printed = capsys.readouterr().out
    assert (tmp_path / "runs" / "digits" / "0" / "result.json").read_bytes() == first
    assert printed.count("-m vitbook train") == 1  # seed 0 is not done again
    assert re.search(r"test accuracy \d+\.\d\d % \(95 % interval .* 2 seeds\)", printed)
    results = [
        json.loads((tmp_path / "runs" / "digits" / seed / "result.json").read_text())
        for seed in "01"
    ]
    right = int(re.search(r"digits, test: (\d+) of 359 right", printed).group(1))
    assert results[1]["test_accuracy"] == right / 359
    assert results[0]["parameters"] == parameters("digits")
    assert results[0]["seconds"] > 0


def test_results_of_other_settings_are_not_mixed_in(quick, tmp_path, monkeypatch):
    kept = tmp_path / "digits" / "0" / "result.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"settings": {**QUICK, "data": "digits", "seed": 0, "depth": 2}}))
    with pytest.raises(SystemExit, match="is the result of other settings"):
        main(["--out", str(tmp_path), "--seeds", "0"])


def test_without_a_gpu_it_says_so_and_stops(quick, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert "torch sees no GPU (--device cuda)" in capsys.readouterr().err


def test_the_time_to_an_accuracy_is_that_of_the_first_evaluation_that_has_it(tmp_path):
    rows = ["step,epoch,seconds,val_accuracy", "1,1,1.5,", "2,1,3.0,0.90", "3,2,4.5,"]
    rows += ["4,2,6.0,0.96", "5,3,7.5,0.94", "6,3,9.0,0.97"]
    (tmp_path / "metrics.csv").write_text("\n".join(rows) + "\n")
    found = time_to(0.95, tmp_path / "metrics.csv")
    assert (found["epochs_to_target"], found["seconds_to_target"]) == (2, 6.0)
    assert (found["seconds"], found["validation_accuracy"]) == (9.0, 0.97)
    assert time_to(0.98, tmp_path / "metrics.csv")["seconds_to_target"] is None


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ((0.96, 0.961), "reached"),
        ((0.94, 0.941), "missed"),
        ((0.93, 0.96), "open"),
        ((0.96,), "open"),
    ],
)
def test_a_target_is_reached_only_when_the_whole_interval_is_above_it(accuracies, verdict):
    common = {"target": 0.95, "parameters": 5, "device": "a processor", "seconds": 8.0}
    results = [
        {**common, "test_accuracy": a, "epochs_to_target": 3 + i, "seconds_to_target": 4.0 + 2 * i}
        for i, a in enumerate(accuracies)
    ]
    results[0] |= {"epochs_to_target": None, "seconds_to_target": None}
    text = summary("x", results)
    assert f"target 95.00 %: {verdict}" in text
    there = len(accuracies) - 1
    assert f"in {there} of {len(accuracies)} seeds" in text
    assert ("in these after 4.0 epochs and 6 s" in text) == bool(there)


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["imagenet", "--plan"])
    assert (
        "NAME must be one of mnist, fashion-mnist, cifar10, relatives, got imagenet"
        in capsys.readouterr().err
    )


def test_the_relatives_have_equal_parameters_and_equal_compute():
    compute = gpu_relatives.STEPS * gpu_relatives.multiplies_of("vit")
    whole = gpu_relatives.parameters_of("vit", gpu_relatives.WIDTH)
    for name in gpu_relatives.LAYERS:
        own = gpu_relatives.parameters_of(name, gpu_relatives.width_of(name))
        assert abs(own / whole - 1) <= 0.05
        steps, multiplies = gpu_relatives.settings(name)["steps"], gpu_relatives.multiplies_of(name)
        assert abs(steps * multiplies - compute) <= multiplies / 2


def test_the_plan_of_the_relatives_has_as_many_trials_for_each_and_no_aim(capsys):
    assert main(["relatives", "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "target" not in printed
    lines = [line for line in printed.splitlines() if not line.startswith("#")]
    assert len(lines) == 7 * (3 + 5)
    asked = [vars(parser().parse_args(shlex.split(line)[3:])) for line in lines]
    assert {options["architecture"] for options in asked} == {"hybrid"}
    assert {options["learn_from"] for options in asked} == {"train"}
    tried = [options for options in asked if options["seed"] == gpu_relatives.SEED]
    assert [options["learning_rate"] for options in tried] == 7 * list(gpu_relatives.RATES)
    assert len({options["out"] for options in asked}) == len(asked)


def test_a_rehearsal_of_the_relatives_chooses_a_rate_on_validation_images(
    tmp_path, capsys, monkeypatch
):
    small = {"data": "digits", "architecture": "hybrid", "layers": ["mixer", "attention"]}
    small |= {k: v for k, v in QUICK.items() if k != "depth"}
    monkeypatch.setattr(gpu_relatives, "LAYERS", {"mixer-vit": small["layers"]})
    monkeypatch.setattr(gpu_relatives, "settings", lambda name: small)
    monkeypatch.setattr(gpu_relatives, "RATES", (1e-4, 1e-2))
    monkeypatch.setattr(gpu_relatives, "LENGTH", 0.5)
    words = ["--device", "cpu", "--root", str(tmp_path), "--out", str(tmp_path / "runs")]
    assert main(["relatives", *words, "--seeds", "0"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("-m vitbook train") == 3
    kept = tmp_path / "runs" / "relatives" / "mixer-vit" / "0" / "result.json"
    assert json.loads(kept.read_text())["settings"]["learning_rate"] == 1e-2
    assert "target" not in printed
