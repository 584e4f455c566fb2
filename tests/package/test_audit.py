"""The audit: each verdict at both of its sides, and numbers that are what they say.

The judge is a model whose answer is known: it adds up the light of three patches of a 6 x 6 grid.
"""

import dataclasses
import itertools
import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import occlusion
from vitbook.inspection.audit import Audit, Row, _without, audit

P, ROWS, COLUMNS = 2, 6, 6
USED = (7, 15, 28)


class Judge(nn.Module):
    """Logits (B, 3) from weighted means of the patches."""

    def __init__(self):
        super().__init__()
        weights = torch.zeros(3, ROWS * COLUMNS)
        weights[0] = torch.linspace(0.01, 0.1, ROWS * COLUMNS)[torch.randperm(ROWS * COLUMNS)]
        weights[0, list(USED)] = 0.5
        self.weights = nn.Parameter(weights)

    def forward(self, x):
        patches = x.mean(1).unfold(1, P, P).unfold(2, P, P).mean((-1, -2)).flatten(1)  # (B, n)
        return patches @ self.weights.T


def images(count=4):
    """Each patch of one light, so that only the weights decide what its loss is worth."""
    light = 1 + torch.rand(count, 3, ROWS, COLUMNS)
    return light.repeat_interleave(P, 2).repeat_interleave(P, 3)


def known(model, image):
    """What the answer loses, where the model is as simple as that."""
    patches = image.mean(1).unfold(1, P, P).unfold(2, P, P).mean((-1, -2))
    away = (patches - patches.mean()).abs()
    return model.weights[0].view(1, ROWS, COLUMNS) * away


def judged(heatmap, **options):
    torch.manual_seed(1)
    model, x = options.pop("kind", Judge)().eval(), images()
    heatmap = heatmap(model, x[:1]) if options.pop("once", False) else heatmap
    return audit(heatmap, model, x[0], x[1:], **options)


def rows_of(found):
    return {row.name: row for row in found.rows}


def test_a_map_that_knows_the_answer_is_above_chance_and_noise_is_not():
    good = judged(lambda m, x: occlusion(m, x, P).abs())
    assert rows_of(good)["moved copies of itself"].above
    noise = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3))
    bad = judged(noise)
    assert not rows_of(bad)["moved copies of itself"].above
    assert "no better than copies of itself" in bad.sentence


def test_a_map_that_never_saw_the_model_does_not_beat_the_contrast():
    def contrast(model, image):
        away = image - image.mean((2, 3), keepdim=True)
        tiles = away.unfold(2, P, P).unfold(3, P, P)
        return tiles.permute(0, 2, 3, 1, 4, 5).flatten(3).std(-1)

    row = rows_of(judged(contrast))["the contrast of the pixels"]
    assert row.value == row.floor
    assert row.low == 0
    assert not row.above


def test_a_map_of_numbers_alone_has_two_controls_missing():
    found = judged(known, once=True)
    assert found.missing == ("an untrained twin", "another image")
    assert "not tried" in str(found)
    assert not judged(known).missing
    assert judged(known, twins=[]).missing == ("an untrained twin",)


class Locked(Judge):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()  # which nothing copies


class WithoutGradients(Judge):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


class Inference(Judge):
    @torch.inference_mode()
    def forward(self, x):
        return super().forward(x)


UNTRIED = {
    Locked: "the map, against an untrained twin, as copying the model fails (cannot pickle",
    WithoutGradients: "for comparison: the gradient, which the model does not give (model must ke",
    Inference: "for comparison: the gradient, which the model does not give (model must ke",
}


@pytest.mark.parametrize("kind", UNTRIED)
def test_what_a_model_does_not_allow_is_said_and_all_else_is_tried(kind):
    found, whole = (judged(known, kind=kind) for kind in (kind, Judge))
    names = [name for name, value, *_ in found.table() if value == "not tried"]
    assert len(names) == 1
    assert names[0].startswith(UNTRIED[kind])
    assert len(found.table()) == len(whole.table())
    assert bool(found.missing) == (kind is Locked)


def test_the_fast_losses_are_those_of_occlusion():
    model, x = Judge().eval(), images(2)
    with torch.no_grad():
        before = model(x[:1]).log_softmax(-1)[0].double()
        losses = before - _without(model, x[:1], x[1:], P)  # (n, K)
    for target in range(3):
        wanted = occlusion(model, x[:1], P, x[1:], target=target).flatten().double()
        assert_close(losses[:, target], wanted, atol=1e-5, rtol=0)


def test_the_same_seed_gives_the_same_numbers_and_the_model_stays_as_it_was():
    torch.manual_seed(1)
    model, x = Judge().eval(), images()
    before = model.weights.clone()
    first, second = (audit(known, model, x[0], x[1:], seed=5) for _ in range(2))
    assert first == second
    assert torch.equal(model.weights, before)
    assert audit(known, model, x[0], x[1:], seed=6) != first


# --- the sentence follows from the rows ----------------------------------------------------------

BEATEN = [
    Row("paints", "the two paints agree", 0.6, 0.2, 0.4),
    Row("chance", "moved copies of itself", 0.5, 0.2, 0.3),
    Row("control", "the contrast of the pixels", 0.5, 0.3, 0.1),
    Row("control", "another image", 0.5, 0.1, 0.2),
    Row("class", "class 4", 0.3, 0.1, 0.1),
]
VERDICTS = [
    ([], (), "may be used to rank the patches", "It also speaks for this class rather"),
    ([0], (), "Nothing can be said of this map", "two ways of replacing a patch do not agree"),
    ([1], (), "a picture of its own numbers only", "no better than copies of itself"),
    ([2], (), "Do not use this map to say", "not found to rank the patches better than the"),
    ([], ("an untrained twin",), "before the missing controls", "not tried: an untrained twin"),
    ([4], (), "may be used to rank the patches", "It does not speak for this class rather"),
]


@pytest.mark.parametrize(("failed", "missing", "first", "then"), VERDICTS)
def test_the_sentence_follows_from_the_rows(failed, missing, first, then):
    rows = [
        dataclasses.replace(row, low=0.0) if i in failed else row for i, row in enumerate(BEATEN)
    ]
    found = Audit(3, 0.5, 4, tuple(rows), missing)
    assert first in found.sentence
    assert then in found.sentence
    if failed not in ([], [4]):
        assert "may be used" not in found.sentence


# --- bad input -----------------------------------------------------------------------------------


class Nan(Judge):
    def forward(self, x):
        return super().forward(x) * torch.nan


def made(heatmap=None, image=None, others=None, model=None, **options):
    x = images()
    return audit(
        torch.rand(ROWS, COLUMNS) if heatmap is None else heatmap,
        Judge().eval() if model is None else model,
        x[0] if image is None else image,
        x[1:] if others is None else others,
        **options,
    )


def growing():
    rows = itertools.count(ROWS, ROWS)
    return lambda model, image: torch.rand(next(rows), COLUMNS)


BAD_INPUT = [
    (lambda: made(model=Judge()), ValueError, "say model.eval()"),
    (lambda: made(torch.rand(36)), ValueError, "heatmap must be (rows, columns)"),
    (lambda: made(torch.full((6, 6), torch.nan)), ValueError, "finite numbers"),
    (lambda: made(torch.rand(5, 6)), ValueError, "makes no square patches"),
    (lambda: made(others=images()[:, :, :4]), ValueError, "of the same shape"),
    (lambda: made(image=(x := images())[0], others=x), ValueError, "the image itself"),
    (lambda: made(model=Nan().eval()), ValueError, "answers with nan"),
    (lambda: made(target=3), ValueError, "target must be below 3"),
    (lambda: made(torch.rand(ROWS, COLUMNS).numpy()), TypeError, "that gives one, got ndarray"),
    (lambda: made(torch.rand(6, 6).to_sparse()), TypeError, "heatmap must be a dense tensor"),
    (lambda: made(lambda m, x: None), TypeError, "heatmap must be a torch.Tensor (rows, columns)"),
    (
        lambda: made(growing()),
        ValueError,
        "maps of one shape, got (6, 6) and, of a twin or another",
    ),
    (lambda: made(model=lambda x: x), TypeError, "model must be a torch.nn.Module"),
    (lambda: made(known, twins=[known]), TypeError, "each of twins must be a torch.nn.Module"),
    (lambda: made(seed=0.5), TypeError, "seed must be a whole number"),
    (lambda: made(seed=-1), ValueError, "seed must be at least 0"),
]
