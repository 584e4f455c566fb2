"""Logits of ours, of torchvision's and of timm's models agree when they hold the same weights."""

import math
import os
import re

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.testing import assert_close

from vitbook.layers.positions import resample_positions
from vitbook.models.vit import VisionTransformer, vit
from vitbook.models.weights import (
    cast_weights,
    from_timm,
    from_torchvision,
    load_weights,
    read_weights,
    save_weights,
)


def small(**kwargs):
    sizes = {"image_size": (6, 8), "patch_size": 2, "in_channels": 3, "num_classes": 5}
    sizes |= {"embed_dim": 12, "depth": 2, "num_heads": 3}
    return VisionTransformer(**(sizes | kwargs)).eval()


def all_random(model: nn.Module) -> nn.Module:
    """Neither zeros nor ones, else a swapped norm or a forgotten class token would go unnoticed."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.05)
    return model.eval()


PUBLISHED = {
    "B/16": (torchvision.models.vit_b_16, from_torchvision),
    "S/16": (lambda: timm.create_model("vit_small_patch16_224"), from_timm),
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", PUBLISHED)
@torch.no_grad()
def test_logits_agree_with_those_of_torchvision_and_timm(variant):
    make, names = PUBLISHED[variant]
    theirs, ours = all_random(make()), vit(variant).eval()
    assert load_weights(ours, names(theirs.state_dict())) == []
    images = torch.randn(2, 3, 224, 224)
    expected = theirs(images)
    assert expected.std() > 0.01
    assert_close(ours(images), expected, atol=1e-4, rtol=0)


def test_the_old_names_of_torchvisions_mlp_are_known():
    sizes = {"num_layers": 2, "num_heads": 3, "hidden_dim": 12, "mlp_dim": 48, "num_classes": 5}
    theirs = all_random(
        torchvision.models.VisionTransformer(image_size=8, patch_size=2, **sizes)
    ).state_dict()
    old = {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): tensor
        for name, tensor in theirs.items()
    }
    assert old.keys() != theirs.keys()
    for name, tensor in from_torchvision(theirs).items():
        assert torch.equal(from_torchvision(old)[name], tensor)
    load_weights(small(image_size=8), from_torchvision(old))


def test_what_is_saved_comes_back_bit_by_bit(tmp_path):
    trained, fresh = all_random(small()), small()
    save_weights(trained, tmp_path / "model.safetensors", metadata={"seed": "3"})
    assert load_weights(fresh, tmp_path / "model.safetensors") == []
    for name, tensor in trained.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], tensor)
    tensors, metadata = read_weights(str(tmp_path / "model.safetensors"))
    assert tensors.keys() == trained.state_dict().keys()
    assert metadata == {"format": "pt", "grid": "3x4", "seed": "3"}
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_weights_that_are_not_those_that_were_saved_are_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(small(), path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        ValueError, match=r"weights\.safetensors is damaged: .* not those that were"
    ):
        load_weights(small(), path)


@pytest.mark.parametrize("beside", [None, {"epoch": 1, "args": {}}])
def test_what_is_advised_for_a_pickle_loads_it(tmp_path, beside):
    path, trained, model = tmp_path / "x.ckpt", all_random(small()), small()
    state = {f"module.{name}": tensor for name, tensor in trained.state_dict().items()}
    torch.save(state if beside is None else {"state_dict": state} | beside, path)
    with pytest.raises(ValueError, match="a pickle can run code") as caught:
        load_weights(model, path)
    advice = re.search(r"load_weights\(.*?\)\)", str(caught.value))[0]
    names = {"load_weights": load_weights, "model": model, "torch": torch, "path": path}
    assert "with the prefix module. is taken" in eval(advice, names)[0]
    assert torch.equal(model.head.weight, trained.head.weight)


def test_the_saved_grid_tells_apart_two_grids_of_the_same_length(tmp_path):
    trained, turned = all_random(small()), small(image_size=(8, 6))
    save_weights(trained, tmp_path / "model.safetensors")
    notes = load_weights(turned, tmp_path / "model.safetensors")
    assert notes == ["positions resampled from 3 x 4 to 4 x 3 patches"]
    expected = resample_positions(trained.positions.table, (3, 4), (4, 3), 1)
    assert_close(turned.positions.table, expected)
    larger = small(image_size=(12, 12))  # or the grid can be given
    notes = load_weights(larger, trained.state_dict(), old_grid=(3, 4))
    assert notes == ["positions resampled from 3 x 4 to 6 x 6 patches"]
    square = small(image_size=(6, 6))  # nine rows
    notes = load_weights(square, square.state_dict() | {"positions.table": torch.ones(9, 12)})
    assert notes[-1] == (
        "positions are read as 3 x 3 patches: if they are of a class token and 2 x 4, say old_grid"
    )
    notes = load_weights(square, {**square.state_dict(), "positions.table": torch.ones(10, 12)})
    assert notes == []


def test_weights_can_be_saved_in_another_floating_type(tmp_path):
    trained, fresh = all_random(small()), small()
    trained.register_buffer("steps", torch.tensor(3))
    fresh.register_buffer("steps", torch.tensor(0))
    save_weights(trained, tmp_path / "half.safetensors", dtype=torch.float16)
    tensors, _ = read_weights(tmp_path / "half.safetensors")
    kinds = {name: torch.int64 if name == "steps" else torch.float16 for name in tensors}
    assert {name: tensor.dtype for name, tensor in tensors.items()} == kinds
    load_weights(fresh, tmp_path / "half.safetensors")
    assert all(p.dtype == torch.float32 for p in fresh.parameters())
    assert_close(fresh.head.weight, trained.head.weight, atol=1e-3, rtol=0)
    assert trained.head.weight.dtype == torch.float32  # the model itself stays as it is


def test_a_failed_save_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_weights(small(), path)
    before = path.read_bytes()

    def fail(*names):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_weights(all_random(small()), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_nothing_is_changed_when_the_weights_do_not_fit():
    model = small()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match="weights must fit"):
        load_weights(model, all_random(small(mlp_ratio=2)).state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def load(weights, old_grid=None, **kwargs):
    return load_weights(small(**kwargs), weights, old_grid=old_grid)


def state(**kwargs):
    return small(**kwargs).state_dict()


def without(name):
    return {key: tensor for key, tensor in small().state_dict().items() if key != name}


def with_table(*shape):
    return state() | {"positions.table": torch.ones(*shape, 12)}


def with_nan(name):
    tensors = {key: tensor.clone() for key, tensor in state().items()}
    tensors[name].view(-1)[3] = math.nan
    return tensors


def not_what_its_name_says(tmp_path):
    (tmp_path / "fake.safetensors").write_bytes(b"not a header at all")
    return tmp_path / "fake.safetensors"


def one_of_several(tmp_path):
    save_weights(small(), tmp_path / "model-00001-of-00002.safetensors")
    return tmp_path / "model-00001-of-00002.safetensors"


def save(tmp_path, **options):
    save_weights(small(), tmp_path / "a.safetensors", **options)


TOO_BIG = {"big": torch.tensor([1e6]), "n": torch.tensor(1)}
BAD_INPUT = [
    (lambda _: load("vit.pth"), ValueError, "a pickle can run code"),
    (lambda _: read_weights("vit.pt"), ValueError, "torch.load(path, weights_only=True)"),
    (lambda _: save_weights(small(), "vit.bin"), ValueError, "save_weights(model, 'new.safetenso"),
    (lambda tmp: read_weights(one_of_several(tmp)), ValueError, "is one of several files: give lo"),
    (lambda tmp: read_weights(tmp / "a.safetensors"), FileNotFoundError, "existing"),
    (lambda tmp: load(not_what_its_name_says(tmp)), ValueError, "is none"),
    (lambda tmp: save(tmp, metadata={"seed": 3}), TypeError, "metadata must map text to text"),
    (lambda tmp: save(tmp, dtype=torch.int8), TypeError, "dtype must be a floating type such as"),
    (lambda _: cast_weights(TOO_BIG, torch.float16), ValueError, "weights big do not fit into"),
    (lambda _: load(without("encoder.norm.bias")), ValueError, "encoder.norm.bias is missing"),
    (lambda _: load(state() | {"dist": torch.ones(1)}), ValueError, "dist is unknown to the model"),
    (lambda _: load(state(), pool="mean"), ValueError, "cls_token is unknown"),
    (lambda _: load(with_nan("head.weight")), ValueError, "head.weight holds nan"),
    (lambda _: load(state(embed_dim=24)), ValueError, "24), the model needs (1, 1, 12)"),
    (lambda _: load(state(depth=3)), ValueError, "they have 3 blocks, the model has 2"),
    (lambda _: load(state(), (3, 3), image_size=12), ValueError, "1 + 3 * 3 rows, got 13"),
    (lambda _: load(with_table(3, 4)), ValueError, "the shape (3, 4, 12), the model needs (tok"),
    (lambda _: load(with_table(1, 3, 4)), ValueError, "the shape (1, 3, 4, 12), the model needs"),
    (lambda _: load(state() | {"positions.table": torch.ones(12)}), ValueError, "the shape (12,)"),
    (lambda _: load(state() | {"positions.table": torch.tensor(1)}), ValueError, "the shape ()"),
    (lambda _: load({n: x.numpy() for n, x in state().items()}), TypeError, "cls_token is of nda"),
    (lambda _: from_torchvision(state()), ValueError, "'encoder.pos_embedding', got the names"),
    (lambda _: from_timm({"class_token": torch.zeros(1)}), ValueError, "timm's VisionTransformer"),
    (lambda _: from_timm(small()), TypeError, "a mapping, got VisionTransformer"),
]


def test_bad_input_is_named(bad_input, tmp_path, refused):
    call, error, words = bad_input
    refused(lambda: call(tmp_path), error, words)
