"""Checks: many heads."""

import copy
from functools import partial

import torch

from vitbook.layers.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _split(x, h):
    return torch.stack(x.chunk(h, dim=-1), dim=1)


@staged(
    "split into heads",
    ok="each head holds its own columns of every token.",
    right=_split,
    mistakes={
        "that is (B, N, h, d); which axis must come before the tokens?": lambda x, h: x.reshape(
            *x.shape[:2], h, -1
        ),
        "the shape is right, but write token 0 with its own number everywhere: how many tokens "
        "does row 0 of head 0 hold?": lambda x, h: x.reshape(len(x), h, x.shape[1], -1),
        "head 0 got the columns 0, 3, 6, ...; are a head's columns neighbours?": lambda x, h: (
            x.reshape(*x.shape[:2], -1, h).permute(0, 3, 1, 2)
        ),
    },
)
def check_split_heads(trial: Trial, split_heads):
    """split_heads(x, num_heads): tokens (B, N, D) -> (B, h, N, d)."""
    B, N, h, d = 2, 5, 3, 4
    x = trial.randn(B, N, h * d)
    trial.stage("shape and numbers")
    trial.compare(
        split_heads,
        x,
        h,
        otherwise=f"head 0 should hold the columns 0 to {d - 1} of each token, head 1 the columns "
        f"{d} to {2 * d - 1}, and so on",
    )
    B, N, h, d = 3, 4, 2, 5
    trial.stage(f"other sizes (B = {B}, N = {N}, h = {h}, d = {d})")
    x = trial.randn(B, h * d, N).transpose(1, 2)  # and not contiguous
    question = "right for the first sizes; did you type one of them?"
    trial.close(split_heads(x, h), _split(x, h), question)


def _zeroed(layer, x, head, *, columns=False, rows=False, part=None, what=("weight", "bias")):
    """The output of a copy that has zeros in the columns (or rows) of ``proj`` that belong to a
    head, or (``part`` 0, 1, 2) in the rows of its queries, keys or values."""
    layer, d = copy.deepcopy(layer), layer.head_dim
    own = slice(head * d, (head + 1) * d)
    with torch.no_grad():
        if columns:
            layer.proj.weight[:, own] = 0.0
        if rows:
            layer.proj.weight[own] = 0.0
        for name in what if part is not None else ():
            getattr(layer.qkv, name).view(3, layer.num_heads, d, -1)[part, head] = 0.0
        return layer(x)


_without = partial(_zeroed, columns=True)


def _joined_before_the_tokens(layer, x, head):
    brought = scaled_dot_product_attention(*layer.project(x))[0].clone()  # (B, h, N, d)
    brought[:, head] = 0.0
    return layer.proj(brought.reshape(x.shape))


@staged(
    "without one head",
    ok="the head is silent, and the layer is as it was.",
    right=_without,
    mistakes={
        "that is the layer with all heads; what is missing?": lambda layer, x, head: layer(x),
        "that is the head's own contribution; what is left without it?": lambda layer, x, head: (
            layer(x) - _without(layer, x, head)
        ),
        "the bias of proj belongs to no head; did it go as well?": lambda layer, x, head: (
            _without(layer, x, head) - layer.proj.bias
        ),
        "did you count the heads from 1?": lambda layer, x, head: _without(
            layer, x, (head - 1) % layer.num_heads
        ),
        "a head owns columns of proj.weight, (out, in); did you silence rows?": partial(
            _zeroed, rows=True
        ),
        "the other heads speak louder than before; who asked them to?": lambda layer, x, head: (
            (_without(layer, x, head) - layer.proj.bias) * layer.num_heads / (layer.num_heads - 1)
            + layer.proj.bias
        ),
        "a head without queries or keys still brings an average of its values; what does it bring "
        "if it is silent?": [
            partial(_zeroed, part=part, what=what)
            for part in (0, 1)
            for what in (["weight"], ["weight", "bias"])
        ],
        "the bias of its values is still there": partial(_zeroed, part=2, what=["weight"]),
        "the heads were joined while they stood in front of the tokens; they belong behind the "
        "tokens": _joined_before_the_tokens,
    },
)
def check_without_head(trial: Trial, without_head):
    """without_head(layer, x, head): the layer's output as if that head contributed nothing."""
    B, N, h, d = 2, 5, 3, 4
    layer = MultiHeadSelfAttention(embed_dim=h * d, num_heads=h)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(trial.randn(*parameter.shape) / 2)
    before = copy.deepcopy(layer.state_dict())
    x = trial.randn(B, N, h * d)
    for head in reversed(range(h)):  # head 0 last: counting from 1 shows best elsewhere
        trial.stage(f"head {head}")
        got = without_head(layer, x, head)
        same = all(torch.equal(value, before[key]) for key, value in layer.state_dict().items())
        layer.load_state_dict(before)
        otherwise = "zero this head's columns of proj.weight in a copy: is it the same?"
        trial.compare(got, layer, x, head, otherwise=otherwise)
        trial.stage("the layer afterwards")
        trial.ask(same, "the layer's weights have changed; can you do without writing into it?")


_STATEMENTS = {
    "in this training three heads do better than one": (
        YES,
        "the difference, paired by seed, has an interval of its own. Does it hold zero?",
    ),
    "the better models have more weights in their layers": (
        NO,
        "of one width: does the number of weights of a layer depend on the number of heads?",
    ),
    "six heads are better than twelve": (
        OPEN,
        "which difference would have to be in the table, with its own interval?",
    ),
    "one head cannot reach 63 % on these images": (
        OPEN,
        "how many lengths of training and how many learning rates did one head get?",
    ),
}


check_heads = reading("what a table of heads allows one to say", _STATEMENTS)
