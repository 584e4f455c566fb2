"""Checks of chapter 12: reading maps, and testing them."""

import torch
from torch import nn

from vitcheck.reading import NO, OPEN, YES, judge
from vitcheck.trial import staged

# What is said about the table of the exercise: the answer, and what to ask who misses it.
_STATEMENTS = {
    "the map does better than chance": (
        YES,
        "compare the lowest end of the map's interval with the highest end of chance",
    ),
    "the map agrees with it as well as a second occlusion": (
        OPEN,
        "both were measured on the same images. Is their difference, image by image, in the table?",
    ),
    "the map ranks the patches better than the ink does": (
        NO,
        "on which side of the map's interval does that of the ink lie, which never saw the model?",
    ),
    "the answer would change if its darkest patch were hidden": (
        OPEN,
        "does a correlation over all patches say anything about one of them, or about an answer?",
    ),
}


@staged("reach", ok="each query has its own distance, in pixels, with rows and columns apart.")
def check_reach(trial, my_reach):
    """my_reach(weights, columns, P): (N, N) between patches -> (N,) mean distances in pixels."""
    rows, columns, P = 2, 3, 4
    N = rows * columns
    weights = (2 * trial.randn(N, N)).softmax(dim=-1)

    def reach(shape, side=P, power=2.0, root=True, weights=weights):
        down, right = torch.arange(N) // shape, torch.arange(N) % shape
        steps = torch.stack([down[:, None] - down, right[:, None] - right]).abs().float()
        if power == 0:
            between = steps.amax(dim=0)
        else:
            between = (steps**power).sum(dim=0)
            between = between ** (1 / power) if root else between
        return (weights * between * side).sum(dim=-1)

    trial.stage("distance")
    trial.match(
        my_reach(weights, columns, P),
        reach(columns),
        {
            "that is in patches; how many pixels lie between two neighbours?": reach(columns, 1),
            "how many columns has the grid? Divide by that number, not by the rows": reach(rows),
            "that is the way along rows and columns; how far is it as the crow flies?": reach(
                columns, power=1
            ),
            "that is the larger of the two sides; how far is it as the crow flies?": reach(
                columns, power=0
            ),
            "is there a root missing?": [
                reach(columns, root=False),
                reach(columns, P * P, root=False),
            ],
            "who looks, and who is looked at? One row of weights belongs to one query": reach(
                columns, weights=weights.T
            ),
        },
        otherwise="weigh the distance from query to key by what the query takes from the key",
    )


@staged("sink", ok="the key that all queries share, and how much of their attention it gets.")
def check_sink(trial, my_sink):
    """my_sink(weights): (h, N, N) of one layer -> (token, share)."""
    h, N = 3, 6
    weights = trial.randn(h, N, N)
    sink = trial.integer(1, N - 2)
    weights[..., sink] += 1.0
    weights[0, 0, N - 1] += 9.0  # one strong weight, and no sink
    weights = weights.softmax(dim=-1)
    shares = weights.mean(dim=(0, 1))
    trial.stage("which token")
    token, share = trial.pair(my_sink(weights))
    column = int(shares.argmax())
    trial.match(
        token,
        column,
        {
            "that key gets the largest single weight; is it the one that all queries look at?": int(
                weights.flatten().argmax() % N
            ),
            "is that a query? Which axis of the weights holds the keys?": int(
                weights.amax(dim=(0, 2)).argmax()
            ),
        },
        otherwise="add up what each key gets from all queries of all heads; who gets most?",
        tolerance=0,
        name="the token",
    )
    trial.stage("its share")
    trial.match(
        share,
        shares[column].item(),
        {
            "that is a sum; what share of all attention is it?": [
                (weights.sum(dim=(0, 1))[column]).item(),
                (weights.mean(dim=0).sum(dim=0)[column]).item(),
                (weights.sum(dim=0).mean(dim=0)[column]).item(),
            ],
            "that is a single weight; what is the mean over queries and heads?": (
                weights.max().item()
            ),
            "each row sums to one, so its mean is the same for all; which axis is to stay?": 1 / N,
        },
        otherwise="what is the mean weight on that key?",
        name="the share",
    )


@staged("two at a time", ok="both drops, of the answer to the whole image, and what is left over.")
def check_together(trial, together):
    """together(model, images, first, second, P) -> (B,) joint drop minus the two single ones."""
    B, side, P = 3, 6, 2
    model = _TwoPatches(trial.randn(4, side * side), trial.randn(4))
    images = trial.randn(B, 1, side, side)
    first, second = 1, 5
    with torch.no_grad():

        def drop(*patches, logits=False, answers=None, zero=False):
            changed = images.clone()
            for patch in patches:
                top, left = patch // 3 * P, patch % 3 * P
                paint = 0.0 if zero else images.mean(dim=(1, 2, 3), keepdim=True)
                changed[:, :, top : top + P, left : left + P] = paint
            before, after = model(images), model(changed)
            if not logits:
                before, after = before.log_softmax(dim=1), after.log_softmax(dim=1)
            told = before.argmax(dim=1) if answers is None else after.argmax(dim=1)
            told = told[:, None]
            gone = after.amax(dim=1) if answers else after.gather(1, told)[:, 0]
            return before.amax(dim=1) - gone

        def rest(**kind):
            return drop(first, second, **kind) - drop(first, **kind) - drop(second, **kind)

        right = rest()
        trial.stage("numbers")
        trial.match(
            together(model, images, first, second, P),
            right,
            {
                "that is the drop of both; what do the two single drops say?": drop(first, second),
                "the other way round: joint drop minus the single ones": -right,
                "is it the log-probability, or the logit?": rest(logits=True),
                "which answer do you follow? Not the best one after the change": rest(answers=True),
                "the new patch has the image's mean colour; is yours black?": rest(zero=True),
                "one of the two single drops is missing": [
                    drop(first, second) - drop(first),
                    drop(first, second) - drop(second),
                ],
            },
            otherwise="follow the log-probability of the answer to the whole image, three times",
            tolerance=1e-4,
        )


class _TwoPatches(nn.Module):
    """A small model that is not linear in its pixels: (B, 1, 6, 6) -> (B, 4)."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, images):
        x = images.flatten(1)
        return torch.tanh(x @ self.weight.T / 2) * 3 + self.bias


@staged("what follows", ok="what the intervals show, what they refute, and what they leave open")
def check_readings(trial, my_readings):
    """my_readings(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_readings(), _STATEMENTS)
