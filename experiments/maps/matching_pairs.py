"""Matching pairs: does a ViT need attention, does attention find the partner, and is it used?"""

from typing import Any

import torch
from torch import Tensor

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, logged, scaled
from vitbook.data import MatchingPairs, matching_pairs
from vitbook.inspection import attention_hits, attention_maps
from vitbook.layers.ablations import NoMixing, UniformAttention
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, evaluate, train

MODEL: dict = {
    "image_size": 32,
    "patch_size": 8,
    "in_channels": 1,
    "num_classes": 2,
    "embed_dim": 64,
    "depth": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "sincos_2d",
    "position_base": 10000.0,  # the published table
    "centred_positions": False,
}
RECIPE: dict = {"steps": 600, "batch_size": 128, "learning_rate": 2e-3, "warmup_steps": 50}
LEARNED: dict = {
    "positions": "learned",
    "position_std": 0.5,
    "position_base": None,
    "centred_positions": None,
}
# What serves a control best on the validation images; with the ViT's own settings both only guess.
CONTROLS = {"uniform": {**LEARNED, "steps": 1200}, "none": {**LEARNED, "steps": 600}}
IMAGES = {"train": 20_000, "validation": 2_000, "test": 2_000}
MIXERS: dict = {
    "attention": MultiHeadSelfAttention,
    "uniform": lambda embed_dim, num_heads: UniformAttention(embed_dim=embed_dim),
    "none": lambda embed_dim, num_heads: NoMixing(embed_dim=embed_dim),
}
CUTS = {
    "nothing": "nothing is cut",
    "between_glyphs": "the two glyphs may not look at each other",
    "partner_for_all": "no other patch may look at one of the glyphs",
    "empty_to_glyphs": "patches without glyph may not look at glyphs",
    "both": "the two glyphs may not look at each other, nor patches without glyph at glyphs",
    "random_empty": "no other patch may look at one patch without glyph",
}
READ = {
    "": "read from the mean of all tokens",
    "_read_glyphs": "read from the mean of the glyphs' tokens",
    "_read_empty": "read from the mean of the tokens without glyph",
}


def images(part: str, scale: float = 1.0) -> MatchingPairs:
    """The part's images; each part has a seed of its own."""
    return matching_pairs(scaled(IMAGES[part], scale), seed=list(IMAGES).index(part))


def build(mixing: str, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    of = CONTROLS.get(mixing, MODEL)
    return VisionTransformer(
        **(MODEL | {name: of.get(name) for name in LEARNED}), attn_layer=MIXERS[mixing]
    )


def steps(mixing: str) -> int:
    return CONTROLS.get(mixing, RECIPE)["steps"]


def fit(
    model: VisionTransformer,
    known: MatchingPairs,
    updates: int,
    seed: int,
    log: Log,
    scale: float,
    learning_rate: float = RECIPE["learning_rate"],
    **options: Any,
) -> list[dict]:
    """Train a model for so many updates; `options` are those of `train`. Returns its rows."""
    size = RECIPE["batch_size"] if scale == 1 else 8
    given = {**RECIPE, "steps": updates, "batch_size": size, "learning_rate": learning_rate}
    options |= {"loss_function": logged(log), "progress": False}
    return train(model, known.images, known.labels, TrainConfig(**given, seed=seed), **options)


def hit_rates(model: VisionTransformer, pairs: MatchingPairs) -> tuple[Tensor, Tensor]:
    """How often each layer and head finds the other glyph, (L, h): same and different images."""
    first, second = pairs.glyph_patches(MODEL["patch_size"]).unbind(1)  # (n, N)
    maps = attention_maps(model, pairs.images)
    there = attention_hits(maps, first, second, num_prefix=0)  # (L, n, h)
    back = attention_hits(maps, second, first, num_prefix=0)
    hits, same = (there + back) / 2, pairs.labels == 1
    return hits[:, same].mean(dim=1), hits[:, ~same].mean(dim=1)


def chosen_head(model: VisionTransformer, validation: MatchingPairs) -> tuple[int, int]:
    """The layer and head that find the partner most often on the validation images."""
    same, _ = hit_rates(model, validation)
    return divmod(int(same.argmax()), same.shape[1])


def hide(pairs: MatchingPairs, patches: Tensor, seed: int) -> Tensor:
    """Images in which some patches, boolean (n, N), are painted over.

    The paint is one of the image's own patches without a glyph, so that nothing new appears.
    """
    size, side = MODEL["patch_size"], MODEL["image_size"] // MODEL["patch_size"]
    empty = ~pairs.glyph_patches(size).any(dim=1)  # (n, N)
    random = torch.Generator().manual_seed(seed)
    source = torch.multinomial(empty.float(), 1, generator=random)[:, 0]  # (n,)
    tiles = pairs.images.unfold(2, size, size).unfold(3, size, size)[:, 0]  # (n, side, side, P, P)
    tiles = tiles.reshape(len(patches), side * side, size, size).clone()
    paint = tiles[torch.arange(len(patches)), source]  # (n, P, P)
    tiles = torch.where(patches[:, :, None, None], paint[:, None], tiles)
    tiles = tiles.view(-1, side, side, size, size).transpose(2, 3)  # (n, side, P, side, P)
    return tiles.reshape(pairs.images.shape)


def causes(model: VisionTransformer, test: MatchingPairs) -> dict[str, float]:
    """What the model says of untouched images, with one glyph or another patch painted over."""
    glyphs = test.glyph_patches(MODEL["patch_size"])  # (n, 2, N)
    random = torch.Generator().manual_seed(0)
    other = torch.multinomial((~glyphs.any(dim=1)).float(), 1, generator=random)
    other = torch.zeros_like(glyphs[:, 0]).scatter(1, other, True)
    pictures = {
        "untouched": test.images,
        "partner_hidden": hide(test, glyphs[:, 1], seed=1),
        "other_hidden": hide(test, other, seed=1),
    }
    same, metrics = test.labels == 1, {}
    for name, images in pictures.items():
        with torch.no_grad():
            says_same = model(images).argmax(dim=1) == 1  # (n,)
        metrics[f"accuracy_{name}"] = float((says_same == same).float().mean())
        metrics[f"says_same_{name}"] = float(says_same[same].float().mean())
        metrics[f"says_same_of_different_{name}"] = float(says_same[~same].float().mean())
    return metrics


def cuts(model: VisionTransformer, test: MatchingPairs) -> dict[str, float | list]:
    """Answers on untouched images when, in all layers and heads, some may not look at others.

    A cut changes what is cut and all that comes after it, so the answer is read at three places:
    from the mean of all tokens (as in training), of the glyphs' tokens, and of the empty ones.
    """
    glyphs = test.glyph_patches(MODEL["patch_size"])  # (n, 2, N)
    first, second = glyphs.unbind(1)
    empty = ~glyphs.any(dim=1)
    random = torch.Generator().manual_seed(0)
    one = torch.zeros_like(empty).scatter(
        1, torch.multinomial(empty.float(), 1, generator=random), True
    )

    def arrows(queries: Tensor, keys: Tensor) -> Tensor:
        return queries[:, :, None] & keys[:, None, :]  # (n, N, N)

    between, from_empty = arrows(first, second) | arrows(second, first), arrows(empty, ~empty)
    forbidden = {
        "nothing": torch.zeros_like(between),
        "between_glyphs": between,
        "partner_for_all": arrows(~second, second),
        "empty_to_glyphs": from_empty,
        "both": between | from_empty,
        "random_empty": arrows(~one, one),
    }
    places = dict(zip(READ, (torch.ones_like(empty), ~empty, empty), strict=True))
    same = test.labels == 1
    metrics: dict[str, float | list] = {}
    for name, arrow in forbidden.items():
        with torch.no_grad():
            features = model.forward_features(test.images, ~arrow[:, None])  # (n, N, D)
            for place, read in places.items():
                tokens = read[:, :, None] * features
                mean = tokens.sum(dim=1, keepdim=True) / read.sum(dim=1)[:, None, None]  # (n, 1, D)
                different, alike = model.forward_head(mean).unbind(dim=1)  # (n,) each
                margin = alike - different
                right = (margin > 0) == same
                metrics[f"accuracy_cut_{name}{place}"] = float(right.float().mean())
                metrics[f"margin_cut_{name}{place}"] = [
                    round(float(margin[which].mean()), 4) for which in (same, ~same)
                ]
    return metrics


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one model; for attention, also look where it looks."""
    parts = {part: images(part, scale) for part in IMAGES}
    model = build(condition["mixing"], seed)
    before = chosen_head(model, parts["validation"])
    untrained = float(hit_rates(model, parts["test"])[0][before])
    updates = scaled(steps(condition["mixing"]), scale)
    history = fit(model, parts["train"], updates, seed, log, scale)
    test = parts["test"]
    metrics = {
        "test_accuracy": evaluate(model, test.images, test.labels).accuracy,
        "loss": [round(row["loss"], 5) for row in history][:: max(1, len(history) // 100)],
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    layer, head = chosen_head(model, parts["validation"])
    same, different = hit_rates(model, test)
    metrics |= {
        "hit_rate": float(same[layer, head]),
        "hit_rate_different": float(different[layer, head]),
        "hit_rate_untrained": untrained,
        "hit_rates": same.tolist(),
        "layer": layer,
        "head": head,
        **causes(model, test),
    }
    if condition["mixing"] != "attention":
        return Outcome(metrics)
    return Outcome({**metrics, **cuts(model, test)}, model.state_dict())


EXPERIMENT = Experiment(
    what="Are two glyphs far apart the same? A ViT, and two controls that cannot choose whom to "
    "listen to, on generated 32 x 32 images.",
    chosen_on="validation images drawn with a seed of their own (settings, layer and head)",
    metrics={
        "test_accuracy": "share of 2,000 test images answered rightly",
        "hit_rate": 'share of "same" test images in which the strongest patch, the glyph\'s own '
        "left out, is its partner (both directions; layer and head chosen on validation images)",
        "hit_rate_different": "the same, on test images of two different glyphs",
        "hit_rate_untrained": "hit_rate before training, layer and head chosen in the same way",
        "hit_rates": 'hit rate on "same" test images of each layer and head',
        "layer": "the chosen layer, from 0",
        "head": "the chosen head, from 0",
        "accuracy_untouched": "share of the test images answered rightly, as they are",
        "accuracy_partner_hidden": "the same, with one of the two glyphs painted over",
        "accuracy_other_hidden": "the same, with a patch without glyph painted over",
        "says_same_untouched": 'share of "same" test images called "same"',
        "says_same_partner_hidden": "the same, with one of the two glyphs painted over",
        "says_same_other_hidden": "the same, with a patch without glyph painted over",
        "says_same_of_different_untouched": 'share of "different" test images called "same"',
        "says_same_of_different_partner_hidden": "the same, with one of the glyphs painted over",
        "says_same_of_different_other_hidden": "the same, with a patch without glyph painted over",
        **{
            f"accuracy_cut_{name}{place}": f"{READ[place]}: share of the test images answered "
            f"rightly, untouched, when in all layers and heads {words}"
            for name, words in CUTS.items()
            for place in READ
        },
        **{
            f"margin_cut_{name}{place}": f'{READ[place]}: mean logit of "same" minus that of '
            f'"different", on "same" and on "different" test images, when {words}'
            for name, words in CUTS.items()
            for place in READ
        },
        "loss": "training loss, about 100 points",
        "parameters": "numbers that are learned",
    },
    conditions=[{"mixing": mixing} for mixing in MIXERS],
    seeds=range(5),
    run=run,
    data=lambda: {f"matching pairs, {part}": checksum(*images(part)) for part in IMAGES},
    settings={"model": MODEL, "training": RECIPE, "controls": CONTROLS, "images": IMAGES},
    replay=({"mixing": "attention"}, 0),
    keep={"attention": ({"mixing": "attention"}, 0)},
    steps=lambda condition: steps(condition["mixing"]),
)
