"""What every model has to beat is what it is called."""

import torch

from experiments.machinery.opponents import linear, mlp, nearest_accuracy, nearest_answers
from vitbook.data import ImageSet


def test_the_nearest_image_is_the_one_at_the_least_distance():
    random = torch.Generator().manual_seed(0)
    known = ImageSet(torch.randn(30, 2, 3, 5, generator=random), torch.arange(30))
    asked = torch.randn(700, 2, 3, 5, generator=random)  # more than one part
    distances = torch.cdist(asked.flatten(1), known.images.flatten(1))
    nearest = distances.argmin(dim=1)
    assert torch.equal(nearest_answers(known, asked), nearest)
    labels = torch.where(torch.arange(700) < 70, nearest, nearest + 1)
    assert nearest_accuracy(known, ImageSet(asked, labels)) == 0.1


def test_the_linear_model_starts_undecided_and_is_linear():
    model, x = linear(30, 4), torch.randn(7, 2, 3, 5)
    assert model(x).shape == (7, 4)
    assert not model(x).any()
    torch.nn.init.normal_(model[1].weight)
    torch.testing.assert_close(model(2 * x), 2 * model(x))


def test_the_mlp_has_one_hidden_layer():
    model = mlp(30, 6, 4)
    assert model(torch.randn(7, 2, 3, 5)).shape == (7, 4)
    assert sum(p.numel() for p in model.parameters()) == 31 * 6 + 7 * 4
