"""Which chapter belongs to which part of a Vision Transformer: the data of all three drawings."""

from __future__ import annotations

from dataclasses import dataclass

from tools.pages.number import Lettered, Number

# What a link of the drawing says, by chapter. Two chapters have two places each.
MAPS = Lettered(2, "b")
ATTENTION: tuple[Number, ...] = (1, 2, MAPS, 3, 4, 5)  # the chapters about attention alone
LABELS: dict[Number, str] = {
    0: "the whole thing at work",
    1: "weighted mean",
    2: "scores, √d",
    MAPS: "reading a map",
    3: "in one matmul",
    4: "several heads",
    5: "Q and K as one?",
    6: "+ positions",
    7: "one set of weights",
    8: "cut into patches",
    9: "one block, L times",
    10: "head: one token answers",
    11: "train it",
    12: "look inside",
    13: "count its cost",
    14: "start pretrained",
    15: "MLP-Mixer",
    16: "ConvMixer",
    17: "a mixture",
    18: "what attention buys",
    19: "your own pictures",
    20: "your own layer",
}
WHOLE = ("image", "linear", "token", "positions", "norm", "attention", "mlp", "head")


@dataclass(frozen=True)
class Place:
    """Where a chapter is: parts of the strip, and the words for them."""

    parts: tuple[str, ...]
    words: str


PLACES: dict[Number, Place] = {
    0: Place(WHOLE, "the whole model, at work"),
    **dict.fromkeys(ATTENTION, Place(("attention",), "attention, in the block")),
    6: Place(("positions",), "positions, added to the tokens"),
    7: Place(("mlp",), "one set of weights for all tokens, in the block"),
    8: Place(("image", "linear"), "from the image to the tokens"),
    9: Place(("norm", "attention", "mlp"), "the block"),
    10: Place(("token", "head"), "class token and head"),
    11: Place(WHOLE, "the whole model, in training"),
    12: Place(WHOLE, "the whole model, looked into"),
    13: Place(WHOLE, "the whole model, and its cost"),
    14: Place(WHOLE, "the whole model, trained by others"),
    15: Place(("attention",), "in attention's place, an MLP"),
    16: Place(("attention",), "in attention's place, a convolution"),
    17: Place(("attention",), "in attention's place, in some of the layers"),
    18: Place(("attention",), "attention, beside what can take its place"),
    19: Place(WHOLE, "the whole model, of others, on your pictures"),
    20: Place(("attention",), "in attention's place, a layer of your own"),
}
