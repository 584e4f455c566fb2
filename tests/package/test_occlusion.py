"""Occlusion, its first-order forecast, and rank correlation: held against hands and loops.

B = 2, C = 3, images of 4 x 6 pixels, P = 2, so a grid of 2 x 3 patches.
"""

from types import SimpleNamespace

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import gradient_drop, occlusion, rank_correlation

B, C, H, W, P, K = 2, 3, 4, 6, 2, 5


def images(seed=0):
    return torch.randn(B, C, H, W, generator=torch.Generator().manual_seed(seed))


class Reads(nn.Module):
    """Logits linear in the pixels; those whose weights are zero do not count."""

    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.weight = nn.Parameter(torch.randn(K, C, H, W, generator=random))

    def forward(self, x):
        return torch.einsum("bchw,kchw->bk", x, self.weight)


def test_occlusion_is_what_a_loop_over_patches_finds():
    model, x, paint = Reads(), images(), images(7)
    got = occlusion(model, x, P, paint)
    assert got.shape == (B, H // P, W // P)
    for b in range(B):
        before = model(x[b : b + 1]).log_softmax(-1)[0]
        answer = int(before.argmax())
        for row in range(2):
            for column in range(3):
                changed = x[b : b + 1].clone()
                for c in range(C):
                    for i in range(P):
                        for j in range(P):
                            at = (c, P * row + i, P * column + j)
                            changed[(0, *at)] = paint[(b, *at)]
                after = model(changed).log_softmax(-1)[0, answer]
                assert_close(got[b, row, column], before[answer] - after)


def test_a_patch_that_is_not_read_loses_nothing_and_the_default_paint_is_the_mean_colour():
    model, x = Reads(), images()
    with torch.no_grad():
        model.weight[:, :, 2:, 2:4] = 0
    got = occlusion(model, x, P)
    assert (got[:, 1, 1] == 0).all()
    assert (got[:, 0].abs() > 1e-4).all()
    mean = x.mean(dim=(2, 3), keepdim=True).expand_as(x)
    assert_close(got, occlusion(model, x, P, mean))


@pytest.mark.parametrize("target", [None, torch.tensor([3, 0])])
def test_the_forecast_of_a_small_change_is_what_occlusion_finds(target):
    model, x = Reads().double(), images().double()
    paint = x + 1e-5 * images(3)
    found, foretold = (f(model, x, P, paint, target) for f in (occlusion, gradient_drop))
    assert found.abs().max() > 1e-6
    assert_close(foretold.float() * 1e5, found * 1e5, atol=1e-3, rtol=1e-2)


def test_any_classifier_is_tested_a_convolution_too_and_logits_in_an_output():
    conv = nn.Sequential(nn.Conv2d(C, K, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    class Output(nn.Module):
        def forward(self, x):
            return SimpleNamespace(logits=conv(x))

    drops = occlusion(conv, images(), P)
    assert drops.abs().max() > 0
    assert torch.equal(occlusion(Output(), images(), P), drops)
    assert torch.equal(gradient_drop(Output(), images(), P), gradient_drop(conv, images(), P))


def test_rank_correlation_is_scipys_with_and_without_ties():
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(3, 4, 9, generator=random), torch.randn(3, 4, 9, generator=random)
    x[0, 0, 3:6] = x[0, 0, 0]
    got = rank_correlation(x, y)
    assert got.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            assert_close(float(got[i, j]), float(spearmanr(x[i, j], y[i, j]).statistic))


X = images()


def test_a_class_one_asks_about_is_followed_in_place_of_the_answer():
    model, x, paint = Reads(), images(), images(7)
    answers = model(x).argmax(-1)
    assert torch.equal(occlusion(model, x, P, paint, answers), occlusion(model, x, P, paint))
    assert torch.equal(gradient_drop(model, x, P, target=answers), gradient_drop(model, x, P))
    others = (answers + torch.tensor([1, 2])) % K
    drops, forecast = occlusion(model, x, P, paint, others), gradient_drop(model, x, P, x, others)
    for b in range(B):
        asked = int(others[b])
        before = model(x).log_softmax(-1)[b, asked]
        changed = x.clone()
        changed[:, :, 2:, 4:] = paint[:, :, 2:, 4:]
        assert_close(drops[b, 1, 2], before - model(changed).log_softmax(-1)[b, asked])
        alone = occlusion(model, x[b : b + 1], P, paint[b : b + 1], asked)
        assert_close(alone, drops[b : b + 1])
    assert (forecast == 0).all()
    assert not torch.allclose(drops, occlusion(model, x, P, paint), atol=0.01)


def test_the_forecast_takes_its_gradient_also_where_none_is_kept():
    model = Reads()
    foretold = gradient_drop(model, X, P)
    for without in (torch.no_grad(), torch.inference_mode()):
        with without:
            assert torch.equal(gradient_drop(model, X.clone(), P), foretold)


def test_an_order_with_a_nan_in_it_is_none():
    x = torch.arange(10.0).view(2, 5)
    y = x.clone()
    x[0, 0] = torch.nan
    for got in (rank_correlation(x, y), rank_correlation(y, x)):
        assert_close(got, torch.tensor([torch.nan, 1]).double(), equal_nan=True)
    assert_close(rank_correlation(y.long(), y), torch.ones(2).double())


class Says(Reads):
    """Something made of its logits."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(super().forward(x))


Y = X[0, 0]
BAD_INPUT = [
    (lambda: occlusion(Reads(), X[0], P), ValueError, "(B, C, H, W)"),
    (lambda: occlusion(Reads(), [1.0], P), TypeError, "images must be"),
    (lambda: occlusion(Reads(), X, 4), ValueError, "patch_size must divide"),
    (lambda: occlusion(Reads(), X, P, X[:1]), ValueError, "paint must have the shape"),
    (lambda: occlusion(Reads(), X, P, target=K), ValueError, "between 0 and 4, got 5"),
    (
        lambda: occlusion(Reads(), X, P, target=torch.tensor([0, 1, 2])),
        ValueError,
        "target must be a class or one for each of the 2 images",
    ),
    (lambda: occlusion(Reads(), X, P, target=0.5), ValueError, "target must be a class"),
    (lambda: occlusion(nn.Identity(), X, P), ValueError, "must give logits (B, K)"),
    (lambda: occlusion(None, X, P), TypeError, "model must be a function of images"),
    (lambda: occlusion(Says(lambda x: x[:1]), X, P), ValueError, "with B = 2 and K of 1 or more"),
    (lambda: occlusion(Says(lambda x: x[:, :0]), X, P), ValueError, "got (2, 0) of torch.float32"),
    (lambda: occlusion(Says(lambda x: x.long()), X, P), ValueError, "got (2, 5) of torch.int64"),
    (lambda: occlusion(Says(lambda x: x.sum()), X, P), ValueError, "got () of torch.float32"),
    (lambda: gradient_drop(Says(torch.detach), X, P), ValueError, "model must keep gradients"),
    (lambda: occlusion(Reads(), X, P, target="a"), ValueError, "whole numbers; got a"),
    (lambda: gradient_drop(Reads(), X, P, target=[[0], 1]), ValueError, "whole numbers; got [[0]"),
    (lambda: occlusion(Reads(), X.to_sparse(), P), TypeError, "images must be a dense tensor"),
    (lambda: rank_correlation([1, 2], Y), TypeError, "x must be a torch.Tensor (..., n), got list"),
    (lambda: rank_correlation(Y, Y.numpy()), TypeError, "y must be a torch.Tensor (..., n)"),
    (lambda: rank_correlation(Y > 0, Y), TypeError, "x must hold whole or floating-point numbers"),
    (lambda: rank_correlation(Y, Y + 0j), TypeError, "y must hold whole or floating-point numbers"),
    (lambda: rank_correlation(Y, Y[:3]), ValueError, "broadcast, got the shapes (4, 6) and (3, 6)"),
    (lambda: rank_correlation(Y, Y[0, 0]), ValueError, "y must have the axes (..., n)"),
    (lambda: rank_correlation(X[0, 0, 0], X[0, 0, 0, 1:]), ValueError, "same last axis"),
    (lambda: rank_correlation(X[..., :1], X[..., :1]), ValueError, "two numbers or more"),
]
