"""The experiments of chapter 12: what is counted is what is said."""

import sys

import torch
from torch.testing import assert_close

from experiments.machinery.experiment import load_experiment
from vitbook.data.canvas import place_on_canvas
from vitbook.data.glyphs import glyphs
from vitbook.inspection import attention_maps

for name in ("cifar_maps", "near_far", "attention_sinks"):
    load_experiment(name)
cifar, garments, sinks = (
    sys.modules[f"experiment_{name}"] for name in ("cifar_maps", "near_far", "attention_sinks")
)


def small_vit(depth=1, heads=4):
    model = cifar.build(depth=depth, heads=heads, seed=0)
    for block in model.encoder.blocks:
        torch.nn.init.normal_(block.attn.qkv.bias)
    return model.eval()


def photos(count=2):
    return torch.randn(count, 3, 36, 36, generator=torch.Generator().manual_seed(0))


def test_cifar_is_enlarged_without_a_shift():
    images = torch.zeros(1, 3, 32, 32)
    images[..., :16] = 1
    large = cifar.resized(images)
    assert large.shape == (1, 3, 36, 36)
    assert_close(large[..., :17], torch.ones(1, 3, 36, 17))
    assert_close(large[..., 19:], torch.zeros(1, 3, 36, 17))


def test_what_the_patches_add_to_the_class_token_is_all_that_attention_adds():
    model, x = small_vit(), photos()
    attn = model.encoder.blocks[0].attn
    seen = model.encoder.blocks[0].norm1(model.embed(x))
    weights, values = attn.attention_weights(seen), attn.project(seen)[2]
    with torch.no_grad():
        lengths = cifar.added(model, x)
        vectors = torch.einsum("nhk,nhkd->nkhd", weights[:, :, 0], values).flatten(2)
        vectors = vectors @ attn.proj.weight.T
        assert_close(lengths, vectors[:, 1:].norm(dim=-1))
        assert_close(vectors.sum(dim=1) + attn.proj.bias, attn(seen)[:, 0], atol=1e-5, rtol=1e-4)


def test_patches_that_are_hidden_together_are_the_highest():
    model, x = small_vit(), photos()
    values = torch.zeros(2, 144)
    values[:, torch.arange(cifar.TOP)] = 1.0  # the first row and two patches of the second
    hidden = x.clone()
    mean = x.mean(dim=(2, 3), keepdim=True)
    hidden[:, :, :3] = mean
    hidden[:, :, 3:6, :6] = mean
    with torch.no_grad():
        before, answer = model(x).log_softmax(-1).max(-1)
        after = model(hidden).log_softmax(-1)[range(2), answer]
        assert_close(cifar.fall(model, x, values)[0], float((before - after).mean()))


def test_the_shares_of_the_keys_in_a_model_without_a_query_are_even():
    model = small_vit(depth=2)
    for block in model.encoder.blocks:
        torch.nn.init.zeros_(block.attn.qkv.weight)
        torch.nn.init.zeros_(block.attn.qkv.bias)
    with torch.no_grad():
        found = cifar.views(model, photos())
    assert_close(found["class_key"], torch.full((2, 4), 1 / 145))
    assert_close(found["top_patch_key"], torch.full((2, 4), 1 / 145))
    assert found["norm_ratio"].shape == (2,)


def planted(model, row):
    """A ViT of one layer whose patches all have this row of weights."""
    attn = model.encoder.blocks[0].attn
    attn.attention_weights = lambda x, mask=None: row[None, None, None].expand(
        len(x), attn.num_heads, len(row), -1
    )
    return model


def squares(count=3):
    return place_on_canvas(torch.ones(count, 1, 14, 14), garments.CANVAS, noise=0.0)


def test_even_attention_sees_the_garment_as_much_as_anything_else_and_as_far():
    model = planted(garments.build(depth=1, heads=4, seed=0), torch.full((64,), 1 / 64))
    for name, values in garments.counts(model, squares()).items():
        assert_close(torch.tensor(values), torch.ones(1, 4), msg=name)


def test_a_row_that_all_patches_share_stays_as_it_is_when_rows_are_swapped():
    row = torch.rand(64, generator=torch.Generator().manual_seed(0))
    model = planted(garments.build(depth=1, heads=1, seed=0), row / row.sum())
    found = garments.counts(model, squares())
    for name in ("object_reach", "background_reach"):
        assert found[name] != [[1.0]]
        assert found[name] == found[f"{name}_swapped"], name
    assert found["object_to_object"] == found["background_to_object"]


def test_garments_that_all_look_at_are_looked_at_all_the_more():
    canvas = squares(1)
    thing = canvas.object_share(garments.P)[0] >= 0.5
    model = planted(garments.build(depth=1, heads=1, seed=0), thing / thing.sum())
    found = garments.counts(model, canvas)
    for who in ("object", "background"):
        assert abs(found[f"{who}_to_object"][0][0] - 64 / int(thing.sum())) < 1e-3
    assert found["object_reach"][0][0] < 0.6 < found["background_reach"][0][0]


def test_the_patch_that_asks_says_what_the_patch_asked_shows_and_the_others_what_they_show():
    shown = sinks.copies(20, seed=3, with_empty=True)
    known = glyphs(sinks.KINDS)
    for image, says, asks, asked, empty in zip(*shown, strict=True):
        cells = image[0].unfold(0, 8, 8).unfold(1, 8, 8).flatten(0, 1)  # (16, 8, 8)
        near = (cells[:, None, 1:6, 1:6] - known).square().sum(dim=(2, 3)).argmin(dim=1)
        own = ~(asks | empty)
        assert (says.argmax(dim=0) == near)[own].all()
        assert says[:, asks].argmax() == near[asked]
        assert (says.sum(dim=0) == (~empty).float()).all()
        assert ((cells[:, 7].mean(dim=1) > 0.5) == (asks | asked)).all()
        assert cells[asks][0, 1:6].mean() < 0.2
        assert cells[empty].mean() < 0.2
    assert not sinks.copies(20, seed=3, with_empty=False).empty.any()


def test_the_spare_token_is_never_read_and_the_mlp_adds_nothing():
    model, shown = sinks.build("register", seed=0).eval(), sinks.pictures("test", "register", 0.002)
    assert attention_maps(model, shown.images).shape == (1, len(shown.images), 1, 17, 17)
    assert attention_maps(sinks.build("plain", seed=0), shown.images).shape[-1] == 16
    features = model.vit.forward_features(shown.images)
    assert_close(model(shown.images), model.vit.head(features[:, 1:]).transpose(1, 2))
    block, x = model.vit.encoder.blocks[0], torch.randn(2, 17, 48)
    assert_close(block(x), x + block.attn(block.norm1(x)))


def test_a_sink_that_is_planted_is_found():
    model = sinks.build("register", seed=0).eval()
    attn = model.vit.encoder.blocks[0].attn
    shown = sinks.pictures("test", "register", 0.05)
    for sink, name in ((0, "idle_to_spare"), (5, "idle_top_patch")):
        row = torch.full((17,), 0.1 / 16)
        row[sink] = 0.9
        attn.attention_weights = lambda x, mask=None, row=row: row.expand(len(x), 1, 17, 17)
        assert abs(sinks.looks(model, shown)[name] - 0.9) < 1e-4
