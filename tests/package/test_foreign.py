"""Weights in files of others: what is taken of them is said, and what is not is named."""

import argparse
import gzip
import importlib
import json
import os
import pathlib
import pickle
import re
import tarfile
import zipfile
from collections import OrderedDict, defaultdict, namedtuple
from contextlib import suppress

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save, save_file
from torch import nn

from vitbook.command import own_pictures
from vitbook.command.any_model import load_whole
from vitbook.command.beside import statistics_told
from vitbook.command.runs import lent_settings
from vitbook.models.foreign import read_weights, take, take_ours, their_names
from vitbook.models.hybrid import Hybrid
from vitbook.models.transfer import adapt
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import from_transformers, load_weights, save_weights

SIZES = {"image_size": 16, "patch_size": 8, "in_channels": 3, "embed_dim": 8, "depth": 2}
SIZES |= {"num_heads": 2, "num_classes": 3}
OURS = VisionTransformer(**SIZES).eval()
STATE = OURS.state_dict()
OTHER = {name: tensor + 1 for name, tensor in STATE.items()}


class Config(dict):
    """As those that training scripts keep beside the weights."""


class Names(list):
    """The same for a list."""


Range = namedtuple("Range", "first last")
DEEPER = VisionTransformer(**SIZES | {"depth": 3}).state_dict()
WIDER = VisionTransformer(**SIZES | {"embed_dim": 16}).state_dict()
NOT_WHOLE = {name: tensor for name, tensor in OTHER.items() if name != "encoder.norm.bias"}


HEAD = {name: STATE[f"head.{name}"] for name in ("weight", "bias")}
NO_HEAD = {name: tensor for name, tensor in STATE.items() if not name.startswith("head.")}
TWO = {"lora_A": torch.ones(2), "lora_B": torch.ones(2)}


def with_prefix(prefix, state=STATE):
    return {prefix + name: tensor for name, tensor in state.items()}


EIGHTHS = {name: torch.round(tensor * 8).clamp(-1, 1) / 8 for name, tensor in STATE.items()}
WRAPPED = {  # what is saved, and what the sentence says; "" where nothing has to be said
    "plain": (STATE, ""),
    "epoch beside": (STATE | {"epoch": 3}, ""),
    "module": (with_prefix("module."), "with the prefix module. is taken"),
    "compiled": (with_prefix("_orig_mod."), "with the prefix _orig_mod. is taken"),
    "parts": (
        {
            name.replace("blocks.0.", "blocks.0._checkpoint_wrapped_module."): x
            for name, x in STATE.items()
        },
        "",
    ),
    "compiled in part": (
        {name.replace("blocks.0.", "blocks.0._orig_mod."): x for name, x in STATE.items()},
        "",
    ),
    "two": (with_prefix("model.backbone."), "with the prefix model.backbone. is taken"),
    "more beside": (
        with_prefix("backbone.") | {"neck.weight": torch.ones(2)},
        "the prefix backbone. is taken; x.pth: left out: neck.weight",
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
    "EMA by its prefix": (
        {"state_dict": with_prefix("model.", OTHER) | with_prefix("ema_model.")},
        "state_dict with the prefix ema_model. is taken",
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
    "half in part": (
        {n: x.half() if x.ndim > 1 else x for n, x in STATE.items()},
        "is in torch.float16: read as float32",
    ),
    "8 bits": (
        {n: x.half().to(torch.float8_e5m2) for n, x in EIGHTHS.items()},
        "is in torch.float8_e5m2: read as float32",
    ),
    "equal": (
        with_prefix("netB.") | with_prefix("netA.", OTHER),
        "the file with the prefix netB. is taken",
    ),
    "semantic": ({"model": STATE, "semantic": OTHER}, "model is taken"),
    "optimal": ({"optimal": STATE, "last": OTHER}, "holds optimal and last"),
    "EMA as a module": (
        {"model": STATE, "ema": OURS},
        "ema is left out, vitbook.models.vit.VisionTransformer with code, which is not run",
    ),
    "EMA not whole": ({"ema": NOT_WHOLE, "model": STATE}, "holds ema and model: model is taken"),
    "deeper teacher": ({"teacher": DEEPER, "student": STATE}, "student is taken"),
    "wider teacher": ({"teacher": WIDER, "student": STATE}, "student is taken"),
    "named tuple": ({"model": STATE, "shift": Range(1, 2)}, "model is taken"),
    "lists": ({"model": STATE, "n": Names([1]), "c": Config(n=Names([2]))}, "model is taken"),
    "gradients": ({"grads": OTHER, "weights": STATE}, "weights is taken; to take another, save"),
    "moments": ({"opt": {"exp_avg": OTHER}, "net": STATE}, "net is taken"),
    "a mask": ({"mask": OTHER, "state_dict": STATE}, "mask and state_dict: state_dict is taken"),
    "Fisher": ({"fisher": OTHER, "params": STATE}, "params is taken"),
    "delta": ({"delta": OTHER, "mask2former": STATE}, "mask2former is taken"),
    "any before": ({"start": OTHER, "state_dict": STATE}, "state_dict is taken"),
    "epochs": ({"epoch_1": OTHER, "epoch_20": STATE, "epoch_3": OTHER}, "epoch_20 is taken"),
    "MoCo": (
        with_prefix("momentum_encoder.", OTHER) | with_prefix("base_encoder."),
        "the file with the prefix base_encoder. is taken",
    ),
    "EMA of zeros": (
        {"model": STATE, "ema": {name: 0 * x for name, x in STATE.items()}},
        "holds model and ema: model is taken",
    ),
    "head beside": (
        {"backbone": NO_HEAD, "head": HEAD},
        "backbone is taken; x.pth: head.weight, head.bias beside it: taken, too",
    ),
    "head above": (with_prefix("backbone.", NO_HEAD) | with_prefix("head.", HEAD), "taken, too"),
    "head in it": (NO_HEAD | {"head": HEAD}, "x.pth: head.weight, head.bias beside it: taken, too"),
    "head further out": (
        {"net": with_prefix("model.backbone.", NO_HEAD) | with_prefix("model.head.", HEAD)},
        "x.pth: net.model.head.weight, net.model.head.bias beside it: taken, too",
    ),
    "second head": (
        {"model": STATE, "head": {"weight": torch.ones(3, 8), "bias": torch.ones(3)}},
        "model is taken; x.pth: left out: head.weight, head.bias",
    ),
    "LoRA beside": ({"model": STATE, "lora": TWO}, "left out: lora.lora_A, lora.lora_B"),
    "LoRA in it": (STATE | {"lora": {"b": {0: TWO}}}, "left out: lora.b.0.lora_A, lora.b.0.lora_B"),
    "part of a mean": ({"model": STATE, "ema": TWO}, "left out: ema.lora_A, ema.lora_B"),
    "list": ({"model": STATE, "mean": [torch.ones(2)]}, "left out: mean.0"),
    "one beside": ({"model": STATE, "centre": torch.ones(2)}, "left out: centre"),
}


MASK = {name: (tensor > 0).float() for name, tensor in STATE.items()}
NEVER = {name: {name: OTHER} for name in ("exp_avg_sq", "grads", "mask", "fisher_diag")}
NEVER |= {"a file of 0 and 1 alone": MASK}


@pytest.mark.parametrize("what", NEVER)
def test_what_has_the_names_of_weights_and_is_none_is_refused(what):
    for load in (load_weights, adapt):
        with pytest.raises(ValueError, match=f"holds no weights: {what} is none"):
            load(VisionTransformer(**SIZES), NEVER[what])


def test_of_a_file_of_another_model_the_names_of_its_largest_part_are_told():
    layers = {f"backbone.layers.{i}.ln1.{name}": HEAD["bias"] for i in "01" for name in "ab"}
    layers |= {
        "backbone.cls_token": STATE["cls_token"],
        "backbone.pos_embed": 2 * torch.ones(1, 5, 8),
    }
    state = with_prefix("head.layers.head.", HEAD) | layers
    own = dict.fromkeys(["pos_embed", *STATE], torch.ones(1))
    taken, notes = take({"": state}, own, "x")
    assert "cls_token" in taken
    assert "the prefix backbone. is taken" in notes[0]


TODAY = {"8 bits", "EMA as a module"}  # which torch refuses in files as it wrote them until 1.5
WAYS = [(kind, False) for kind in WRAPPED] + [(kind, True) for kind in WRAPPED.keys() - TODAY]


@pytest.mark.parametrize("kind", sorted(TODAY))
def test_what_torch_refuses_in_files_of_its_past_is_a_sentence(tmp_path, kind):
    torch.save(WRAPPED[kind][0], tmp_path / "x.pth", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"x\.pth (cannot be read as weights|holds more than)"):
        read_weights(tmp_path / "x.pth")


@pytest.mark.parametrize(("kind", "legacy"), sorted(WAYS))
@pytest.mark.parametrize("choose", [take, take_ours])
def test_what_is_taken_of_a_file_is_the_right_one_and_said(tmp_path, kind, legacy, choose):
    saved, words = WRAPPED[kind]
    path = tmp_path / "x.pth"
    torch.save(saved, path, _use_new_zipfile_serialization=not legacy)
    state, notes = choose(read_weights(path), STATE, "x.pth")
    state = {name: tensor for name, tensor in state.items() if name in STATE}
    assert state.keys() == STATE.keys()
    for name, tensor in state.items():
        expected = EIGHTHS[name] if kind == "8 bits" else STATE[name]
        torch.testing.assert_close(tensor.float(), expected, atol=1e-3, rtol=0)
    assert (words in "; ".join(notes)) if words else notes == []


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


def test_of_one_tensor_in_two_shards_the_one_is_taken_that_the_index_names(tmp_path):
    index = shards(tmp_path, "bin")
    whole = torch.load(tmp_path / "m-2-of-2.bin") | {"cls_token": OTHER["cls_token"]}
    torch.save(whole, tmp_path / "m-2-of-2.bin")
    assert torch.equal(read_weights(index)[""]["cls_token"], STATE["cls_token"])
    torch.save([1], tmp_path / "m-2-of-2.bin")
    with pytest.raises(ValueError, match=r"m-2-of-2.bin holds no state dict but list"):
        read_weights(index)


def test_a_tensor_that_an_index_names_and_no_shard_holds_is_named(tmp_path):
    index = shards(tmp_path, "safetensors")
    place = json.loads(index.read_text())["weight_map"]
    index.write_text(json.dumps({"weight_map": place | {"lora.A": "m-1-of-2.safetensors"}}))
    with pytest.raises(ValueError, match=r"names lora\.A, which no file of its list holds"):
        read_weights(index)


def test_one_of_several_files_is_not_taken_for_a_smaller_model(tmp_path):
    path = tmp_path / "model-00001-of-00002.safetensors"
    save_file(STATE, path)
    with pytest.raises(ValueError, match="one of several files: name the folder or the index"):
        read_weights(path)


def test_a_folder_of_the_hub_and_a_safetensors_file_of_any_name_are_read(tmp_path):
    save_file(STATE, tmp_path / "model.safetensors")
    assert read_weights(tmp_path)[""].keys() == STATE.keys()
    (tmp_path / "model.safetensors").rename(tmp_path / "weights.ckpt")
    assert read_weights(tmp_path / "weights.ckpt")[""].keys() == STATE.keys()


@pytest.mark.parametrize("start", [b"version https://git-lfs.github.com/spec/v1\noid", b"", b"[]"])
def test_a_shard_that_is_none_is_named_with_what_it_is(tmp_path, start):
    index = shards(tmp_path, "safetensors")
    (tmp_path / "m-2-of-2.safetensors").write_bytes(start)
    with pytest.raises(ValueError, match=r"m-2-of-2.safetensors holds no weights: it is (a p|e|t)"):
        read_weights(index)


def test_shards_in_a_folder_are_those_that_the_index_names(tmp_path):
    index = shards(tmp_path, "bin")
    (tmp_path / "parts").mkdir()
    (tmp_path / "m-1-of-2.bin").rename(tmp_path / "parts" / "m-1-of-2.bin")
    torch.save({"x": torch.ones(1)}, tmp_path / "m-1-of-2.bin")
    index.write_text(index.read_text().replace("m-1-of-2", "parts/m-1-of-2"))
    assert read_weights(index)[""].keys() == STATE.keys()


def test_of_a_folder_it_is_said_which_file_is_taken_or_what_lies_in_it(tmp_path):
    torch.save(STATE, tmp_path / "model_best.pth.tar")
    (tmp_path / "checkpoint-500").mkdir()
    with pytest.raises(ValueError, match=r"it holds checkpoint-500/, model_best\.pth\.tar"):
        read_weights(tmp_path)
    save_file(STATE, tmp_path / "model.safetensors")
    torch.save(OTHER, tmp_path / "pytorch_model.bin")
    _, notes = take(read_weights(tmp_path), STATE, "x")
    assert "holds model.safetensors and pytorch_model.bin: model.safetensors is taken" in notes[0]


@pytest.mark.parametrize(
    "other",
    [
        "adapter_model.safetensors",
        "model_1.safetensors",
        "model.fp16.safetensors",
        "ema.safetensors",
        "my_model.pt",
    ],
)
def test_of_a_folder_every_other_file_of_weights_is_named(tmp_path, other):
    none = ["optimizer.bin", "optimizer.pt", "scheduler.pt", "training_args.bin", "optim_model.pt"]
    for name in ("model.safetensors", *none):
        save_file(STATE, tmp_path / name)
    assert not read_weights(tmp_path).notes
    save_file(OTHER, tmp_path / other)
    found = read_weights(tmp_path)
    assert f"holds model.safetensors and {other}: model.safetensors is taken" in found.notes[0]
    assert torch.equal(found[""]["cls_token"], STATE["cls_token"])


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_checkpoint_in_parts_is_to_be_joined_by_torch(tmp_path):
    importlib.import_module("torch.distributed.checkpoint").save(
        dict(STATE), checkpoint_id=tmp_path / "parts", no_dist=True
    )
    for path in (tmp_path / "parts", next((tmp_path / "parts").glob("*.distcp"))):
        with pytest.raises(ValueError, match="in parts") as caught:
            read_weights(path)
        call = re.search(r"(torch\.dis\S+)\.(\w+)\('(.*?)', 'weights.pth'\)", str(caught.value))
        join = getattr(importlib.import_module(call[1]), call[2])
        join(call[3], tmp_path / "weights.pth")
        assert read_weights(tmp_path / "weights.pth")[""].keys() == STATE.keys()


def changed(change):
    return {name: change(x) if x.ndim == 2 else x for name, x in STATE.items()}


OF_OTHER_KINDS = {  # what is no weight, and what is said of it
    "int8": (lambda x: (x * 100).to(torch.int8), "is in torch.int8"),
    "bool": (lambda x: x > 0, "is in torch.bool"),
    "complex": (lambda x: x.to(torch.complex64), "torch.complex64"),
    "quantized": (lambda x: torch.quantize_per_tensor(x, 0.01, 0, torch.qint8), "qint8"),
    "sparse": (lambda x: x.to_sparse(), "torch.sparse_coo"),
    "meta": (lambda x: x.to("meta"), "a shape without numbers"),
    "elsewhere": (lambda x: torch.empty(0), r"of the shape \(0,\)"),
    "no rows": (lambda x: x[:0], r"of the shape \(0, 8\)"),
    "nested": (lambda x: torch.nested.nested_tensor([x, x]), "is missing|lacks"),
}


@pytest.mark.filterwarnings("ignore")  # of torch, where it makes such tensors
@pytest.mark.parametrize("kind", OF_OTHER_KINDS)
@pytest.mark.parametrize("ours", [True, False])
def test_what_is_no_plain_weight_is_refused_by_name_and_kind(tmp_path, kind, ours):
    change, words = OF_OTHER_KINDS[kind]
    torch.save(changed(change), tmp_path / "x.pth")
    model = VisionTransformer(**SIZES)

    def load():
        if ours:
            own_pictures.start_from(model, {"weights": tmp_path / "x.pth", "timm": None})
        taken, _ = take(read_weights(tmp_path / "x.pth"), STATE, "x.pth")
        load_whole(model, taken, "x.pth")

    with pytest.raises(ValueError, match=words):
        load()


def test_matrices_that_hold_nothing_are_named():
    zeros = STATE | {"encoder.blocks.1.attn.qkv.weight": torch.zeros(24, 8)}
    words = "nothing but zeros in encoder.blocks.1.attn.qkv.weight: were they all written?"
    assert load_weights(VisionTransformer(**SIZES), zeros) == [words]
    assert load_whole(VisionTransformer(**SIZES), zeros, "x") == [words]


def test_a_class_whose_module_is_not_imported_takes_weights():
    kind = type("Own", (VisionTransformer,), {"__module__": "read_from_a_file"})
    assert load_whole(kind(**SIZES), STATE, "x") == []


@pytest.mark.parametrize("load", [load_weights, adapt])
def test_one_logit_one_patch_and_a_class_token_without_batch_axis_are_no_stumbling_block(load):
    model = VisionTransformer(**SIZES | {"num_classes": 1, "image_size": 8, "pool": "mean"})
    assert load_whole(model, model.state_dict(), "x") == []
    state = {name: torch.randn(x.shape) for name, x in model.state_dict().items()}
    assert len(state["positions.table"]) == len(state["head.weight"]) == 1
    load(model, state)
    for name in ("positions.table", "encoder.norm.bias"):
        assert torch.equal(model.state_dict()[name], state[name])
    with pytest.raises(ValueError, match=r"cls_token has the shape \(1, 8\)"):
        load(VisionTransformer(**SIZES), STATE | {"cls_token": torch.ones(1, 8)})


def ends_in_zeros(name, number, state):
    table = state[name].clone()
    table.view(-1)[-number:] = 0
    return state | {name: table}


@pytest.mark.parametrize("of_timm", [False, True])
def test_zeros_at_the_end_of_what_no_pruning_empties_are_named(of_timm):
    model = VisionTransformer(**SIZES | {"embed_dim": 64, "image_size": 64}).eval()
    name, matrix = "positions.table", "encoder.blocks.0.mlp.fc1.weight"
    if of_timm:
        model = timm.create_model("vit_tiny_patch16_224", depth=1, num_classes=3)
        name, matrix = "pos_embed", "blocks.0.mlp.fc1.weight"
    state = {key: torch.randn(x.shape) for key, x in model.state_dict().items()}

    def told(state):
        return load_whole(model, state, "x") if of_timm else load_weights(model, state)

    assert told(ends_in_zeros(name, 1024 + 512, state)) == [
        f"nothing but zeros at the end in {name}: were they all written?"
    ]
    assert told(ends_in_zeros(matrix, 1024 + 5, state)) == [
        f"nothing but zeros at the end in {matrix}: were they all written?"
    ]
    rows = ends_in_zeros(matrix, 20 * state[matrix].shape[1], state)  # as of pruned neurons
    columns = state | {matrix: state[matrix] * (torch.arange(state[matrix].shape[1]) < 5)}
    bias = ends_in_zeros(matrix.replace("weight", "bias"), 200, state)
    for fine in (state, rows, columns, bias, ends_in_zeros(matrix, 5, state)):
        assert told(fine) == []


def test_what_names_and_shapes_do_not_tell_is_asked_of_the_file_beside(tmp_path):
    save_file(STATE, tmp_path / "model.safetensors")
    settings = {"weights": tmp_path, "timm": None}
    notes = own_pictures.start_from(VisionTransformer(**SIZES), settings)
    assert notes[-1] == "no file says how many heads they had: 2, as in the model, are taken"
    for heads, more in ((2, {}), (2, {"hidden_act": "quick_gelu"}), (4, {})):
        config = {"vision_config": {"num_attention_heads": heads} | more}
        (tmp_path / "config.json").write_text(json.dumps(config))
        if heads == 2:
            notes = own_pictures.start_from(VisionTransformer(**SIZES), settings)
            assert ["gelu" in note for note in notes[1:]] == [True] * len(more)
        else:
            with pytest.raises(ValueError, match="says 4 heads, the model has 2: num_heads=4"):
                own_pictures.start_from(VisionTransformer(**SIZES), settings)


HEADS_SAID = {  # by what scripts keep beside weights
    "args": {"model": STATE, "args": argparse.Namespace(num_heads=4, decoder_heads=1)},
    "hyper_parameters": {"state_dict": with_prefix("model."), "hyper_parameters": {"heads": 4}},
    "config.model": {"state_dict": STATE, "config": {"model": Config(n_heads=4)}},
    "config": {"state_dict": STATE, "config": '{"decoder": {"heads": 1}, "num_heads": 4}'},
    "": {"model": STATE, "num_attention_heads": 4},
    "metadata": {"num_heads": "4"},
}


@pytest.mark.parametrize("place", HEADS_SAID)
def test_the_number_of_heads_is_taken_from_wherever_it_is_said(tmp_path, place):
    path, saved = tmp_path / "x.pt", HEADS_SAID[place]
    save_file(STATE, path, saved) if place == "metadata" else torch.save(saved, path)
    given = {"data": "folder", "weights": str(path)}
    assert lent_settings(given, {}) == {"num_heads": 4}
    assert lent_settings(given | {"num_heads": 2}, {}) == {}
    assert lent_settings(given | {"architecture": "mlp-mixer"}, {}) == {}
    words = f"x.pt{(place and place != 'metadata' and f' ({place})') or ''} says 4 heads, the model"
    with pytest.raises(ValueError, match=re.escape(words)):
        own_pictures.start_from(VisionTransformer(**SIZES), {"weights": path, "timm": None})
    notes = own_pictures.start_from(
        VisionTransformer(**SIZES | {"num_heads": 4}), {"weights": path, "timm": None}
    )
    assert "no file says" not in " ".join(notes)


STATISTICS_SAID = {
    ("config.json", '{"pretrained_cfg": {"mean": [0.1, 0.2, 0.3], "std": [1, 0.5, 0.5]}}'): 0.1,
    ("preprocessor_config.json", '{"image_mean": [0.4, 0, 0], "image_std": [0.1, 0.1, 0.1]}'): 0.4,
    ("preprocessor_config.json", '{"do_normalize": false, "image_mean": [0.4, 0, 0]}'): 0.0,
    ("config.json", '{"mean": [0.1, 0.2, 0.3], "std": [1, 0, 1]}'): "not taken",
    ("config.json", '{"mean": [127.5, 127.5, 127.5], "std": [1, 1, 1]}'): "not taken",
    ("config.json", '{"num_attention_heads": 3}'): "",
    ("config.json", "[]"): "",
}


@pytest.mark.parametrize(("name", "text"), STATISTICS_SAID)
def test_statistics_beside_weights_are_taken_or_it_is_said_that_they_are_not(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    known, said = statistics_told(tmp_path / "x.safetensors")
    expected = STATISTICS_SAID[name, text]
    if isinstance(expected, float):
        assert known["mean"][0] == expected
        assert said.endswith("taken")
        assert f"the {name} beside" in said
    else:
        assert known == {}
        assert said.endswith(expected)
        assert bool(said) == bool(expected)


def test_a_config_beside_is_asked_whatever_stands_in_it(tmp_path):
    save_file(STATE, tmp_path / "model.safetensors")
    unsaid = "no file says how many heads"
    for config, said in (
        ({"vision_config": None, "num_attention_heads": 2}, []),
        ({"vision_config": 7}, [unsaid]),
        ({"num_attention_heads": "2"}, []),
        ({"num_attention_heads": 2, "layer_norm_eps": 1e-12}, []),
        ({"num_attention_heads": 2, "layer_norm_eps": 0.01}, ["layer_norm_eps 0.01, the model"]),
        ({"hidden_act": "relu"}, [unsaid, "says relu, the model has gelu"]),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        settings = {"weights": tmp_path, "timm": None}
        notes = own_pictures.start_from(VisionTransformer(**SIZES), settings)[1:]
        assert len(notes) == len(said)
        assert all(words in note for words, note in zip(said, notes, strict=True))


def test_a_training_takes_the_grid_that_the_file_tells(tmp_path):
    for size, old in (((16, 64), "2 x 8"), ((16, 48), "2 x 6")):
        save_weights(VisionTransformer(**SIZES | {"image_size": size}), tmp_path / "x.safetensors")
        settings = {"weights": tmp_path / "x.safetensors", "timm": None}
        notes = own_pictures.start_from(VisionTransformer(**SIZES), settings)
        assert f"positions resampled from {old} to 2 x 2 patches" in notes


def test_a_refusal_says_what_had_been_taken(tmp_path):
    torch.save({"teacher": DEEPER, "epoch": 3}, tmp_path / "x.pth")
    with pytest.raises(ValueError, match=r"3 blocks, the model has 2.*--timm.*teacher is taken"):
        own_pictures.start_from(OURS, {"weights": tmp_path / "x.pth", "timm": None})


def of_timm(state):
    ours = {"positions.table": "pos_embed", "encoder.blocks.": "blocks.", "encoder.norm": "norm"}
    for start, theirs in ours.items():
        state = {
            theirs + name.removeprefix(start) if name.startswith(start) else name: x
            for name, x in state.items()
        }
    return state | {"pos_embed": state["pos_embed"][None]}


WRONG_OF_TIMM = {  # what is changed in a file, and the refusal
    "blocks.1.mlp.fc1.bias has the shape": {"blocks.1.mlp.fc1.bias": torch.ones(3)},
    "blocks.0.attn.q_norm.weight is unknown": {"blocks.0.attn.q_norm.weight": torch.ones(8)},
    "pos_embed holds 10 patches": {"pos_embed": torch.ones(1, 11, 8)},
    "got the names cls_token, pos_embed, blocks.0": {"patch_embed.proj.weight": None},
}


@pytest.mark.parametrize("words", WRONG_OF_TIMM)
def test_a_refusal_calls_tensors_as_the_file_does(tmp_path, words):
    change = WRONG_OF_TIMM[words]
    state = {name: x for name, x in (of_timm(STATE) | change).items() if x is not None}
    state.pop("patch_embed.proj.bias" if None in change.values() else "", None)
    model = VisionTransformer(**SIZES | {"image_size": 32})
    for prefix in ("", "module."):
        torch.save(with_prefix(prefix, state), tmp_path / "x.pth")
        with pytest.raises(ValueError, match=words) as caught:
            own_pictures.start_from(model, {"weights": tmp_path / "x.pth", "timm": None})
        assert not re.search(r"positions\.table|encoder\.", str(caught.value))


def test_tensors_that_are_joined_are_all_named():
    start = "vit.encoder.layer.0.attention.attention."
    names = [f"{start}{part}.weight" for part in ("query", "key", "value")]
    state = {"vit.embeddings.patch_embeddings.projection.weight": torch.ones(8, 3, 8, 8)}
    state |= {name: torch.ones(8, 8) for name in names} | {f"{start}query.bias": torch.ones(8)}
    known = their_names(state)
    assert known["encoder.blocks.0.attn.qkv.weight"] == " + ".join(names)
    assert known["encoder.blocks.0.attn.qkv.bias"] == f"{start}query.bias"


@pytest.mark.parametrize("rows", [16, 15])
def test_a_table_that_timm_cannot_resample_is_refused_in_a_sentence(rows):
    model = timm.create_model("vit_tiny_patch16_224", depth=1, embed_dim=24, num_classes=3)
    state = model.state_dict() | {"pos_embed": torch.ones(1, rows, 24)}
    words = rf"pos_embed has the shape \(1, {rows}, 24\).* behind 1 .* as many rows as a square"
    with pytest.raises(ValueError, match=words) as caught:
        load_whole(model, state, "x")
    assert "invalid" not in str(caught.value)
    for shape in ((1, 5, 16), (5, 24)):
        with pytest.raises(ValueError, match=re.escape(f"shape {shape}, the model needs")):
            load_whole(model, state | {"pos_embed": torch.ones(shape)}, "x")


OTHERWISE = {  # what timm changes on the way, beside the table
    "16 x 16": {"patch_embed.proj.weight": torch.ones(24, 3, 16, 16)},
    "flat": {"patch_embed.proj.weight": torch.ones(24, 3 * 8 * 8)},
    "a layer before the head": {"pre_logits.fc.weight": torch.ones(24, 24)},
}


@pytest.mark.parametrize("change", OTHERWISE)
@pytest.mark.parametrize("rows", [17, 65])
def test_of_what_timm_would_change_only_positions_are_resampled(change, rows):
    model = timm.models.VisionTransformer(32, 8, depth=1, embed_dim=24, num_heads=2, num_classes=3)
    table = {"pos_embed": torch.ones(1, rows, 24)}
    state = model.state_dict() | table | OTHERWISE[change]
    before = model.patch_embed.proj.weight.clone()
    with pytest.raises(ValueError, match=f"x .*{next(iter(OTHERWISE[change]))}"):
        load_whole(model, state, "x")
    assert torch.equal(model.patch_embed.proj.weight, before)
    state = model.state_dict() | table | {"mask_token": torch.ones(1, 24)}
    assert load_whole(model, state, "x")[0].endswith("does not read it: mask_token")


def test_a_table_of_nothing_but_zeros_is_named_where_a_class_token_may_be_so():
    model = timm.create_model("vit_tiny_patch16_224", depth=1, num_classes=3)
    zeros = {
        name: torch.zeros_like(model.state_dict()[name]) for name in ("cls_token", "pos_embed")
    }
    notes = load_whole(model, model.state_dict() | zeros, "x")
    assert notes == ["nothing but zeros in pos_embed: were they all written?"]


@pytest.mark.parametrize("old_grid", [None, (1, 17)])
@pytest.mark.parametrize("tokens", [{}, {"num_registers": 2}])
def test_a_row_of_a_token_that_there_is_not_is_told(old_grid, tokens):
    model = VisionTransformer(
        **SIZES | {"image_size": 32}, class_token=False, pool="mean", **tokens
    )
    rows = 17 + model.num_prefix
    state = model.state_dict() | {"positions.table": torch.randn(rows, 8)}
    with pytest.raises(
        ValueError, match=rf"{rows} rows, one more than 4 x 4 .* that they do not have"
    ):
        load_weights(model, state, old_grid=old_grid)
    sizes = SIZES | {"image_size": (24, 40)}  # 16 patches and a class token for 15 and one
    state = VisionTransformer(**sizes | {"image_size": 32}).state_dict()
    assert load_weights(VisionTransformer(**sizes), state)[0].endswith("4 x 4 to 3 x 5 patches")


def test_several_class_tokens_are_no_reason_to_ask_for_a_grid():
    state = {"embeddings.cls_token": torch.ones(1, 4, 8)}
    state |= {"embeddings.patch_embeddings.projection.weight": STATE["patch_embed.proj.weight"]}
    named = {"embeddings.position_embeddings": torch.ones(1, 8, 8)}
    rest = from_transformers(state | named)
    assert rest["cls_token"].shape == (1, 4, 8)
    with pytest.raises(ValueError, match=r"cls_token has the shape \(1, 4, 8\)"):
        load_weights(VisionTransformer(**SIZES), STATE | rest)


def test_attention_lent_to_a_layer_without_queries_is_refused_with_no_false_reason():
    sizes = {name: x for name, x in SIZES.items() if name != "depth"}
    attention, uniform = (Hybrid(**sizes, layers=[kind]) for kind in ("attention", "uniform"))
    with pytest.raises(ValueError, match=r"qkv\.weight is unknown") as caught:
        load_weights(uniform, attention.state_dict())
    assert not re.search("apart|decides", str(caught.value))


@pytest.mark.parametrize(
    ("change", "option"), [({"depth": 3}, True), ({"layer_scale": 0.1}, False)]
)
def test_only_of_what_no_option_sets_it_is_said(tmp_path, change, option):
    torch.save(VisionTransformer(**SIZES | change).state_dict(), tmp_path / "x.pth")
    with pytest.raises(ValueError, match="--timm NAME trains a model of their kind") as caught:
        own_pictures.start_from(OURS, {"weights": tmp_path / "x.pth", "timm": None})
    assert ("what no option sets" in str(caught.value)) != option


@pytest.mark.parametrize("added", ["lora_A", "weight_mask", "parametrizations.weight.original1"])
def test_what_was_added_to_weights_is_to_be_merged_into_them(tmp_path, added):
    torch.save(STATE | {f"encoder.blocks.0.attn.qkv.{added}": torch.ones(2)}, tmp_path / "x.pth")
    with pytest.raises(ValueError, match="merged into them"):
        own_pictures.start_from(OURS, {"weights": tmp_path / "x.pth", "timm": None})


def test_a_path_may_be_no_utf_8(tmp_path):
    place = tmp_path / os.fsdecode(b"fotos \xe9")
    try:
        place.mkdir()
    except OSError:
        pytest.skip("this disk has no such names")
    (place / "x.safetensors").write_bytes(save(STATE))
    assert load_weights(VisionTransformer(**SIZES), place / "x.safetensors") == []
    assert read_weights(place / "x.safetensors")[""].keys() == STATE.keys()


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
    "empty": ({}, r"it has the names \(none\)"),
    "no tensors": ({"epoch": 1, "step": 2}, "it has the names epoch, step$"),
    "optimizer": (
        {"state": {0: {"step": torch.ones(()), "exp_avg": torch.ones(3)}}, "param_groups": [{}]},
        "it has the names state, param_groups, an optimizer's state: name the file of the model",
    ),
    "SGD": (
        {"state": {"head.bias": {"momentum_buffer": torch.ones(3)}}},
        "it has the names state, an optimizer's state: name the file of the model",
    ),
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


def packed(place, name):
    """A state dict in a file of another kind."""
    torch.save(STATE, place / "w")
    arrays = {key: tensor.numpy() for key, tensor in STATE.items()}
    if name == "x.npz":
        np.savez(place / name, **arrays)
    elif name == "x.npy":
        np.save(place / name, arrays["cls_token"])
    elif name == "x.gz":
        (place / name).write_bytes(gzip.compress((place / "w").read_bytes()))
    elif name == "x.tar":
        with tarfile.open(place / name, "w") as archive:
            archive.add(place / "w", "w")
    elif name == "x.zip":
        with zipfile.ZipFile(place / name, "w") as archive:
            archive.write(place / "w", "w.pth")
    elif name == "x.pt":
        torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)), place / name)
    elif name == "x.pkl":
        (place / name).write_bytes(pickle.dumps(STATE))
    elif name == "x.pth":
        torch.save(arrays, place / name)


OF_OTHERS = {
    "x.npz": r"a zip archive of cls_token\.npy",
    "x.npy": "an array of numpy",
    "x.gz": "packed by gzip; unpack it",
    "x.tar": "a tar archive; unpack it",
    "x.zip": r"a zip archive of w\.pth",
    "x.pt": "a program of TorchScript",
    "x.pkl": "a pickle that torch.save did not write",
    "x.pth": r"objects of numpy \(arrays\)",
    "x.bin": ("Entry not found", 'text, "Entry not found"'),
    "e.pth": ('{"error": "gated"}', 'text, "{"error": "gated"}'),
    "s.pth": ("<Error><Code>AccessDenied", "a web page, of a login or an error"),
    "b.pth": ("\ufeff<!DOCTYPE html>", "a web page"),
    "x.onnx": ("\x08\x07\x12\x07pytorch", "of ONNX"),
    "x.gguf": ("GGUF\x03\0\0", "a file of GGUF"),
    "x.h5": (b"\x89HDF\r\n\x1a\n\0\0", "a file of HDF5"),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_file_of_another_kind_is_called_what_it_is(tmp_path, name, recwarn):
    words = OF_OTHERS[name]
    if isinstance(words, tuple):
        content, words = words
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    else:
        packed(tmp_path, name)
    recwarn.clear()  # of making it
    with pytest.raises(ValueError, match=words) as raised:
        read_weights(tmp_path / name)
    assert "weights_only" not in str(raised.value)
    assert len(recwarn) == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_is_loaded_or_refused_in_a_sentence(tmp_path, seed):
    random = np.random.default_rng(seed)
    index, model = shards(tmp_path, ("bin", "safetensors")[seed % 2]), VisionTransformer(**SIZES)
    path = [index, *sorted(tmp_path.glob("m-*"))][seed % 3]
    for _ in range(5):
        data = bytearray(path.read_bytes())
        at = int(random.integers(max(1, min(len(data), 10 ** int(random.integers(1, 7))))))
        if random.random() < 0.2:
            data = data[:at]
        else:
            data[at : at + 4] = random.bytes(int(random.integers(5)))
        path.write_bytes(data)
        with suppress(ValueError):
            own_pictures.start_from(model, {"weights": index, "timm": None})


def test_a_file_that_is_cut_is_called_so(tmp_path):
    for ending, write in (("pth", torch.save), ("safetensors", save_file)):
        path = tmp_path / f"x.{ending}"
        write(STATE, path)
        for share in (0.1, 0.9):
            (tmp_path / "cut").write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
            with pytest.raises(ValueError, match="it is cut, perhaps; download it again"):
                read_weights(tmp_path / "cut")


def test_weights_that_were_damaged_since_they_were_saved_are_told(tmp_path):
    path = tmp_path / "x.pth"
    torch.save(STATE, path)
    assert read_weights(path).notes == ()
    data = bytearray(path.read_bytes())
    place = data.find(STATE["encoder.blocks.1.mlp.fc1.weight"].numpy().tobytes())
    data[place : place + 100] = bytes(100)
    path.write_bytes(data)
    _, notes = take(read_weights(path), STATE, "x.pth")
    assert "has another checksum than is written: it is damaged" in notes[0]


@pytest.mark.parametrize(
    ("name", "words"), [("lambda_q1", "difference of two maps"), ("lambda_1", "scaled")]
)
def test_a_reason_is_not_told_for_a_name_that_only_begins_like_it(name, words):
    weights = STATE | {f"encoder.blocks.0.{name}": torch.ones(8)}
    with pytest.raises(ValueError, match=f"{name} is unknown to the model: .*{words}"):
        load_weights(VisionTransformer(**SIZES), weights)


APART = {
    name.replace("qkv", f"to_{letter}"): part
    for name, x in STATE.items()
    if "qkv" in name
    for letter, part in zip("qkv", x.chunk(3), strict=True)
}
TOLD = {
    "are in chunks": {n.replace("blocks.", "blocks.0."): x for n, x in STATE.items()},
    "keep queries, keys and values": {n: x for n, x in STATE.items() if "qkv" not in n} | APART,
    r"the shape \(8, 192\).*: of a linear": {
        n: x.flatten(1) if "patch_embed.proj.w" in n else x for n, x in STATE.items()
    },
}


KERNEL = "patch_embed.proj.weight"
TOLD |= {
    r"puts channels last\? permute\(3, 2, 0, 1\)": STATE
    | {KERNEL: STATE[KERNEL].permute(2, 3, 1, 0)},
    r"the shape \(96,\).*: flat, as FSDP": STATE | {KERNEL: STATE[KERNEL].flatten()[:96]},
    "qkv.bias_mask is unknown to the model$": STATE
    | {"encoder.blocks.0.attn.qkv.bias_mask": torch.ones(24)},
}


@pytest.mark.parametrize("words", TOLD)
def test_a_layout_of_others_is_refused_with_what_to_do(words):
    for load in (adapt, load_weights):
        with pytest.raises(ValueError, match=words):
            load(VisionTransformer(**SIZES), TOLD[words])


def test_a_refusal_tells_names_of_both_where_all_blocks_are_called_otherwise(tmp_path):
    renamed = {name.replace("encoder.blocks.", "encoder.stages."): x for name, x in STATE.items()}
    with pytest.raises(ValueError, match=r"blocks\.0\.\S+ is missing .*stages\.0\.\S+ is unknown"):
        load_weights(VisionTransformer(**SIZES), renamed)


WRAPPERS = [torch.compile, nn.DataParallel, torch.optim.swa_utils.AveragedModel]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_model_in_a_wrapper_takes_weights_as_it_does_itself(wrap):
    for load in (load_weights, adapt):
        model = nn.DataParallel(wrap(VisionTransformer(**SIZES)))
        assert load(model, OTHER) == load(VisionTransformer(**SIZES), OTHER)
        held = {name.split("module.")[-1]: x for name, x in model.state_dict().items()}
        name = next(name for name in held if name.endswith("encoder.blocks.1.mlp.fc2.weight"))
        assert torch.equal(held[name], OTHER["encoder.blocks.1.mlp.fc2.weight"])


@pytest.mark.parametrize("called", ["{}:0", "net_{}", "{}s.x"])
@pytest.mark.parametrize("names", [dict, of_timm])
def test_of_a_tensor_under_another_name_that_name_is_told(called, names):
    state = {called.format(name): tensor for name, tensor in names(STATE).items()}
    with pytest.raises(ValueError, match="weights must fit the model") as caught:
        load_weights(VisionTransformer(**SIZES), state)
    assert f"cls_token is missing: the weights have {called.format('cls_token')};" in str(
        caught.value
    )
    assert "decides" not in str(caught.value)


def test_names_of_another_model_are_told():
    foreign = {f"layer{i}.conv.weight": torch.ones(1) for i in range(9)}
    with pytest.raises(ValueError, match=r"it has layer0.conv.weight, .* and 6 more"):
        take({"": foreign}, STATE, "x.pth")
    with pytest.raises(ValueError, match=r"lacks cls_token, .*; it has head.bias"):
        load_whole(OURS, {"head.bias": STATE["head.bias"]}, "x.pth")
    broken = STATE | {"head.bias": STATE["head.bias"] * float("nan")}
    with pytest.raises(ValueError, match=r"holds nan or inf in head\.bias"):
        load_whole(OURS, broken, "x.pth")


def test_a_head_under_a_name_of_others_is_left_out_and_no_false_reason_given():
    notes = load_weights(VisionTransformer(**SIZES), {"backbone": NO_HEAD, "classifier": HEAD})
    left = "left out: classifier.weight, classifier.bias"
    assert notes[1:] == [f"weights: {left}", "head left fresh: what is taken has none"]


def test_a_mapping_for_each_part_of_a_model_is_taken_by_their_names():
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "classifier": nn.Linear(2, 3)})
    parts = {name: part.state_dict() for name, part in model.items()}
    state, notes = take({name: parts[name] for name in parts}, model.state_dict(), "x")
    assert state.keys() == model.state_dict().keys()
    assert notes == []


def test_of_a_file_that_fits_nowhere_all_names_are_told_whole():
    layers = {f"layer{i}": {"kernel": torch.ones(8, 8), "bias": torch.ones(8)} for i in "01"}
    for load in (load_weights, adapt):
        with pytest.raises(ValueError, match=r"params\.layer0\.kernel"):
            load(VisionTransformer(**SIZES), {"params": layers})


def test_a_tensor_whose_key_is_no_text_is_refused_like_any_that_is_unknown():
    words = r"5 is unknown to the model; \('a', 'b'\) is unknown"
    with pytest.raises(ValueError, match=words):
        load_weights(
            VisionTransformer(**SIZES), STATE | {5: torch.ones(3), ("a", "b"): HEAD["bias"]}
        )


TWICE = {  # what comes to a name that there is, and that name in the file
    "encoder.norm.bias": ("norm.bias", of_timm),
    "blocks.0._orig_mod.norm1.bias": ("blocks.0.norm1.bias", of_timm),
    "encoder.blocks.0._checkpoint_wrapped_module.norm1.bias": ("encoder.blocks.0.norm1.bias", dict),
}


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("second", TWICE)
def test_two_tensors_that_come_to_one_name_are_both_named(second, prefix):
    first, names = TWICE[second]
    state = with_prefix(prefix, names(STATE) | {second: torch.ones(8)})
    for load in (load_weights, adapt):
        with pytest.raises(ValueError, match="hold each tensor once: ") as caught:
            load(VisionTransformer(**SIZES), state)
        assert all(re.search(rf"[ .]{re.escape(n)} ", str(caught.value)) for n in (first, second))


@pytest.mark.parametrize(("kind", "number"), [(torch.float16, 1e6), (torch.float32, 1e300)])
def test_numbers_that_the_model_cannot_hold_are_refused(kind, number):
    model, name = VisionTransformer(**SIZES).to(kind), "encoder.blocks.0.mlp.fc1.weight"
    state = {key: x.double() for key, x in STATE.items()}
    load_weights(model, state)
    state[name][0, 0] = number
    for load in (load_weights, lambda model, state: load_whole(model, state, "x")):
        with pytest.raises(ValueError, match=f"holds numbers too large for {kind}") as caught:
            load(model, state)
        assert name in str(caught.value)


@pytest.mark.parametrize("prefix", ["module.", "model.", "backbone.", "_orig_mod."])
def test_the_package_takes_a_prefix_off_and_says_so(prefix):
    for load in (load_weights, adapt):
        model = VisionTransformer(**SIZES)
        notes = load(model, OrderedDict(with_prefix(prefix)))
        assert any(f"the prefix {prefix} is taken" in note for note in notes)
        assert torch.equal(model.state_dict()["cls_token"], STATE["cls_token"])
