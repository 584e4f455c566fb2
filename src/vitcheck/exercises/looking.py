"""Checks: reading maps, and testing them."""

from functools import partial

import torch
from torch import nn

from vitcheck.reading import NO, OPEN, YES, reading
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


def _reach(weights, columns, P, *, norm=2.0, root=True):
    place = torch.arange(len(weights))
    steps = torch.stack([place // columns, place % columns]).float()  # (2, N)
    apart = P * (steps[:, :, None] - steps[:, None]).abs()  # (2, N, N), in pixels
    between = torch.linalg.vector_norm(apart, norm, dim=0) ** (1 if root else 2)
    return (weights * between).sum(dim=-1)


@staged(
    "reach",
    ok="each query has its own distance, in pixels, with rows and columns apart.",
    right=_reach,
    mistakes={
        "that is in patches; how many pixels lie between two neighbours?": (
            lambda weights, columns, P: _reach(weights, columns, 1)
        ),
        "how many columns has the grid? Divide by that number, not by the rows": (
            lambda weights, columns, P: _reach(weights, len(weights) // columns, P)
        ),
        "that is the way along rows and columns; how far is it as the crow flies?": partial(
            _reach, norm=1.0
        ),
        "that is the larger of the two sides; how far is it as the crow flies?": (
            partial(_reach, norm=torch.inf)
        ),
        "is there a root missing?": [
            lambda weights, columns, P: P * _reach(weights, columns, 1, root=False),
            partial(_reach, root=False),
        ],
        "who looks, and who is looked at? One row of weights belongs to one query": (
            lambda weights, columns, P: _reach(weights.T, columns, P)
        ),
    },
)
def check_reach(trial, my_reach):
    """my_reach(weights, columns, P): (N, N) between patches -> (N,) mean distances in pixels."""
    rows, columns, P = 2, 3, 4
    weights = (2 * trial.randn(rows * columns, rows * columns)).softmax(dim=-1)
    trial.stage("distance")
    otherwise = "weigh the distance from query to key by what the query takes from the key"
    trial.compare(my_reach, weights, columns, P, otherwise=otherwise)


@torch.no_grad()
def _drop(model, images, patches, P, *, logits=False, follow_the_best=False, black=False):
    """How much the answer to the whole image loses when these patches are painted over."""
    changed = images.clone()
    for patch in patches:
        top, left = (P * place for place in divmod(patch, images.shape[-1] // P))
        paint = 0.0 if black else images.mean(dim=(1, 2, 3), keepdim=True)
        changed[:, :, top : top + P, left : left + P] = paint
    before, after = model(images), model(changed)
    if not logits:
        before, after = before.log_softmax(dim=1), after.log_softmax(dim=1)
    told = before.argmax(dim=1, keepdim=True)
    left_over = after.amax(dim=1) if follow_the_best else after.gather(1, told)[:, 0]
    return before.amax(dim=1) - left_over


def _together(model, images, first, second, P, *, singles=(0, 1), **kind):
    rest = _drop(model, images, (first, second), P, **kind)
    for single in singles:
        rest = rest - _drop(model, images, ((first, second)[single],), P, **kind)
    return rest


@staged(
    "two at a time",
    ok="both drops, of the answer to the whole image, and what is left over.",
    right=_together,
    mistakes={
        "that is the drop of both; what do the two single drops say?": partial(
            _together, singles=()
        ),
        "the other way round: joint drop minus the single ones": lambda *given: -_together(*given),
        "is it the log-probability, or the logit?": partial(_together, logits=True),
        "which answer do you follow? Not the best one after the change": partial(
            _together, follow_the_best=True
        ),
        "the new patch has the image's mean colour; is yours black?": partial(
            _together, black=True
        ),
        "one of the two single drops is missing": [
            partial(_together, singles=(0,)),
            partial(_together, singles=(1,)),
        ],
    },
)
def check_together(trial, together):
    """together(model, images, first, second, P) -> (B,) joint drop minus the two single ones."""
    B, side, P = 24, 6, 2  # so many that the answer to some image changes
    model = _TwoPatches(trial.randn(4, side * side), trial.randn(4))
    images = trial.randn(B, 1, side, side)
    trial.stage("numbers")
    otherwise = "follow the log-probability of the answer to the whole image, three times"
    trial.compare(together, model, images, 1, 5, P, otherwise=otherwise, tolerance=1e-4)


class _TwoPatches(nn.Module):
    """A small model that is not linear in its pixels: (B, 1, 6, 6) -> (B, 4)."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, images):
        x = images.flatten(1)
        return torch.tanh(x @ self.weight.T / 2) * 3 + self.bias


check_readings = reading(
    "what the intervals show, what they refute, and what they leave open",
    _STATEMENTS,
    what="what follows",
)
