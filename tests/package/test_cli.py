"""The command: what it prints, what it draws, what it refuses, and what it is resumed with."""

import csv
import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import timm
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.package.painting import GREEN, RED, fill
from vitbook.command.architectures import ARCHITECTURES
from vitbook.command.cli import main
from vitbook.command.recipes import (
    MODELS,
    RECIPES,
    build_model,
    load_part,
    settings_of,
    train_config,
)
from vitbook.command.runs import stored_run
from vitbook.data import load_digits
from vitbook.files import defined_in
from vitbook.layers.positions import sincos_2d

pytestmark = pytest.mark.slow  # models are trained

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


def fails(monkeypatch, name, error):
    def call(*arguments, **options):
        raise error

    monkeypatch.setattr(name, call)


def settings_in(folder):
    return json.loads((folder / "run.json").read_text())["settings"]


def weights(folder):
    return load_file(folder / "checkpoint.safetensors")


def same_weights(one, other):
    one, other = weights(one), weights(other)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def metrics(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "digits"
    assert run("train", *SMALL, "--steps", 12, "--out", folder) == 0
    return folder


def test_training_writes_settings_metrics_and_weights(trained):
    files = {path.name for path in trained.iterdir()}
    assert files == {"run.json", "metrics.csv", "checkpoint.safetensors"}
    settings = settings_in(trained)
    assert [settings[name] for name in ("data", "embed_dim", "steps")] == ["digits", 8, 12]
    assert "epochs" not in settings
    assert len(metrics(trained)) == 12


def test_a_run_is_examined_and_a_model_of_ones_own_on_its_images(trained, tmp_path, capsys):
    said = output(capsys, "examine", trained, "--updates", 50)
    assert "at 0.002" in said  # the rate of the run
    assert "labels are class numbers" in said
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Softmax(dim=1))\n"
    )
    mine = f"{tmp_path / 'mine.py'}:build"
    said = output(capsys, "examine", trained, "--model", mine, "--updates", 50)
    assert "First to mend" in said
    assert "softmax" in said
    assert "--root must be left out" in message(capsys, "examine", trained, "--root", tmp_path)


def test_settings_are_chosen_on_validation_images_that_were_not_learned_from(tmp_path, capsys):
    words = ["--learn-from", "train", "--steps", 4, "--evaluate-every", 3, "--out", tmp_path / "a"]
    first, *evaluations = output(capsys, "train", *SMALL, *words).splitlines()
    assert first.startswith("digits: 1,151 images of 1 x 8 x 8 to learn from; tiny: ")
    assert "4 steps of 16 images; 1 x cpu" in first
    assert [line.split()[1] for line in evaluations] == ["3", "4"]
    assert "validation accuracy" in evaluations[-1]
    assert "test accuracy" not in evaluations[-1]


def test_evaluation_prints_the_accuracy_with_its_interval(trained, capsys):
    text = output(capsys, "evaluate", trained)
    assert text.startswith("digits, test: ")
    right = int(text.split()[2])
    assert f"of 359 right, accuracy {100 * right / 359:.2f} %" in text
    assert "95 % interval" in text
    assert "of 287 right" in output(capsys, "evaluate", trained, "--part", "validation")


@pytest.mark.parametrize(
    ("extra", "suffix"), [([], ".svg"), (["--rollout"], ".png"), (["--query", "1,3"], ".png")]
)
def test_attention_is_drawn_for_an_image_of_the_data_set(trained, tmp_path, capsys, extra, suffix):
    figure = tmp_path / "new" / f"map{suffix}"
    text = output(capsys, "attention", 7, "--run", trained, "--out", figure, *extra)
    label = int(load_digits("test").labels[7])
    assert text.startswith(f"test image 7, label {label}: answer ")
    assert ("the patch at 1,3" if "--query" in extra else "the class token") in text
    assert ("rollout of" if "--rollout" in extra else "attention of") in text
    assert figure.stat().st_size > 3000


def test_attention_is_drawn_for_a_picture_file(trained, tmp_path, capsys):
    image = load_digits("test").images[7, 0]
    big = (255 * image.repeat_interleave(10, 0).repeat_interleave(10, 1)).byte().numpy()
    for name, paper, pixels in (("seven", "black", big), ("paper", "white", 255 - big)):
        wide = Image.new("RGB", (120, 80), paper)
        wide.paste(Image.fromarray(pixels), (20, 0))
        wide.save(tmp_path / f"{name}.png")
    words = ["--run", trained, "--out", tmp_path / "map.png"]
    number = output(capsys, "attention", 7, *words).split(": ", 1)[1]
    file = output(capsys, "attention", tmp_path / "seven.png", *words).split(": ", 1)[1]
    paper = output(capsys, "attention", tmp_path / "paper.png", "--invert", *words)
    assert number == file == paper.split(": ", 1)[1]


def test_a_run_is_shown_in_one_file_with_its_audit(trained, tmp_path, capsys):
    assert run("attention", 7, "--run", trained, "--out", tmp_path / "seven.html") == 0
    printed = capsys.readouterr()
    assert "two runs of the model for each patch" in printed.err
    page = (tmp_path / "seven.html").read_text()
    assert page.count("the map, against an untrained twin") == 1
    assert str(tmp_path) not in page, "a file that is sent must not tell where it was made"
    assert "Audit." in page


MEANS = ["--mean", "0.4,0.4,0.4", "--std", "0.3,0.3,0.3", "--size", 16]
OWN_MODEL = """
from __future__ import annotations
from dataclasses import dataclass
import torch
from torch import nn
from own_sizes import SIZES
from vitbook.models.vit import VisionTransformer
@dataclass
class Classes: number: int = 3
class Own(VisionTransformer): pass
def build(): return Own(**SIZES, num_classes=Classes().number)
def count(): return 3
class Layer(nn.Module):  # attends, and says of it nothing that can be read
    def forward(self, x):
        weights = (x @ x.mT).exp()
        return weights / weights.sum(-1, keepdim=True) @ x
class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.layer = nn.Conv2d(3, 8, 4, 4), Layer()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        return (self.attention(x, x, x)[0] if self.looks else self.layer(x)).mean(1)
def quiet(): model = Quiet(); model.looks = False; return model
class Pooled(Quiet):
    looks = True
    def __init__(self):
        super().__init__()
        self.pool, self.query = nn.MultiheadAttention(8, 2, batch_first=True), torch.ones(1, 1, 8)
        self.blocks = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in "12")
    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        for block in self.blocks: x = x + block(x, x, x)[0]
        return self.pool(self.query, x, x)[0].mean(1)
def pooled(): return Pooled()
def bare(): model = Quiet(); model.looks = True; return model
class Backbone(Quiet):
    looks = True
    def forward(self, images): return {"features": super().forward(images)}
def backbone(): return Backbone()
def meta():
    with torch.device("meta"): return Quiet()
class Texts(Quiet):
    looks = True
    def forward(self, ids, images=None): return super().forward(images[ids])
def texts(): return Texts()
"""
SIZES = (
    "SIZES = dict(image_size=16, patch_size=4, in_channels=3, embed_dim=8, depth=1, num_heads=2)"
)


@pytest.fixture
def own(tmp_path):
    """Words that show a photograph to a model of a file, whose weights lie beside it."""
    (tmp_path / "own.py").write_text(OWN_MODEL)
    (tmp_path / "own_sizes.py").write_text(SIZES)
    weights = defined_in(f"{tmp_path}/own.py:build", "--model", "FUNCTION")().state_dict()
    save_file(weights, tmp_path / "own.safetensors")
    torch.save({"state_dict": weights}, tmp_path / "own.pt")
    torch.save({"model": Dangerous()}, tmp_path / "evil.pt")
    Image.new("RGB", (30, 20), "teal").save(tmp_path / "photo.png")
    return ["attention", tmp_path / "photo.png", "--out", tmp_path / "look.html"]


class Dangerous:
    def __reduce__(self):
        return (os.mkdir, ("it_ran",))


@pytest.mark.parametrize("file", ["own.safetensors", "own.pt", None])
def test_a_model_of_ones_own_file_is_shown_and_without_other_weights_is_believed(
    own, file, tmp_path, capsys
):
    words = ["--model", f"{tmp_path}/own.py:build", *MEANS, "--no-audit"]
    words += ["--weights", tmp_path / file] if file else []
    assert "mean of heads. Not audited. Written into" in output(capsys, *own, *words)
    page = (tmp_path / "look.html").read_text()
    assert "Not audited." in page
    assert "mean 0.4, 0.4, 0.4" in page
    assert ("weights: as the function returned them." in page) == (file is None)
    assert "weights are random" not in page


def test_random_weights_of_timm_are_said_loudly(own, tmp_path, capsys):
    words = ["--timm", "vit_tiny_patch16_224", "--random", "--no-audit"]
    output(capsys, *own, *words)
    page = (tmp_path / "look.html").read_text()
    assert "The weights are random. Nothing here was learned" in page
    assert "mean 0.5, 0.5, 0.5" in page, "of timm's own configuration"


def test_where_maps_are_refused_it_is_told_that_the_file_may_not_be_all_written(
    own, tmp_path, capsys
):
    state = timm.create_model("test_vit").state_dict()
    state |= {name: torch.zeros_like(x) for name, x in state.items() if name.startswith("blocks.")}
    save_file(state, tmp_path / "cut.safetensors")
    assert run(*own, "--timm", "test_vit", "--weights", tmp_path / "cut.safetensors") == 2
    said = capsys.readouterr().err
    assert "mixes tokens by more than its maps" in said
    assert "weights from cut.safetensors; nothing but zeros in blocks.0." in said


def test_registers_are_not_called_a_class_token(own, tmp_path, capsys):
    words = ["--timm", "vit_little_patch16_reg4_gap_256", "--random", "--no-audit", "--size", 64]
    assert "the mean of all patches' rows, layer 14" in output(capsys, *own, *words)
    assert "is a register: this model has no such token" in (tmp_path / "look.html").read_text()


REFUSED = [
    (
        ["own.py:build", "--weights", "own.pt"],
        "size of this model's images must be said, for example --mean 0.485,0.456,0.406, --std "
        "0.229,0.224,0.225, --size 224; take",
    ),
    (["own.py:build", "--random", *MEANS], "--random belongs to --timm"),
    (["own.py:build", "--mean", "0.5", "--std", "0.5", "--size", 16], "makes the picture grey"),
    (
        ["own.py:build", "--mean", "99", "--std", "0.5", "--size", 16],
        "must lie in 0 to 1, as pixels",
    ),
    (["own.py:bare", *MEANS], "give --num-prefix yourself: 0 without"),
    (["own.py:quiet", *MEANS], "can say it by a method attention_weights"),
    (["own.py:build", "--weights", "evil.pt", *MEANS], "code in it is not run"),
    (["own.py:build", "--weights", "none.pt", *MEANS], "--weights must be a file"),
    (["own.py:built", *MEANS], "has no function built"),
    (["own.py:meta", *MEANS], "own.py:meta gives weights on the device meta"),
    (
        ["own.py:texts", *MEANS],
        "model (Texts) fails where it is called with images (1, 3, 16, 16), and with nothing else: "
        "TypeError: 'NoneType' object is not subscriptable",
    ),
    (["own.py:count", *MEANS], "must return a torch.nn.Module, got 3"),
    (["other.py:build", *MEANS], "must be FILE.py:FUNCTION of a file that exists"),
]


def test_the_layers_that_it_advises_can_be_given_to_the_command(own, tmp_path, capsys):
    own += ["--model", f"{tmp_path}/own.py:pooled", "--num-prefix", 0, "--no-audit", *MEANS]
    said = message(capsys, *own)
    assert "'pool': 1 queries ask 16 keys" in said
    assert "layers=" not in said
    (layers,) = re.findall("--layers '(.*?)'", said)
    assert layers == "blocks.*"
    for given in (layers, "blocks.0,blocks.1"):
        assert "Written into" in output(capsys, *own, "--layers", given)


@pytest.mark.parametrize(("words", "expected"), REFUSED)
def test_a_model_that_is_not_known_well_enough_is_refused(
    own, words, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert expected in message(capsys, *own, "--model", *words)
    assert not (tmp_path / "look.html").exists()
    assert not (tmp_path / "it_ran").exists()


def test_who_cannot_be_audited_is_told_that_the_page_can_be_had_without(own, tmp_path, capsys):
    words = ["--model", f"{tmp_path}/own.py:backbone", "--num-prefix", 0, *MEANS]
    assert run(*own, *words) == 2
    said = "got dict; the page can be had without the audit, by --no-audit\n"
    assert capsys.readouterr().err.endswith(said)
    assert "Not audited." in output(capsys, *own, *words, "--no-audit")


# --- several processes, resume


def test_torchrun_with_two_processes_makes_the_updates_of_one(tmp_path):
    words = [*SMALL, "--dropout", "0", "--steps", "6"]
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
    rows = list(zip(metrics(tmp_path / "one"), metrics(tmp_path / "two"), strict=True))
    told = [(row, name) for row in rows for name in ("loss", "grad_norm")]
    told += [(rows[-1], name) for name in ("val_loss", "val_accuracy")]  # of an odd number
    for (alone, shared), name in told:
        assert float(shared[name]) == pytest.approx(float(alone[name]), rel=1e-3), name


def test_bf16_and_compile_are_switches_that_reach_the_run(tmp_path, capsys, monkeypatch):
    words = [*SMALL, "--dropout", "0", "--steps", "3"]
    real, compiled = torch.compile, []

    def traced(module):  # real tracing, without the wait for a compiler
        compiled.append(module)
        return real(module, backend="eager", fullgraph=True)

    monkeypatch.setattr(torch, "compile", traced)
    output(capsys, "train", *words, "--out", tmp_path / "a")
    output(capsys, "train", *words, "--out", tmp_path / "b", "--compile")
    output(capsys, "train", *words, "--out", tmp_path / "c", "--compile", "--precision", "bf16")
    assert len(compiled) == 2
    assert same_weights(tmp_path / "a", tmp_path / "b")  # of the model itself, not of its copy
    assert not same_weights(tmp_path / "a", tmp_path / "c")
    assert {tensor.dtype for tensor in weights(tmp_path / "c").values()} == {torch.float32}
    assert "accuracy" in output(capsys, "evaluate", tmp_path / "c")


def test_a_resumed_run_needs_no_settings_and_refuses_others(trained, tmp_path, capsys):
    before = (trained / "metrics.csv").read_bytes()
    output(capsys, "train", "--resume", "--out", trained, "--depth", 2)
    assert (trained / "metrics.csv").read_bytes() == before
    text = message(capsys, "train", "--resume", "--out", trained, "--depth", 3, "--seed", 1)
    assert "depth was 2, now 3, seed was 0, now 1" in text


def test_what_a_resumed_or_stopped_run_is_not_is_said(trained, tmp_path, capsys):
    words = ["train", *SMALL, "--out", tmp_path / "a", "--resume", "--steps", 1]
    said = output(capsys, *words)  # the warm-up is of two
    assert f"{tmp_path / 'a'} holds no run to go on with: one begins" in said
    assert "the rate is not reached: --warmup-steps 2 of 1 updates" in said
    out = shutil.copytree(trained, tmp_path / "b")
    with safe_open(out / "checkpoint.safetensors", "pt") as file:
        told = file.metadata()
    notes = json.dumps(json.loads(told["notes"]) | {"step": 5})
    half = {
        name: tensor.half() if name.startswith("model.") else tensor
        for name, tensor in weights(out).items()
    }
    save_file(half, out / "checkpoint.safetensors", told | {"notes": notes})
    assert run("evaluate", out) == 0
    said = capsys.readouterr().err
    assert "the training stopped after 5 of 12 updates; --resume goes on with it" in said
    assert "checkpoint.safetensors is in torch.float16: read as float32" in said


def test_a_file_of_a_run_that_is_damaged_or_gone_is_the_one_that_is_named(
    trained, tmp_path, capsys
):
    out = shutil.copytree(trained, tmp_path / "run")
    path = out / "checkpoint.safetensors"
    with safe_open(path, "pt") as file:
        told = file.metadata()
    save_file(weights(out), path, told | {"notes": told["notes"][:-9]})
    assert f"{path} is damaged (JSONDecodeError" in message(capsys, "evaluate", out)
    shutil.copy(trained / path.name, path)
    (out / "run.json").unlink()
    said = message(capsys, "train", *SMALL, "--steps", 12, "--resume", "--out", out)
    assert f"{out / 'run.json'} is missing: it says of what model" in said


BRIEF = ["--embed-dim", "8", "--batch-size", "16", "--no-progress", "--steps", "2"]


@pytest.mark.parametrize("architecture", [[], ["--architecture", "hybrid", "--layers", "mixer"]])
def test_an_older_run_keeps_the_table_it_was_trained_with(architecture, tmp_path, capsys):
    out, published = tmp_path / "run", sincos_2d(4, 8)
    sizes = ["--depth", 1, "--num-heads", 1] if not architecture else []
    command = ["train", *architecture, *BRIEF, *sizes, "--positions", "sincos_2d", "--pool", "mean"]
    command = command[:-2] if architecture else command
    output(capsys, *command, "--out", out)
    run_json = json.loads((out / "run.json").read_text())
    model = build_model(stored_run(out)["settings"])
    assert torch.equal(model.positions.table, published)
    run_json["format"] = 3  # of 0.1.0
    (out / "run.json").write_text(json.dumps(run_json))
    model = build_model(stored_run(out)["settings"])
    assert torch.equal(model.positions.table, sincos_2d(4, 8, base=8.0, centred=True))
    output(capsys, "evaluate", out)
    (out / "run.json").write_text(json.dumps(run_json | {"format": 2}))
    assert "has format 2, this vitbook reads 3 and 4" in message(capsys, "evaluate", out)


RELATIVES = {
    "mlp-mixer": ["--token-dim", "6", "--mlp-ratio", "1.5"],
    "conv-mixer": ["--kernel-size", "3"],
    "hybrid": ["--layers", "mixer,attention*2", "--num-heads", "2", "--stem", "normed"],
}


@pytest.mark.parametrize("architecture", RELATIVES)
def test_every_architecture_is_trained_resumed_and_evaluated(architecture, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["train", "--architecture", architecture, *BRIEF, *RELATIVES[architecture]]
    assert "digits: 1,438 images" in output(capsys, *command, "--out", out)
    settings = settings_in(out)
    assert settings["architecture"] == architecture
    assert "pool" not in settings
    assert settings_of(settings) == settings
    before = weights(out)
    output(capsys, *command, "--resume", "--out", out)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(out).items())
    assert "of 359 right, accuracy" in output(capsys, "evaluate", out)
    drawing = ["attention", 7, "--run", out, "--out", tmp_path / "seven.png"]
    if architecture == "hybrid":
        assert "attention of the mean of all patches" in output(capsys, *drawing)
        text = message(capsys, *drawing, "--rollout")
        assert "--rollout must be left out: 2 of the model's 3 layers attend" in text
    else:
        assert "none of its layers showed attention" in message(capsys, *drawing)


def test_an_architecture_is_built_with_its_own_settings_and_the_sizes_of_the_model():
    net = build_model(settings_of({"architecture": "mlp-mixer", "model": "small"}))
    assert (len(net.encoder.blocks), net.head.in_features) == (4, 64)
    assert net.encoder.blocks[0].attn.mlp.fc1.out_features == 32
    net = build_model(settings_of({"architecture": "hybrid", "layers": ["conv", "none"]}))
    assert (net.layers, len(net.positions.table)) == (("conv", "none"), 16)
    assert "layers" not in settings_of({})


# --- what is refused


AGAIN = "a.png could not be written: No space left on device; free space and run it again"
FULL = [
    ("command.runs.write_atomically", "train", f"{AGAIN}, with --resume\n"),  # run.json
    ("training.run_folder.RunFolder.append", "train", f"{AGAIN}, with --resume\n"),
    ("training.run_folder.pack", "train", "checkpoint of step 12 could not be written (No space l"),
    ("command.attention.save_figure", "attention", f"{AGAIN}\n"),
]


@pytest.mark.parametrize(("write", "command", "words"), FULL)
def test_a_full_disk_is_named_wherever_it_is_met(
    write, command, words, trained, tmp_path, capsys, monkeypatch
):
    fails(monkeypatch, f"vitbook.{write}", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    given = {"train": [*SMALL, "--steps", 12], "attention": [7, "--run", trained]}[command]
    assert words in message(capsys, command, *given, "--out", tmp_path / "a.png")


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "html"])
def test_a_figure_that_could_not_be_written_leaves_the_one_before(
    ending, trained, tmp_path, capsys
):
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    (tmp_path / f"a.{ending}").write_text("before")
    words = ["attention", 7, "--run", trained, "--out", tmp_path / f"a.{ending}"]
    words += ["--no-audit"] if ending == "html" else []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        text = message(capsys, *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert f"a.{ending} could not be written: {os.strerror(errno.EFBIG)}; free space" in text
    assert ".tmp" not in text
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_a_stopped_command_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    fails(monkeypatch, "vitbook.training.train", KeyboardInterrupt())
    assert run("train", *SMALL, "--steps", 1, "--out", tmp_path / "a") == 130
    assert "train --resume goes on" in capsys.readouterr().err
    fails(monkeypatch, "vitbook.command.train.build_model", KeyboardInterrupt())
    assert run("train", *SMALL, "--steps", 1, "--out", tmp_path / "b") == 130
    assert capsys.readouterr().err == "vitbook: stopped; nothing was kept\n"


def test_who_stops_a_command_while_it_is_read_sees_no_traceback(tmp_path):
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "vitbook", "evaluate", "x"],
        env=ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_stops_no_training(closed, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, closed, None)
    words = [word for word in SMALL if word != "--no-progress"]
    assert run("train", *words, "--steps", 1, "--out", tmp_path / "a") == 0
    assert (tmp_path / "a" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("words", ["--root {loop} --out {tmp}/a", "--root {tmp} --out {loop}"])
def test_a_link_to_itself_is_told(words, tmp_path, capsys):
    (tmp_path / "loop").symlink_to("loop")
    fill(tmp_path / "in" / "green", GREEN, range(4))
    fill(tmp_path / "in" / "red", RED, range(4))
    filled = words.format(loop=tmp_path / "loop", tmp=tmp_path / "in")
    assert run("train", "--data", "folder", *filled.split()) == 2
    assert f"{tmp_path / 'loop'}" in capsys.readouterr().err
    assert run("attention", tmp_path / "loop", "--run", tmp_path, "--out", tmp_path / "x.png") == 2


def test_a_pipe_that_nobody_reads_is_named(tmp_path, capsys, monkeypatch):
    fails(monkeypatch, "vitbook.training.train", BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert run("train", *SMALL, "--steps", 1, "--out", tmp_path / "a") == 2
    said = capsys.readouterr().err
    assert "what it printed into was closed; train --resume goes on from the last" in said


NO_SPACE = "vitbook: standard output: No space left on device\n"
only_linux = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")


@only_linux
def test_a_full_standard_output_is_not_called_a_full_run_folder(trained):
    words = [sys.executable, "-m", "vitbook", "evaluate", str(trained)]
    with open("/dev/full", "w") as full:  # it is full when Python ends
        done = subprocess.run(words, env=ENVIRONMENT, stdout=full, stderr=-1, text=True)
    assert (done.returncode, done.stderr) == (2, NO_SPACE)


@only_linux
def test_an_unbuffered_one_is_full_at_once(trained, monkeypatch, capsys):
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(full, write_through=True))
        assert run("evaluate", trained) == 2
    assert capsys.readouterr().err == NO_SPACE


def test_traceback_shows_where_an_error_arose(tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        run("evaluate", tmp_path, "--traceback")


PARSED = [
    ("train --out x --steps 0", "--steps: must be a whole number of at least 1, got '0'"),
    ("train --out x --threads 99999999999999999999", "--threads: must be at most 1,000, got 999"),
    ("train --out x --micro-batch 99999999999999999999", "must be at most 1,000,000,000, got 9"),
    ("train --out x --depth 999999999", "--depth: must be at most 10,000, got 999999999"),
    ("train --out x --layers mixer*999999999", "must be at most 10,000, got 999999999"),
    ("train --out x --mlp-ratio 1e30", "--mlp-ratio: must be at most 10,000, got 1e30"),
    ("train --out x --embed-dim x", "--embed-dim: must be a whole number, got 'x'"),
    ("attention x --timm x --out x --size 100000", "--size: must be at most 10,000, got 100000"),
    ("train --out x --clip-norm 1,0", "must be a number or \"none\", got '1,0'"),
    ("train --out x --layers mixer*0", "must be words of attention, mixer, conv, uniform, none, s"),
    ("attention 3 --run x --out y.png --query 3", "must be ROW,COLUMN such as 2,3, got '3'"),
]


@pytest.mark.parametrize(("words", "expected"), PARSED)
def test_a_wrong_option_is_one_line_and_exit_code_2(words, expected, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(*words.split())
    printed = capsys.readouterr().err
    assert stopped.value.code == 2
    assert expected in printed
    assert printed.count("\n") == 1
    assert printed.rstrip().endswith("--help")


BRIEFLY = f"train {' '.join(SMALL)} --steps 1 --out {{tmp}}/a"


def test_no_generated_image_is_learned_from_and_tested_on():
    settings = settings_of({"data": "matching-pairs"})
    rows = [
        {image.numpy().tobytes() for image in load_part(settings, part).images[:500]}
        for part in ("train", "validation", "test")
    ]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]
    assert not rows[1] & rows[2]


BAD_INPUT = [
    ("train --data mnist --out {tmp}/a", "--root DIR --download"),
    ("train --data mnist --root {tmp} --out {tmp}/a", "is missing: fetch mnist with --download"),
    (f"{BRIEFLY} --patch-size 3", "--patch-size must divide"),
    (
        "train --architecture mlp-mixer --kernel-size 3 --out {tmp}/a",
        "--kernel-size must be left out, the architecture mlp-mixer has none (of conv-mixer, h",
    ),
    (
        "train --architecture hybrid --depth 3 --out {tmp}/a",
        "(of vit, mlp-mixer, conv-mixer); name its layers instead (layers, --layers)",
    ),
    (f"{BRIEFLY} --batch-size 2000", "--batch-size must be at most"),
    (f"{BRIEFLY} --steps 12 --out {{run}}", "already holds a run; go on with --resume or choose a"),
    ("train --resume --out {tmp}/batch_size_2", "vitbook: {tmp}/batch_size_2 holds no run"),
    ("attention 359 --run {run} --out a.png", "IMAGE must be below 359"),
    ("evaluate {tmp}/pointer", "is none: it is a pointer of Git LFS; fetch the file itself"),
    (
        "attention {tmp}/x.png --run {run} --out {tmp}/x.png",
        "--out must be another file than IMAGE",
    ),
    ("attention 1 --run {run} --out a.gif", "--out must end in .png"),
    ("attention 1 --run {run} --out a.png --query 4,0", "must lie in the grid of 4 x 4, got (4, 0"),
]


@pytest.mark.parametrize(("words", "expected"), BAD_INPUT)
def test_bad_input_is_named(words, expected, tmp_path, trained, capsys):
    shutil.copytree(trained, tmp_path / "pointer")
    pointer = "version https://git-lfs.github.com/spec/v1\n"
    (tmp_path / "pointer" / "checkpoint.safetensors").write_text(pointer)
    words = [word.format(tmp=tmp_path, run=trained) for word in words.split()]
    assert expected.replace("{tmp}", str(tmp_path)) in message(capsys, *words)
    assert not (tmp_path / "a" / "checkpoint.safetensors").exists()


class CompilerError(RuntimeError):
    __module__ = "torch._dynamo.exc"


ERRORS = [
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has"), "memory; a"),
    (
        RuntimeError("[gloo/transport/tcp/pair.cc:561] Closed by peer"),
        "train --resume goes on from",
    ),
    (torch.distributed.DistBackendError("NCCL error"), "process 0: another process ended or"),
    (
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
        "less memory than this",
    ),
    (CompilerError("no rule for this\nand a long tale"), "failed (no rule for this); leave"),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS)
def test_what_a_gpu_a_compiler_or_another_process_refuses_is_one_sentence(
    error, expected, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("RANK", "0")
    fails(monkeypatch, "vitbook.training.train", error)
    words = ["train", *SMALL, "--steps", 1, "--compile", "--out", tmp_path / "a"]
    assert expected in message(capsys, *words)


def test_an_error_of_the_program_itself_keeps_its_traceback(tmp_path, monkeypatch):
    fails(monkeypatch, "vitbook.training.train", RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run("train", *SMALL, "--steps", 1, "--out", tmp_path / "a")


def test_a_missing_gpu_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    text = message(capsys, "train", *SMALL, "--device", "cuda", "--out", tmp_path / "a")
    assert "torch sees no GPU (--device cuda)" in text


# --- recipes


@pytest.mark.parametrize("data", RECIPES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_model_fits_every_data_set(data, model, architecture):
    short = {"layers": ["mixer", "attention"]} if architecture == "hybrid" else {"depth": 1}
    settings = settings_of({"data": data, "model": model, "architecture": architecture, **short})
    settings |= {"classes": ["cat", "dog"]} if data == "folder" else {}
    with torch.device("meta"):
        assert build_model(settings).head.out_features in (2, 4, 10)
    train_config(settings)
    assert json.loads(json.dumps(settings))["model"] == model


def test_a_model_is_drawn_from_its_seed_alone():
    torch.manual_seed(1)
    one = build_model(settings_of({"seed": 3}))
    torch.manual_seed(2)
    other = build_model(settings_of({"seed": 3}))
    third = build_model(settings_of({"seed": 4}))
    assert torch.equal(one.patch_embed.proj.weight, other.patch_embed.proj.weight)
    assert not torch.equal(one.patch_embed.proj.weight, third.patch_embed.proj.weight)


EMPTY = ("train --out", "train --out x --root", "train --out x --weights", "train --out x --timm")
EMPTY += ("evaluate", "results x --out", "attention 1 --out x --run", "compare")
EMPTY += ("attention 1 --run x --out x.html --layers",)


@pytest.mark.parametrize("words", EMPTY)
def test_an_empty_word_is_no_path_and_no_name(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for empty, expected in (("", "must not be empty"), ("~nobody_at_all/x", "folder that exists")):
        with pytest.raises(SystemExit):
            main([*words.split(), empty])
        assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
