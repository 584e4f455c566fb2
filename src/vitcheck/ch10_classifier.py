"""Checks of chapter 10: from blocks to a class."""

import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitbook.models.vit import VisionTransformer
from vitcheck.trial import Trial, staged


@staged("read-out", ok="one vector an image, from the token or from the patches alone.")
def check_readout(trial: Trial, my_readout):
    """my_readout(features, pool): (B, N + 1, D), class token first; "cls" or "mean" -> (B, D)."""
    B, N, D = 2, 6, 5
    features = trial.randn(B, N + 1, D)
    cls, patches = features[:, 0], features[:, 1:]
    trial.stage("cls")
    trial.match(
        my_readout(features, "cls"),
        cls,
        {
            "that is the last token; where does the class token stand?": patches[:, -1],
            "that is a mean; is pool looked at?": [features.mean(1), patches.mean(1)],
        },
        otherwise="which row of an image is the class token's?",
    )
    trial.stage("mean")
    trial.match(
        my_readout(features, "mean"),
        patches.mean(1),
        {
            "the class token is no patch; is it in your mean?": features.mean(1),
            "the class token is no patch; is it in the number you divide by?": (
                patches.sum(1) / (N + 1)
            ),
            "that is a sum; does it grow with the image?": patches.sum(1),
            "that is the class token again; is pool looked at?": cls,
            "you left out the last patch; which one is to be left out?": features[:, :-1].mean(1),
            "that is a single patch; may the order of the patches change the mean?": list(
                patches.unbind(1)
            ),
        },
        otherwise="what is the mean over the patches, for each of the D numbers?",
    )


@staged("positions in line", ok="every patch has its own row, and the class token has none.")
def check_in_line(trial: Trial, my_tokens):
    """my_tokens(cls, patches, table): (1, 1, D), (B, N, D), (N, D) -> (B, N + 1, D)."""
    B, N, D = 2, 6, 5
    cls, patches, table = trial.randn(1, 1, D), trial.randn(B, N, D), trial.randn(N, D)
    trial.stage("shape")
    got = trial.tensor(my_tokens(cls, patches, table), (B, N + 1, D))
    trial.stage("class token")
    first = patches[:, 0]
    trial.match(
        got[:, 0],
        cls[0].expand(B, -1),
        {
            "it stands at the end; the head will read token 0": [first, first + table[0]],
            "it took the row of the first patch; who has taken whose row then?": (
                (cls[0] + table[0]).expand(B, -1)
            ),
        },
        otherwise="what is the class token, before any block?",
    )
    trial.stage("patches")
    trial.match(
        got[:, 1:],
        patches + table,
        {
            "no patch was told its place": patches,
            "each patch has the row of the next one, the last has none: where did the table "
            "start?": patches + F.pad(table[1:], (0, 0, 0, 1)),
            "each patch has the row of the one before, the first has none: where did it start?": (
                patches + F.pad(table[:-1], (0, 0, 1, 0))
            ),
        },
        otherwise="is row n of the table added to patch n?",
    )


@staged("parameters", ok="your count is that of the package, on three models.")
def check_vit_parameters(trial: Trial, my_count):
    """my_count(image_size, patch_size, in_channels, num_classes, embed_dim, depth) -> number."""
    for image_size, P, C, K, heads in ((28, 7, 1, 10, 2), (32, 4, 3, 7, 4), (48, 8, 3, 100, 8)):
        D, L = 8 * trial.integer(3, 9), trial.integer(2, 5)
        with torch.device("meta"):  # shapes, no numbers
            model = VisionTransformer(
                image_size=image_size,
                patch_size=P,
                in_channels=C,
                num_classes=K,
                embed_dim=D,
                depth=L,
                num_heads=heads,
            )
        want = sum(p.numel() for p in model.parameters())
        biases = sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
        trial.stage(f"images of {image_size}, D = {D}, L = {L}")
        got = trial.number(my_count(image_size, P, C, K, D, L))
        missing: dict[str, Any] = {
            "K numbers are missing: has the head a bias?": K,
            "D numbers are missing: the class token, its row of the table, or a bias?": D,
            "2 D are missing: the last norm, or the class token and its row?": 2 * D,
            "3 D a block are missing: have queries, keys and values a bias?": 3 * D * L,
            "4 D a block are missing: how many norms has a block, of how many numbers?": 4 * D * L,
            "9 D a block are missing: which linear layers of a block have a bias?": 9 * D * L,
            "13 D a block are missing: norms, and the biases of the linear layers?": 13 * D * L,
            "are those the weights alone? Biases learn too": biases,
            "where is the table of positions?": ((image_size // P) ** 2 + 1) * D,
            "that is one block; how many are there?": (L - 1) * (12 * D * D + 13 * D),
            "4 D squared a block are missing: who projects the heads' output?": L * 4 * D * D,
            "how many numbers has a patch of C channels?": [
                (C - channels) * P * P * D for channels in (1, 3)
            ],
        }
        off = (
            f"{got - want:.0f} too many; is anything counted for each head or for each token?"
            if got > want
            else f"{want - got:.0f} are missing; count the parts one by one"
        )
        trial.match(
            got,
            want,
            {
                question: [want - few for few in (less if isinstance(less, list) else [less])]
                for question, less in missing.items()
            },
            otherwise=off,
            tolerance=1e-9,  # a count is right to the last digit
        )


@staged("q, k and v in one", ok="one matrix does what the three did.")
def check_merge_qkv(trial: Trial, my_merge):
    """my_merge(q, k, v): three nn.Linear(D, D) -> weight (3 D, D) and bias (3 D,) of ``qkv``."""
    D = 12
    layers = {name: nn.Linear(D, D) for name in "qkv"}
    with torch.no_grad():
        for layer in layers.values():
            layer.weight.copy_(trial.randn(D, D) / 3)
            layer.bias.copy_(trial.randn(D))
    weights = {name: layer.weight.detach() for name, layer in layers.items()}
    biases = {name: layer.bias.detach() for name, layer in layers.items()}
    weight, bias = trial.pair(my_merge(*layers.values()))
    trial.stage("shapes")
    weight = trial.tensor(weight, (3 * D, D), name="the weight").detach()
    bias = trial.tensor(bias, (3 * D,), name="the bias").detach()

    trial.stage("weight")
    stacked = torch.stack([*weights.values()])  # (3, D, D)
    thirds = zip(("first", "second", "last"), weight.chunk(3), strict=True)
    strange = [
        place
        for place, third in thirds
        if not any(torch.allclose(third, w, atol=1e-5) for w in weights.values())
    ]
    orders = {
        f"the order is {', '.join(order)}; in which order does `qkv` hold them?": torch.cat(
            [weights[name] for name in order]
        )
        for order in itertools.product("qkv", repeat=3)
    }
    trial.match(
        weight,
        torch.cat([*weights.values()]),
        {
            **orders,
            "nn.Linear.weight is (out, in) already; did you transpose it?": stacked.mT.flatten(
                0, 1
            ),
            "the rows of q, k and v take turns; here all queries come first, then all keys": (
                stacked.transpose(0, 1).flatten(0, 1)
            ),
            "here the rows of all queries come first, then all keys; yours are sorted by head": [
                stacked.unflatten(1, (h, -1)).transpose(0, 1).flatten(0, 2) for h in (2, 3, 4, 6)
            ],
        },
        otherwise=f"the {' and the '.join(strange)} third is none of the three weights",
    )
    trial.stage("bias")
    stacked = torch.stack([*biases.values()])  # (3, D)
    at_q = torch.allclose(bias[:D], biases["q"], atol=1e-5)
    trial.match(
        bias,
        stacked.flatten(),
        {
            "are the three biases lost?": torch.zeros(3 * D),
            "the weight is right; not so the biases: they take turns": stacked.T.flatten(),
        },
        otherwise="do keys and values have their own bias?"
        if at_q
        else "is the bias of q where it belongs?",
    )


@staged("two losses", ok="you know a healthy first loss, and the floor of a doubled softmax.")
def check_losses(trial: Trial, my_losses):
    """my_losses(K) -> (loss of equal logits, least loss when softmax is applied twice)."""
    for K in (10, 2, trial.integer(20, 1000)):
        start, floor = trial.pair(my_losses(K))
        equal, least = math.log(K), math.log(math.e + K - 1) - 1
        trial.stage(f"loss at the start, {K} classes")
        trial.match(
            start,
            equal,
            {
                "that is a probability; the loss is its negative logarithm": 1 / K,
                "a loss of log p is negative here; which sign has cross-entropy?": -equal,
                "that is in bits; cross_entropy takes the natural logarithm": math.log2(K),
                "that is the share of wrong guesses; cross-entropy is another measure": 1 - 1 / K,
                "a loss of zero: would all classes be right?": 0.0,
            },
            otherwise="with equal logits, which probability has the right class?",
        )
        trial.stage(f"softmax twice, {K} classes")
        trial.match(
            floor,
            least,
            {
                "that is the floor for logits, which may grow without end; may probabilities?": 0.0,
                "that is a model that knows nothing; what if it is entirely sure, and right?": (
                    equal
                ),
                "that is minus the probability; which function of it is the loss?": -1.0,
                "how many wrong classes are there?": math.log(math.e + K) - 1,
                "that is the log of the sum; what does the right class take off?": least + 1,
                "that is a probability; the loss is its negative log": math.e / (math.e + K - 1),
            },
            otherwise="feed cross_entropy with the row 1, 0, 0, ...: what is it?",
        )
