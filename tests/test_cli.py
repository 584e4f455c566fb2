"""The command: what it prints, what it draws, what it refuses, and that it survives SIGKILL."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from vitbook.cli import _wilson, main
from vitbook.data import load_digits
from vitbook.recipes import MODELS, RECIPES, build_model, load_part, settings_of, train_config

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
SMALL = ["--embed-dim", "8", "--depth", "2", "--num-heads", "2", "--dropout", "0.1", "--shift", "1"]
SMALL += ["--warmup-steps", "2", "--batch-size", "16", "--no-progress"]


def run(*words):
    return main([str(word) for word in words])


def output(capsys, *words):
    """What a command that works prints."""
    assert run(*words) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def message(capsys, *words):
    """The one sentence of a command that does not work."""
    assert run(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" or printed.out.startswith("digits: ")
    assert printed.err.startswith("vitbook: ")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "digits"
    assert run("train", *SMALL, "--steps", 12, "--out", folder) == 0
    return folder


def test_training_writes_settings_metrics_and_weights(trained):
    files = {path.name for path in trained.iterdir()}
    assert files == {"run.json", "metrics.csv", "checkpoint.safetensors"}
    settings = json.loads((trained / "run.json").read_text())["settings"]
    assert settings["data"] == "digits"
    assert settings["embed_dim"] == 8
    assert settings["steps"] == 12
    assert "epochs" not in settings
    assert len((trained / "metrics.csv").read_text().splitlines()) == 13


def test_training_says_what_it_does_and_how_it_goes(tmp_path, capsys):
    out = tmp_path / "a"
    text = output(capsys, "train", *SMALL, "--steps", 4, "--evaluate-every", 3, "--out", out)
    first, *evaluations = text.splitlines()
    assert first.startswith("digits: 1,438 images of 1 x 8 x 8 to learn from; tiny: ")
    assert "4 steps of 16 images; 1 x cpu" in first
    assert [line.split()[1] for line in evaluations] == ["3", "4"]
    assert "test accuracy" in evaluations[-1]


def test_settings_are_chosen_on_validation_images_that_were_not_learned_from(tmp_path, capsys):
    words = ["--learn-from", "fit", "--steps", 1, "--out", tmp_path / "a"]
    text = output(capsys, "train", *SMALL, *words)
    assert "1,151 images" in text
    assert "validation accuracy" in text
    assert "test accuracy" not in text


def test_evaluation_prints_the_accuracy_with_its_interval(trained, capsys):
    text = output(capsys, "evaluate", trained)
    assert text.startswith("digits, test: ")
    right = int(text.split()[2])
    assert f"of 359 right, accuracy {100 * right / 359:.2f} %" in text
    assert "95 % interval" in text
    assert "of 287 right" in output(capsys, "evaluate", trained, "--part", "validation")


def test_wilson_intervals_are_those_of_the_textbook():
    assert _wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert _wilson(1.0, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert _wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


@pytest.mark.parametrize("extra", [[], ["--rollout"], ["--query", "1,3"]])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_attention_is_drawn_for_an_image_of_the_data_set(trained, tmp_path, capsys, extra, suffix):
    figure = tmp_path / "new" / f"map{suffix}"
    text = output(capsys, "attention", 7, "--run", trained, "--out", figure, *extra)
    label = int(load_digits("test").labels[7])
    assert text.startswith(f"test image 7, label {label}: answer ")
    assert ("the patch at 1,3" if "--query" in extra else "the class token") in text
    assert figure.stat().st_size > 3000
    if suffix == ".png":
        assert Image.open(figure).size[0] > 600


def test_attention_is_drawn_for_a_picture_file(trained, tmp_path, capsys):
    image = load_digits("test").images[7, 0]
    big = image.repeat_interleave(10, 0).repeat_interleave(10, 1)
    pixels = Image.fromarray((255 * big).byte().numpy())
    wide = Image.new("RGB", (120, 80))
    wide.paste(pixels, (20, 0))
    wide.save(tmp_path / "seven.png")
    inverted = Image.new("RGB", (120, 80), "white")
    inverted.paste(Image.fromarray(255 - (255 * big).byte().numpy()), (20, 0))
    inverted.save(tmp_path / "paper.png")
    words = ["--run", trained, "--out", tmp_path / "map.png"]
    number = output(capsys, "attention", 7, *words).split(": ", 1)[1]
    file = output(capsys, "attention", tmp_path / "seven.png", *words).split(": ", 1)[1]
    paper = output(capsys, "attention", tmp_path / "paper.png", "--invert", *words)
    assert number == file == paper.split(": ", 1)[1]


def test_a_model_without_a_class_token_is_drawn_by_the_mean(tmp_path, capsys):
    small = ["--depth", 1, "--embed-dim", 8, "--num-heads", 2, "--steps", 1, "--no-progress"]
    run("train", "--data", "matching-pairs", *small, "--out", tmp_path / "a")
    capsys.readouterr()
    text = output(capsys, "attention", 0, "--run", tmp_path / "a", "--out", tmp_path / "a.png")
    assert "attention of the mean of all patches" in text


# --- kill, resume, several processes


def weights(folder):
    return load_file(folder / "checkpoint.safetensors")


def test_a_command_killed_from_outside_goes_on_and_ends_in_the_same_weights(trained, tmp_path):
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "vitbook", "train", *SMALL, "--steps", "12"]
    command += ["--checkpoint-every", "1", "--out", str(out)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
        while not (out / "checkpoint.safetensors").exists() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode in (-signal.SIGKILL, 0)  # a very quick machine may have finished
    assert run("train", "--resume", "--out", out, "--no-progress") == 0
    one, other = weights(trained), weights(out)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    steps = [line.split(",")[0] for line in (out / "metrics.csv").read_text().splitlines()[1:]]
    assert steps == [str(step) for step in range(1, 13)]


def test_torchrun_with_two_processes_makes_the_updates_of_one(tmp_path):
    words = [word for word in SMALL if word not in ("--dropout", "0.1")] + ["--steps", "6"]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    command = [sys.executable, *launch, "-m", "vitbook", "train", *words, "--device", "cpu"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "two")], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("to learn from") == 1  # only one of them speaks
    assert run("train", *words, "--out", tmp_path / "one") == 0
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in one:
        a, b = one[name], two[name]
        if name.endswith("qkv.bias"):  # the key bias changes no logit: its gradient is rounding
            a, b = (bias.view(3, -1)[[0, 2]] for bias in (a, b))  # noise, which Adam makes large
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_a_resumed_run_needs_no_settings_and_refuses_others(trained, tmp_path, capsys):
    before = (trained / "metrics.csv").read_bytes()
    output(capsys, "train", "--resume", "--out", trained, "--depth", 2)
    assert (trained / "metrics.csv").read_bytes() == before
    text = message(capsys, "train", "--resume", "--out", trained, "--depth", 3, "--seed", 1)
    assert "depth was 2, now 3, seed was 0, now 1" in text


def test_resume_without_a_run_starts_one(tmp_path, capsys):
    output(capsys, "train", *SMALL, "--steps", 1, "--resume", "--out", tmp_path / "new")
    assert (tmp_path / "new" / "checkpoint.safetensors").exists()


# --- what is refused


def test_a_folder_with_a_run_is_not_overwritten(trained, capsys):
    text = message(capsys, "train", *SMALL, "--steps", 12, "--out", trained)
    assert "already holds a run; resume it (resume=True, --resume) or choose another" in text


def test_a_checkpoint_of_another_shape_is_named(trained, tmp_path, capsys):
    out = tmp_path / "copy"
    out.mkdir()
    (out / "checkpoint.safetensors").write_bytes((trained / "checkpoint.safetensors").read_bytes())
    run_json = json.loads((trained / "run.json").read_text())
    run_json["settings"]["embed_dim"] = 16
    (out / "run.json").write_text(json.dumps(run_json))
    text = message(capsys, "evaluate", out)
    assert "is of another model: it holds" in text


def test_a_full_disk_is_named_and_the_folder_can_be_resumed(tmp_path, capsys, monkeypatch):
    import errno

    from vitbook.training import run_folder

    real, calls = run_folder.write_atomically, []

    def full(path, data):
        calls.append(path.name)
        if calls.count("checkpoint.safetensors") == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(run_folder, "write_atomically", full)
    words = ["train", *SMALL, "--steps", 12, "--checkpoint-every", 5, "--out", tmp_path / "a"]
    text = message(capsys, *words)
    assert "the checkpoint of step 10 could not be written (No space left on device)" in text
    monkeypatch.setattr(run_folder, "write_atomically", real)
    assert run(*words, "--resume") == 0
    assert run("train", *SMALL, "--steps", 12, "--out", tmp_path / "b") == 0
    one, other = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_stopped_command_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("vitbook.cli.train", interrupted)
    assert run("train", *SMALL, "--steps", 1, "--out", tmp_path / "a") == 130
    assert "train --resume goes on" in capsys.readouterr().err


def test_traceback_shows_where_an_error_arose(tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        run("evaluate", tmp_path, "--traceback")


def test_without_arguments_and_in_help_the_command_explains_itself(capsys):
    for words, expected in (
        (["--help"], "examples:"),
        (["train", "--help"], "--learn-from"),
        (["evaluate", "--help"], "--part"),
        (["attention", "--help"], "--rollout"),
        (["--version"], "vitbook "),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(*words)
        assert stopped.value.code == 0
        assert expected in capsys.readouterr().out


PARSED = [
    ([], "the following arguments are required: COMMAND"),
    (["train"], "the following arguments are required: --out"),
    (["train", "--out", "x", "--data", "imagenet"], "invalid choice: 'imagenet'"),
    (["train", "--out", "x", "--epochs", "1", "--steps", "2"], "not allowed with"),
    (["train", "--out", "x", "--checkpoint-every", "0"], "must be at least 1, got 0"),
    (["attention", "3", "--run", "x", "--out", "y.png", "--query", "3"], "invalid _place"),
]


@pytest.mark.parametrize(("words", "expected"), PARSED)
def test_a_wrong_option_is_one_line_and_exit_code_2(words, expected, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    printed = capsys.readouterr().err
    assert stopped.value.code == 2
    assert expected in printed
    assert printed.count("\n") == 1
    assert printed.rstrip().endswith("--help")


SMALL_OUT = [*SMALL, "--steps", 1, "--out", "{tmp}/a"]
BAD_INPUT = [
    ("root", ["train", "--data", "mnist", "--out", "{tmp}/a"], "--root DIR --download"),
    (
        "missing-root",
        ["train", "--data", "cifar10", "--root", "{tmp}/no", "--out", "{tmp}/a"],
        "no does not exist: name the folder that holds cifar10",
    ),
    (
        "missing-files",
        ["train", "--data", "mnist", "--root", "{tmp}", "--out", "{tmp}/a"],
        "is missing: fetch mnist with download=True (--download)",
    ),
    ("patch", ["train", "--patch-size", 3, *SMALL_OUT], "patch_size"),
    ("heads", ["train", *SMALL_OUT, "--num-heads", 3], "num_heads must divide"),
    ("epochs", ["train", "--epochs", 0, "--out", "{tmp}/a"], "epochs must be at least 1, got 0"),
    ("batch", ["train", *SMALL_OUT, "--batch-size", 2000], "batch_size must be at most"),
    ("rate", ["train", *SMALL_OUT, "--learning-rate", -1], "learning_rate must be finite and"),
    ("shift", ["train", *SMALL_OUT, "--shift", -1], "shift must be at least 0"),
    ("out-is-a-file", ["train", *SMALL, "--steps", 1, "--out", "{tmp}/file"], "file"),
    ("no-run", ["evaluate", "{tmp}"], "holds no run"),
    ("bad-run", ["evaluate", "{tmp}/bad"], "run.json is damaged"),
    ("no-checkpoint", ["evaluate", "{tmp}/empty"], "there is no checkpoint"),
    ("number", ["attention", 359, "--run", "{run}", "--out", "a.png"], "IMAGE must be below 359"),
    ("picture", ["attention", "b.png", "--run", "{run}", "--out", "a.png"], "no file b.png"),
    ("no-picture", ["attention", "{tmp}/file", "--run", "{run}", "--out", "a.png"], "as a picture"),
    ("suffix", ["attention", 1, "--run", "{run}", "--out", "a.gif"], "--out must end in .png"),
    (
        "query",
        ["attention", 1, "--run", "{run}", "--out", "a.png", "--query", "4,0"],
        "--query must lie in the grid of 4 x 4, got (4, 0)",
    ),
]


@pytest.mark.parametrize(
    ("words", "expected"), [row[1:] for row in BAD_INPUT], ids=[row[0] for row in BAD_INPUT]
)
def test_bad_input_is_named(words, expected, tmp_path, trained, capsys):
    (tmp_path / "file").write_text("no picture")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "run.json").write_text((trained / "run.json").read_text())
    words = [
        str(word).replace("{tmp}", str(tmp_path)).replace("{run}", str(trained)) for word in words
    ]
    assert expected in message(capsys, *words)
    assert not (tmp_path / "a" / "checkpoint.safetensors").exists()


def test_a_missing_gpu_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    text = message(capsys, "train", *SMALL, "--device", "cuda", "--out", tmp_path / "a")
    assert "torch sees no GPU (--device cuda)" in text


# --- recipes


@pytest.mark.parametrize("data", RECIPES)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_fits_every_data_set(data, model):
    settings = settings_of({"data": data, "model": model, "depth": 1})
    with torch.device("meta"):
        assert build_model(settings).head.out_features in (2, 4, 10)
    train_config(settings)
    assert json.loads(json.dumps(settings))["model"] == model


def test_settings_complete_what_is_given_and_what_is_given_wins():
    settings = settings_of({"data": "mnist", "model": "Ti", "depth": 2, "steps": 9})
    assert (settings["embed_dim"], settings["depth"], settings["num_heads"]) == (192, 2, 3)
    assert settings["steps"] == 9
    assert "epochs" not in settings
    assert settings_of(settings) == settings


def test_a_model_is_drawn_from_its_seed_alone():
    torch.manual_seed(1)
    one = build_model(settings_of({"seed": 3}))
    torch.manual_seed(2)
    other = build_model(settings_of({"seed": 3}))
    third = build_model(settings_of({"seed": 4}))
    assert torch.equal(one.patch_embed.proj.weight, other.patch_embed.proj.weight)
    assert not torch.equal(one.patch_embed.proj.weight, third.patch_embed.proj.weight)


def test_no_generated_image_is_learned_from_and_tested_on():
    settings = settings_of({"data": "matching-pairs"})
    rows = [
        {image.numpy().tobytes() for image in load_part(settings, part).images[:500]}
        for part in ("train", "validation", "test")
    ]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]
    assert not rows[1] & rows[2]
