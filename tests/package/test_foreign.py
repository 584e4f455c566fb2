"""Weights in files of others: what is taken of them is said, and what is not is named."""

import argparse
import json
import pathlib
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vitbook.command.any_model import load_whole
from vitbook.models.foreign import read_weights, take, take_ours
from vitbook.models.transfer import adapt
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import load_weights

SIZES = {"image_size": 16, "patch_size": 8, "in_channels": 3, "embed_dim": 8, "depth": 2}
SIZES |= {"num_heads": 2, "num_classes": 3}
OURS = VisionTransformer(**SIZES).eval()
STATE = OURS.state_dict()
OTHER = {name: tensor + 1 for name, tensor in STATE.items()}


class Config(dict):
    """As those that training scripts keep beside the weights."""


def with_prefix(prefix, state=STATE):
    return {prefix + name: tensor for name, tensor in state.items()}


WRAPPED = {  # what is saved, and what the sentence says; "" where nothing has to be said
    "plain": (STATE, ""),
    "epoch beside": (STATE | {"epoch": 3}, ""),
    "module": (with_prefix("module."), "with the prefix module. is taken"),
    "compiled": (with_prefix("_orig_mod."), "with the prefix _orig_mod. is taken"),
    "two": (with_prefix("model.backbone."), "with the prefix model.backbone. is taken"),
    "more beside": (
        with_prefix("backbone.") | {"neck.weight": torch.ones(2)},
        "left out, without this prefix: neck.weight",
    ),
    "in a dict": ({"state_dict": STATE, "optimizer": {"state": {0: OTHER}}}, "state_dict is taken"),
    "namespace": ({"model": STATE, "args": argparse.Namespace(lr=1)}, "model is taken"),
    "classes": (
        {"model": STATE, "p": pathlib.PurePosixPath("x"), "d": defaultdict(list, {"a": [1]})}
        | {"best": np.float64(0.5), "cfg": Config(lr=1)},
        "model is taken",
    ),
    "EMA": (
        {"state_dict": OTHER, "state_dict_ema": STATE},
        "holds state_dict and state_dict_ema: state_dict_ema is taken",
    ),
    "teacher": (
        {"student": OTHER, "teacher": with_prefix("module.")},
        "teacher with the prefix mo",
    ),
    "flat teacher": (
        {"model": with_prefix("student.", OTHER) | with_prefix("teacher.")},
        "model with the prefix teacher. is taken",
    ),
    "deep": ({"checkpoint": {"ema": {"module": STATE}}}, "checkpoint.ema.module is taken"),
    "half": ({n: x.half() for n, x in STATE.items()}, "is in torch.float16"),
}


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("choose", [take, take_ours])
def test_what_is_taken_of_a_file_is_the_right_one_and_said(tmp_path, kind, legacy, choose):
    saved, words = WRAPPED[kind]
    path = tmp_path / "x.pth"
    torch.save(saved, path, _use_new_zipfile_serialization=not legacy)
    state, notes = choose(read_weights(path), STATE, "x.pth")
    state = {name: tensor for name, tensor in state.items() if name in STATE}
    assert state.keys() == STATE.keys()
    for name, tensor in state.items():
        torch.testing.assert_close(tensor.float(), STATE[name], atol=1e-3, rtol=0)
    assert (words in " ".join(notes)) if words else notes == []


def shards(place, ending):
    names = list(STATE)
    parts = {f"m-1-of-2.{ending}": names[:5], f"m-2-of-2.{ending}": names[5:]}
    for file, own in parts.items():
        tensors = {name: STATE[name].clone() for name in own}
        (save_file if ending == "safetensors" else torch.save)(tensors, place / file)
    index = {"weight_map": {name: file for file, own in parts.items() for name in own}}
    (place / f"model.{ending}.index.json").write_text(json.dumps(index))
    return place / f"model.{ending}.index.json"


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
def test_shards_are_read_through_their_index_and_a_missing_one_is_named(tmp_path, ending):
    index = shards(tmp_path, ending)
    state, _ = take(read_weights(index), STATE, "x")
    assert all(torch.equal(state[name], STATE[name]) for name in STATE)
    (tmp_path / f"m-2-of-2.{ending}").unlink()
    with pytest.raises(ValueError, match=f"names m-2-of-2.{ending}, which do not lie beside it"):
        read_weights(index)


def test_a_folder_of_the_hub_and_a_safetensors_file_of_any_name_are_read(tmp_path):
    save_file(STATE, tmp_path / "model.safetensors")
    assert read_weights(tmp_path)[""].keys() == STATE.keys()
    (tmp_path / "model.safetensors").rename(tmp_path / "weights.ckpt")
    assert read_weights(tmp_path / "weights.ckpt")[""].keys() == STATE.keys()


class Dangerous:
    def __init__(self, function):
        self.function = function

    def __reduce__(self):
        return self.function, ("it_ran",)


NO_WEIGHTS = {
    "nothing": (b"", "holds no weights: it is empty"),
    "zeros": (bytes(4000), "holds no weights: it begins with zeros"),
    "page": (b"\n<!DOCTYPE html><html>404", "it is a web page"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
    "text": (b"hello", "holds"),
    "other JSON": (b'{"a": 1}', "holds"),
    "archive": (b"PK\x03\x04 and no more", "cannot be read as weights"),
    "tensor": (torch.ones(3), "holds no state dict, names with a tensor each; it has Tensor"),
    "no tensors": ({"epoch": 1, "loss": 2.0}, "it has the names epoch, loss"),
    "whole model": (nn.Linear(2, 2), "code in it is not run"),
    "code": ({"model": Dangerous(pathlib.os.mkdir)}, "code in it is not run"),
    "other code": ({"x": Dangerous(exec)}, "code in it is not run"),
}


@pytest.mark.parametrize("kind", NO_WEIGHTS)
@pytest.mark.parametrize("ending", ["pth", "safetensors", "json"])
def test_a_file_without_weights_is_refused_in_a_sentence(tmp_path, monkeypatch, kind, ending):
    content, words = NO_WEIGHTS[kind]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"x.{ending}"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    if ending != "pth" and "holds no weights" not in words and kind not in ("page", "pointer"):
        words = "x"  # the ending is believed; a sentence all the same
    with pytest.raises(ValueError, match=words):
        read_weights(path)
    assert not (tmp_path / "it_ran").exists()


def test_names_of_another_model_are_told():
    foreign = {f"layer{i}.conv.weight": torch.ones(1) for i in range(9)}
    with pytest.raises(ValueError, match=r"it has layer0.conv.weight, .* and 6 more"):
        take({"": foreign}, STATE, "x.pth")
    with pytest.raises(ValueError, match=r"lacks cls_token, .*; it has head.bias"):
        load_whole(OURS, {"head.bias": STATE["head.bias"]}, "x.pth")
    broken = STATE | {"head.bias": STATE["head.bias"] * float("nan")}
    with pytest.raises(ValueError, match=r"holds nan or inf in head\.bias"):
        load_whole(OURS, broken, "x.pth")


@pytest.mark.parametrize("prefix", ["module.", "model.", "backbone.", "_orig_mod."])
def test_the_package_takes_a_prefix_off_and_says_so(prefix):
    for load in (load_weights, adapt):
        model = VisionTransformer(**SIZES)
        notes = load(model, OrderedDict(with_prefix(prefix)))
        assert any(f"the prefix {prefix} is taken" in note for note in notes)
        assert torch.equal(model.state_dict()["cls_token"], STATE["cls_token"])
