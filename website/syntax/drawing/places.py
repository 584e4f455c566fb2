"""Which chapter belongs to which part of a Vision Transformer: the data of all three drawings."""

from __future__ import annotations

from dataclasses import dataclass

# What a link of the drawing says, by chapter. Two chapters have two places each.
# Rows of links, from above: about attention alone, the whole model, what takes attention's place
ATTENTION = (
    "weighted_average",
    "scaled_dot_product",
    "reading_maps",
    "bmm_matmul_einsum",
    "many_heads",
    "qk_merge",
)
MODEL = ("training", "looking", "cost", "pretraining")
RELATIVES = ("mlp_mixer", "conv_mixer", "hybrids", "what_attention_buys")
YOURS = ("your_own_pictures", "your_own_layer")
LABELS: dict[str, str] = {
    "preview": "the whole thing at work",
    "weighted_average": "weighted mean",
    "scaled_dot_product": "scores, √d",
    "reading_maps": "reading a map",
    "bmm_matmul_einsum": "in one matmul",
    "many_heads": "several heads",
    "qk_merge": "Q and K as one?",
    "positions": "+ positions",
    "weight_sharing": "one set of weights",
    "patches": "cut into patches",
    "block": "one block, L times",
    "classifier": "head: one token answers",
    "training": "train it",
    "looking": "look inside",
    "cost": "count its cost",
    "pretraining": "start pretrained",
    "mlp_mixer": "MLP-Mixer",
    "conv_mixer": "ConvMixer",
    "hybrids": "a mixture",
    "what_attention_buys": "what attention buys",
    "your_own_pictures": "your own pictures",
    "your_own_layer": "your own layer",
}
WHOLE = ("image", "linear", "token", "positions", "norm", "attention", "mlp", "head")


@dataclass(frozen=True)
class Place:
    """Where a chapter is: parts of the strip, and the words for them."""

    parts: tuple[str, ...]
    words: str


PLACES: dict[str, Place] = {
    "preview": Place(WHOLE, "the whole model, at work"),
    **dict.fromkeys(ATTENTION, Place(("attention",), "attention, in the block")),
    "positions": Place(("positions",), "positions, added to the tokens"),
    "weight_sharing": Place(("mlp",), "one set of weights for all tokens, in the block"),
    "patches": Place(("image", "linear"), "from the image to the tokens"),
    "block": Place(("norm", "attention", "mlp"), "the block"),
    "classifier": Place(("token", "head"), "class token and head"),
    "training": Place(WHOLE, "the whole model, in training"),
    "looking": Place(WHOLE, "the whole model, looked into"),
    "cost": Place(WHOLE, "the whole model, and its cost"),
    "pretraining": Place(WHOLE, "the whole model, trained by others"),
    "mlp_mixer": Place(("attention",), "in attention's place, an MLP"),
    "conv_mixer": Place(("attention",), "in attention's place, a convolution"),
    "hybrids": Place(("attention",), "in attention's place, in some of the layers"),
    "what_attention_buys": Place(("attention",), "attention, beside what can take its place"),
    "your_own_pictures": Place(WHOLE, "the whole model, of others, on your pictures"),
    "your_own_layer": Place(("attention",), "in attention's place, a layer of your own"),
}
