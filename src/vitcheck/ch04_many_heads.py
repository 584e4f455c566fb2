"""Checks of chapter 4: many heads."""

import copy
import math

import torch

from vitbook.attention import MultiHeadSelfAttention
from vitcheck.trial import staged


@staged("split into heads", ok="each head holds its own columns of every token.")
def check_split_heads(trial, split_heads):
    """split_heads(x, num_heads): tokens (B, N, D) -> (B, h, N, d)."""
    B, N, h, d = 2, 5, 3, 4
    x = trial.randn(B, N, h * d)
    trial.stage("shape")
    got = split_heads(x, h)
    if getattr(got, "shape", None) == (B, N, h, d):
        trial.fail("that is (B, N, h, d); which axis must come before the tokens?")
    got = trial.tensor(got, (B, h, N, d))
    trial.stage("which numbers")
    trial.ask(
        not torch.equal(got, x.reshape(B, h, N, d)),
        "the shape is right, but write token 0 with its own number everywhere: how many tokens "
        "does row 0 of head 0 hold?",
    )
    trial.ask(
        not torch.equal(got, x.reshape(B, N, d, h).permute(0, 3, 1, 2)),
        f"head 0 got the columns 0, {h}, {2 * h}, ...; are a head's columns neighbours?",
    )
    for head in range(h):
        columns = x[..., head * d : (head + 1) * d]
        trial.ask(
            torch.equal(got[:, head], columns),
            f"head {head} should hold the columns {head * d} to {(head + 1) * d - 1} of each token",
        )
    trial.stage("non-contiguous input")
    turned = trial.randn(B, h * d, N).transpose(1, 2)
    trial.close(
        split_heads(turned, h)[:, 1], turned[..., d : 2 * d], "does it work on a transposed tensor?"
    )


@staged("counting weights", ok="the number of heads changes who owns the weights, not how many.")
def check_counts(trial, my_counts):
    """The answers {"...": count} for D = 768, with 12 and with 24 heads."""
    D, h = 768, 12
    answers = my_counts()
    if not isinstance(answers, dict):
        trial.fail("return a dictionary from question to number")
    if any(answer is ... for answer in answers.values()):
        raise NotImplementedError
    wanted = [
        ("W_Q of all 12 heads together", D * D),
        ("W_Q of one of the 12 heads", D * D // h),
        ("W_Q of all heads, if there are 24", D * D),
        ("W_Q of all 12 heads, embedding cut in 12", D * D // h),
    ]
    hints = {
        h * D * D: "is W_Q of one head D x D? How wide are its queries?",
        D * D // h**2: "that is d x d; does this head read all D numbers of a token, and how many "
        "heads are there?",
        2 * D * D: "twice the heads; is each of them as wide as before?",
        3 * D * D: "that is queries, keys and values; only W_Q is asked for",
        D // h: "that is the width of a head; how many weights lead into it?",
    }
    for question, number in wanted:
        trial.stage(question)
        if question not in answers:
            trial.fail("this question has lost its answer")
        given = trial.number(answers[question])
        trial.ask(given not in hints or given == number, hints.get(given, ""))
        trial.ask(given == number, "how many rows and columns does this matrix have?")


@staged("without one head", ok="the head is silent, and the layer is as it was.")
def check_without_head(trial, without_head):
    """without_head(layer, x, head): the layer's output as if that head contributed nothing."""
    B, N, h, d = 2, 5, 3, 4
    layer = MultiHeadSelfAttention(embed_dim=h * d, num_heads=h)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(trial.randn(*parameter.shape) / 2)
    before = copy.deepcopy(layer.state_dict())
    x = trial.randn(B, N, h * d)

    def silenced(head, axis="columns"):
        deaf = copy.deepcopy(layer)
        own = slice(head * d, (head + 1) * d)
        with torch.no_grad():
            deaf.proj.weight[(slice(None), own) if axis == "columns" else own] = 0.0
        return deaf(x).detach()

    full, bias = layer(x).detach(), layer.proj.bias.detach()
    for head in reversed(range(h)):  # head 0 last: counting from 1 shows best elsewhere
        trial.stage(f"head {head}")
        want = silenced(head)
        got = trial.tensor(without_head(layer, x, head), (B, N, h * d)).detach()
        alone = full - want
        mistakes = {
            "that is the layer with all heads; what is missing?": full,
            "that is the head's own contribution; what is left without it?": alone,
            "the bias of proj belongs to no head; did it go as well?": want - bias,
            "did you count the heads from 1?": silenced((head - 1) % h),
            "a head owns columns of proj.weight, (out, in); did you silence rows?": silenced(
                head, "rows"
            ),
            "the other heads speak louder than before; who asked them to?": (want - bias)
            * (h / (h - 1))
            + bias,
        }
        for question, mistaken in mistakes.items():
            trial.ask(not torch.allclose(got, mistaken, atol=1e-5), question)
        trial.close(got, want, "zero this head's columns of proj.weight in a copy: is it the same?")
        trial.stage("the layer afterwards")
        same = all(torch.equal(value, before[key]) for key, value in layer.state_dict().items())
        trial.ask(same, "the layer's weights have changed; can you do without writing into it?")


@staged("repacked weights", ok="all queries, then all keys, then all values.")
def check_repack(trial, repack):
    """repack(weight, num_heads): rows (head, q/k/v, d) -> rows (q/k/v, head, d), (3 D, D)."""
    h, d = 4, 2
    D = h * d
    weight = trial.randn(3 * D, D)
    trial.stage("shape")
    got = trial.tensor(repack(weight, h), (3 * D, D))
    trial.stage("rows")
    trial.ask(not torch.equal(got, weight), "that is what came in; which rows must move?")
    trial.ask(
        torch.equal(got.sort(0).values, weight.sort(0).values),
        "some row was lost, doubled or mixed with others; only their order may change",
    )
    back = weight.view(3, h, d, D).transpose(0, 1).reshape(3 * D, D)
    trial.ask(
        not torch.equal(got, back),
        "that is the way back; which axis comes first in what you are given, q/k/v or head?",
    )
    trial.ask(
        torch.equal(got[:d], weight[:d]), "the queries of head 0 stood first; where are they now?"
    )
    trial.ask(
        torch.equal(got[d : 2 * d], weight[3 * d : 4 * d]),
        f"rows {d} to {2 * d - 1} should be the queries of head 1; where did they stand?",
    )
    order = [3 * head + part for part in range(3) for head in range(h)]
    want = torch.cat([weight[block * d : (block + 1) * d] for block in order])
    trial.close(got, want, "the queries are in order; are the keys and the values?")


@staged("a head that shifts", ok="every token looks exactly `step` places away.")
def check_shift_head(trial, shift_head):
    """shift_head(step): W_Q and W_K (3, 2); tokens are (1, n, n * n), n = 0 ... N - 1."""
    N = 8
    n = torch.arange(N, dtype=torch.float32)
    x = torch.stack([torch.ones(N), n, n * n], dim=1)
    for step in (1, -2, 0, 3):
        trial.stage(f"step {step}")
        W_Q, W_K = trial.pair(shift_head(step))
        W_Q = trial.tensor(W_Q, (3, 2), name="W_Q")
        W_K = trial.tensor(W_K, (3, 2), name="W_K")
        weights = ((x @ W_Q) @ (x @ W_K).T / math.sqrt(2)).softmax(-1)
        inside = [i for i in range(N) if 0 <= i + step < N]
        places = weights.argmax(-1)
        looks = places[inside].tolist()
        if looks != [i + step for i in inside]:
            trial.ask(
                len(set(places.tolist())) > 1 or N == 1,
                f"every token looks at token {looks[0]}; what keeps a far token from winning?",
            )
            other = [i for i in inside if 0 <= i - step < N]
            trial.ask(
                not other or [int(places[i]) for i in other] != [i - step for i in other],
                "it looks to the other side; which sign has the step in the query?",
            )
            trial.ask(looks != inside, "every token looks at itself; where does the step come in?")
            i = next(i for i in inside if places[i] != i + step)
            trial.fail(
                f"token {i} looks at {int(places[i])}, not at {i + step}; what is the score "
                "of token m, as a function of m, and where is its maximum?"
            )
        reached = min(weights[i, i + step].item() for i in inside)
        trial.ask(
            reached > 0.99,
            f"the right place, but with weight {reached:.2f}; what makes a softmax sharper?",
        )
