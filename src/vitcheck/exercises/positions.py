"""Checks: where a token is."""

from functools import partial

import torch

from vitbook.layers.attention import causal_mask, scaled_dot_product_attention
from vitbook.layers.positions import sincos_1d
from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged

WORDS = ("invariant", "equivariant", "neither")
N, D = 6, 4


def _attend(x, mask=None):
    return scaled_dot_product_attention(x, x, x, mask)[0]


_SIDE_BY_SIDE = torch.linspace(-1, 1, N * D * D).view(N * D, D)
_LAYERS = {  # what is asked -> (the layer, the question for a wrong answer)
    "attention": (_attend, "shuffle the tokens: is the output unchanged, or shuffled likewise?"),
    "feed-forward network": (
        lambda x: (2 * x).tanh(),
        "it treats each token alone; where does the result of a moved token stand?",
    ),
    "attention, then the mean": (
        lambda x: _attend(x).mean(0),
        "attention shuffles its output; what does the mean do with that?",
    ),
    "attention with a causal mask": (
        lambda x: _attend(x, causal_mask(len(x))),
        "the token that comes first sees only itself; what if another one comes first?",
    ),
    "attention after adding sines and cosines": (
        lambda x: _attend(x + sincos_1d(len(x), D)),
        "a token that moves gets another vector added; is its output still the same?",
    ),
    "all tokens side by side, one linear layer": (
        lambda x: x.flatten() @ _SIDE_BY_SIDE,
        "each place has weights of its own; does a token that moves meet the same ones?",
    ),
}


@staged("who sees order", ok="every layer behaves as you say; each was tried on shuffled tokens.")
def check_who_sees_order(trial: Trial, my_answers):
    """{layer: "invariant", "equivariant" or "neither"}, each tried on shuffled tokens."""
    x = trial.randn(N, D)
    for name, answer in trial.answers(my_answers(), _LAYERS).items():
        layer, question = _LAYERS[name]
        trial.stage(name)
        trial.ask(answer in WORDS, f"say {', '.join(WORDS)}; got {answer!r}")
        trial.ask(answer == _behaviour(layer, x), question)


def _behaviour(layer, x) -> str:
    generator = torch.Generator().manual_seed(0)
    before, kinds = layer(x), set(WORDS[:2])
    for _ in range(10):
        order = torch.randperm(len(x), generator=generator)
        after = layer(x[order])
        if not torch.allclose(after, before, atol=1e-5):
            kinds.discard("invariant")
        if before.shape[:1] != order.shape or not torch.allclose(after, before[order], atol=1e-5):
            kinds.discard("equivariant")
    return kinds.pop() if kinds else "neither"


def _turn(x, positions, scale=2.0, *, halves=False):
    """Pair i turns by its position times 10000^(-scale i / d)."""
    d = x.shape[-1]
    if halves:  # the pairs are i and i + d / 2: bring them side by side, turn, and back
        beside = x.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)
        return _turn(beside, positions).unflatten(-1, (-1, 2)).transpose(-2, -1).flatten(-2)
    angles = positions[:, None] * 10000.0 ** (-scale * torch.arange(d // 2) / d)
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@staged(
    "rotary by position",
    ok="lengths stay, and only the distance is left in the products.",
    right=_turn,
    mistakes={
        "you paired column i with column i + d/2; some codebases do, here pairs are neighbours": (
            partial(_turn, halves=True)
        ),
        "all pairs turn by the same angle; what tells a near position from a far one then?": (
            partial(_turn, scale=0.0)
        ),
        "that is the other direction; check it on one pair and a small angle": lambda x, places: (
            _turn(x, -places)
        ),
        "is the exponent 2 i / d, or i / d?": partial(_turn, scale=1.0),
        "what is d: the width of x, or the number of pairs?": partial(_turn, scale=4.0),
        "are the angles those of the given positions, or of 0, 1, 2, ...?": lambda x, places: _turn(
            x, torch.arange(len(places))
        ),
    },
)
def check_turn(trial: Trial, my_turn):
    """my_turn(x, positions): x (B, N, d), real positions (N,) -> x with its pairs turned."""
    B, n, d = 2, 5, 8
    x, positions = trial.randn(B, n, d), trial.randn(n) * 20
    trial.stage("shape")
    got = trial.tensor(my_turn(x, positions), (B, n, d))
    trial.stage("position 0")
    otherwise = "what does a turn by the angle zero change?"
    trial.compare(my_turn, x, torch.zeros(n), otherwise=otherwise)
    trial.stage("lengths")
    trial.close(got.norm(dim=-1), x.norm(dim=-1), "is it a rotation? Does x keep its length?")
    trial.stage("pairs and angles")
    otherwise = "by which angle does pair i at position t turn?"
    trial.compare(got, x, positions, otherwise=otherwise, tolerance=1e-3)
    trial.stage("only the distance counts")
    q, k = trial.randn(1, 1, d), trial.randn(1, 1, d)
    near = (my_turn(q, torch.tensor([7.0])) * my_turn(k, torch.tensor([4.5]))).sum()
    far = (my_turn(q, torch.tensor([57.0])) * my_turn(k, torch.tensor([54.5]))).sum()
    trial.close(near, far, "move both by 50: does the product stay?", tolerance=1e-3)


_STATEMENTS = {
    "the model with the learned table uses its positions": (
        YES,
        "it learned with right places; what did wrong ones cost it?",
    ),
    "a model without positions has learned nothing": (
        NO,
        "how often is a blind guess right with ten classes, and how often this model?",
    ),
    "a learned table is better than sin-cos 2-D": (
        OPEN,
        "which difference would have to be in the table, with its own interval, and at how many "
        "learning rates?",
    ),
    "trained on images shuffled alike, learned falls to 30 %": (
        NO,
        "a table that starts at random knows no order; what does one shuffle for all images "
        "change for it?",
    ),
}


check_shuffles = reading("what two shuffles allow one to say", _STATEMENTS)
