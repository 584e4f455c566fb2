"""Checks of chapter 6: where a token is."""

from functools import partial

import torch

from vitbook.layers.attention import causal_mask, scaled_dot_product_attention
from vitbook.layers.positions import sincos_1d
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
    "mean over the tokens": (
        lambda x: x.mean(0),
        "there is one vector left; can a sum know the order of its terms?",
    ),
    "attention, then the mean": (
        lambda x: _attend(x).mean(0),
        "attention shuffles its output; what does the mean do with that?",
    ),
    "largest value of each feature": (
        lambda x: x.amax(0),
        "does the largest of a few numbers depend on the order in which you look at them?",
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


def _shift(k, dim):
    angles = k * 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    c, s = angles.cos(), angles.sin()
    return torch.block_diag(*torch.stack([c, -s, s, c], dim=-1).view(-1, 2, 2))


def _sines_first(k, dim):
    """The same matrix for a table whose columns are all sines, then all cosines."""
    order = torch.arange(dim).view(-1, 2).T.flatten()
    return _shift(k, dim)[order][:, order]


@staged(
    "shift matrix",
    ok="one matrix moves every position by k, and changes no length.",
    right=_shift,
    mistakes={
        "that is the way back, from t + k to t (or a matrix for columns, R @ row; tokens are "
        "rows). Which of the two sines carries the minus?": lambda k, dim: _shift(-k, dim),
        "right for a table with all sines first; where does sincos_1d put the cosine of a sine?": (
            _sines_first
        ),
    },
)
def check_shift_matrix(trial: Trial, my_shift):
    """my_shift(k, dim) -> R (dim, dim) with sincos_1d(...)[t] @ R = sincos_1d(...)[t + k]."""
    k, dim = trial.integer(2, 5), 8
    eye = torch.eye(dim, dtype=torch.float64)
    trial.stage("shape")
    R = trial.tensor(my_shift(k, dim), (dim, dim)).double()
    table = sincos_1d(60, dim).double()
    here, there = table[:-k], table[k:]
    right = ((here @ R - there).abs() < 1e-4) | ((here @ R - there).abs() < 1e-4 * there.abs())
    trial.stage("every position")
    otherwise = "table[t] @ R is not table[t + k]; what does one pair (sin, cos) turn into?"
    if right[:, :2].all():
        otherwise = (
            "the first pair moves as it should, the others do not; by which angle does pair i turn?"
        )
    elif right[0].all():
        otherwise = "right at position 0, wrong further on; may R depend on t?"
    # any R that moves the table will do, found by least squares too: compare what it moves
    trial.compare(R, k, dim, part=lambda matrix: here @ matrix, otherwise=otherwise, tolerance=1e-4)
    trial.stage("lengths")
    trial.close(R @ R.T, eye, "does it keep every length?", tolerance=1e-4)
    trial.stage("other shifts")
    trial.close(my_shift(0, dim), eye, "what is a shift by nothing?", tolerance=1e-4)
    back = trial.tensor(my_shift(-k, dim), (dim, dim)).double()
    trial.close(back @ R, eye, "does a shift by -k undo it?", tolerance=1e-4)


_CIRCLE = "neighbours on a ring"
_ORDER_LAYERS = {  # name -> (layer, what it is, the question when it fooled the test)
    "a linear layer": (
        lambda x: x @ torch.linspace(-1, 1, D * D, dtype=x.dtype).view(D, D),
        "equivariant",
        "the output is shuffled exactly as the input; did you undo the shuffle before comparing?",
    ),
    "attention": (
        lambda x: 10 * _attend(x),
        "equivariant",
        "sums in another order differ in the last digit; do you compare up to rounding?",
    ),
    "the mean": (
        lambda x: x.mean(0),
        "invariant",
        "its output (D,) has no tokens left; what should it equal?",
    ),
    "sorted features": (
        lambda x: x.sort(0).values,
        "invariant",
        "a layer may return N rows and still not care about the order of its input",
    ),
    "running sums": (lambda x: x.cumsum(0), "neither", "is one kind of shuffle enough?"),
    _CIRCLE: (
        lambda x: x + x.roll(1, 0),
        "neither",
        "this layer follows a shift of all tokens round the ring; did you try other orders?",
    ),
    "both neighbours": (
        lambda x: torch.cat([x[:1] * 0, x, x[:1] * 0]).unfold(0, 3, 1).sum(-1),
        "neither",
        "this layer follows the reversed order; did you try others?",
    ),
    "only the last place is special": (
        lambda x: torch.cat([x[:-1], 2 * x[-1:]]),
        "neither",
        "a random order may leave one place alone; did you try enough of them?",
    ),
    "only the first two places are special": (
        lambda x: torch.cat([x[:1] - x[1:2], x[1:2] - x[:1], x[2:]]),
        "neither",
        "this layer notices only what moves in or out of the first two places; how many orders?",
    ),
}


@staged("permutation test", ok="no layer fooled it, not even those that follow some orders.")
def check_permutation_test(trial: Trial, my_test):
    """my_test(layer, x) -> "invariant", "equivariant" or "neither", for x (N, D)."""
    for name, (layer, kind, question) in _ORDER_LAYERS.items():
        trial.stage(name)
        for _ in range(20 if kind == "neither" else 5):  # one lucky shuffle is not enough
            said = my_test(layer, trial.randn(N, D))
            trial.ask(said in WORDS, f"return one of {', '.join(WORDS)}; got {said!r}")
            trial.ask(said == kind, f"you say {said}. {question[0].upper()}{question[1:]}")


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


@staged(
    "back in order",
    ok="each patch got its own vector back.",
    right=lambda table, order: table[order.argsort()],
    mistakes={
        "the table comes back as it was": lambda table, order: table,
        "that shuffles it once more. Row i belongs to patch order[i]: is it taken from there, or "
        "put there?": lambda table, order: table[order],
    },
)
def check_unshuffle(trial: Trial, my_unshuffle):
    """my_unshuffle(table, order): token i carried patch order[i] -> the table by patch."""
    n, dim = 7, 3
    order = torch.tensor([2, 5, 6, 1, 0, 4, 3])
    trial.stage("which row goes where")
    otherwise = "row i belongs to patch order[i]; which row belongs to patch 0?"
    trial.compare(my_unshuffle, trial.randn(n, dim), order, otherwise=otherwise)
    trial.stage("there and back")
    patches = trial.randn(n, dim)
    trial.close(my_unshuffle(patches[order], order), patches, "shuffle patches and undo it")
