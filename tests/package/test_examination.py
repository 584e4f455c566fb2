"""`examine` names what was planted in models and loaders that are not ours, and else nothing."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from vitbook.data import STATISTICS, load_digits, normalize
from vitbook.models.vit import VisionTransformer
from vitbook.training import examined_learning
from vitbook.training.examination import examine
from vitbook.training.examined_data import gathered

pytestmark = pytest.mark.slow  # models are trained

PIXELS, LABELS = load_digits("train")
IMAGES = normalize(PIXELS, *STATISTICS["digits"])


class Transformer(nn.Module):
    """A small ViT of PyTorch's own layers, into which faults are planted."""

    def __init__(
        self, *, batch_first=True, places=True, reads=0, dropout=0.0, cut=False, axis=None
    ):
        super().__init__()
        self.patches = nn.Conv2d(1, 32, 2, 2)
        self.places = nn.Parameter(0.2 * torch.randn(1, 17, 32)) if places else 0.0
        self.first = nn.Parameter(torch.zeros(1, 1, 32))
        self.norm, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=batch_first)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)
        self.reads, self.dropout, self.cut, self.axis = reads, dropout, cut, axis

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.places
        y = self.norm(x)
        x = x + (self.own(y) if self.axis else self.attention(y, y, y, need_weights=False)[0])
        x = x.detach() if self.cut else x
        x = F.dropout(x + self.mlp(self.second(x)), self.dropout, self.dropout > 0)
        return self.head(x.mean(dim=1) if self.reads is None else x[:, self.reads])

    def own(self, y):
        """Attention by hand, with a softmax over the axis that is asked for."""
        own = self.attention
        q, k, v = F.linear(y, own.in_proj_weight, own.in_proj_bias).chunk(3, dim=-1)
        return own.out_proj((q @ k.mT / 32**0.5).softmax(self.axis) @ v)


class LoudInTraining(nn.Module):
    """Divides its features in evaluation mode, as dropout did before it was turned round."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, images):
        features = self.features(images)
        return self.head(features if self.training else features / 20)


class SmallCNN(nn.Module):
    """A convolution with its norm, and the mean over the image."""

    def __init__(self, **norm):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32, **norm)
        self.second, self.head = nn.Conv2d(32, 32, 3, padding=1), nn.Linear(32, 10)

    def forward(self, images):
        x = F.max_pool2d(self.norm(self.first(images)).relu(), 2)
        return self.head(self.second(x).relu().mean(dim=(2, 3)))


class WithFeatures(SmallCNN):
    """Returns logits and features, as many published models do."""

    def forward(self, images):
        return super().forward(images), images


class WithAuxiliary(SmallCNN):
    """Returns logits, and more in training, as Inception and distilled DeiT do."""

    def forward(self, images):
        logits = super().forward(images)
        return (logits, logits) if self.training else logits


class Unregistered(nn.Module):
    """Its layers are in a list, so the optimizer never hears of them."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(64, 64) for _ in range(2)]
        self.head = nn.Linear(64, 10)

    def forward(self, images):
        x = images.flatten(1)
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


def model(seed=0, **faults):
    torch.manual_seed(seed)
    return Transformer(**faults)


def scaled_head(factor):
    built = model()
    with torch.no_grad():
        built.head.weight *= factor
    return built


def frozen():
    built = model()
    for name, parameter in built.named_parameters():
        parameter.requires_grad_(name.startswith("head"))
    return built


def of(examination):
    """The trials that found something."""
    return {one.trial: one.verdict for one in examination.findings if one.verdict != "fine"}


def tried(built, images=IMAGES, labels=LABELS, **options):
    return examine(built, images, labels, updates=60, progress=False, **options)


SIZES = {"image_size": 8, "patch_size": 2, "in_channels": 1, "num_classes": 10}
SIZES |= {"embed_dim": 32, "depth": 2, "num_heads": 4}
HEALTHY = {
    "PyTorch's layers": model,
    "attention by hand": lambda: model(axis=-1),
    "ours": lambda: VisionTransformer(**SIZES),
    "a CNN with BatchNorm": SmallCNN,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_training(name):
    torch.manual_seed(0)
    built = HEALTHY[name]()
    optimizer = torch.optim.AdamW(built.parameters(), lr=2e-3)
    found = tried(built, optimizer=optimizer)
    assert of(found) == {}
    assert found.sentence == "Nothing was found: 15 trials."


# What was planted -> the model, the images, the labels, and the trial that comes first.
LOGITS, MOVE, PAIRED = "the model gives logits", "all weights move", "labels belong to their images"
SCALE, ONCE = "pixels are scaled", "each image once, with one label"
NUMBERS, REST = "labels are class numbers", "the rest of the batch does not count"
ONE, TWICE = IMAGES[:1].expand(64, -1, -1, -1), IMAGES[:32].repeat(2, 1, 1, 1)
FAULTS = {
    "softmax in the model": (lambda: nn.Sequential(model(), nn.Softmax(1)), {}, LOGITS),
    "ReLU at the end": (lambda: nn.Sequential(model(), nn.ReLU()), {}, LOGITS),
    "attention over the batch": (lambda: model(batch_first=False), {}, LOGITS),
    "and the patches are read": (lambda: model(batch_first=False, reads=None), {}, REST),
    "softmax over queries": (lambda: model(axis=1), {}, "weights of a query sum to 1"),
    "no places": (lambda: model(places=False, reads=None), {}, "places count"),
    "cut off": (lambda: model(cut=True), {}, MOVE),
    "frozen": (frozen, {}, MOVE),
    "dropout also in evaluation": (lambda: model(dropout=0.2), {}, "the same answer twice"),
    "a head that starts large": (lambda: scaled_head(60.0), {}, "first loss"),
    "loud in training only": (LoudInTraining, {}, "evaluation mode agrees"),
    "pixels to 255": (model, {"images": PIXELS * 255}, SCALE),
    "normalised twice": (model, {"images": normalize(IMAGES, *STATISTICS["digits"])}, SCALE),
    "a nan": (model, {"images": torch.where(PIXELS > 0.99, torch.nan, IMAGES)}, SCALE),
    "channels last": (model, {"images": torch.randn(64, 8, 8, 3)}, SCALE),
    "one image again and again": (model, {"images": ONE, "labels": LABELS[:1].expand(64)}, ONCE),
    "two labels for one image": (model, {"images": TWICE, "labels": torch.arange(64) % 10}, ONCE),
    "labels from 1": (model, {"labels": LABELS + 1}, NUMBERS),
    "labels as one-hot": (model, {"labels": F.one_hot(LABELS)}, NUMBERS),
    "labels of other images": (model, {"labels": LABELS.roll(1)}, PAIRED),
    "one label for all images": (model, {"labels": torch.zeros_like(LABELS)}, NUMBERS),
    "logits and features": (WithFeatures, {}, LOGITS),
    "logits and features in training": (WithAuxiliary, {}, LOGITS),
    "no running statistics": (lambda: SmallCNN(track_running_stats=False), {}, REST),
    "BatchNorm that remembers nothing": (
        lambda: SmallCNN(momentum=0.0),
        {},
        "evaluation mode agrees",
    ),
    "layers in a list": (Unregistered, {}, MOVE),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_was_planted_is_named_first(name):
    make, data, trial = FAULTS[name]
    torch.manual_seed(0)
    found = tried(make(), **data)
    first = next(one for one in found.findings if one.verdict != "fine")
    assert first.trial == trial, str(found)
    assert first.advice
    assert found.sentence.startswith(("First to mend", "Nothing wrong; to look at"))


@pytest.mark.parametrize(("rate", "word"), [(3.0, "too high"), (1e-7, "too low")])
def test_a_learning_rate_that_does_not_suit_is_named_with_one_that_does(rate, word):
    found = tried(model(), learning_rate=rate)
    assert of(found) == {"the learning rate suits": "wrong"}
    assert word in found.sentence


@pytest.mark.parametrize(
    ("ends", "verdict", "words"),
    [
        ({1e-3: 0.50, 1e-2: 0.74, 1e-1: 0.93}, "look", "0.1 is too high: try about 0.001"),
        ({1e-3: 0.50, 1e-2: 0.51, 1e-1: 0.70}, "fine", "0.70 at 0.1"),
        ({1e-3: 0.93, 1e-1: 0.50}, "fine", "0.001 needs many more updates than 0.1"),
        ({1e-3: 1.09, 1e-1: 0.50}, "wrong", "0.001 is too low: try about 0.1"),
    ],
)
def test_a_rate_that_gains_less_than_half_of_the_best_is_fine_only_below_it(
    monkeypatch, ends, verdict, words
):
    def learn(built, batches, rate):
        return [1.10] + [ends.get(rate, 1.10)] * 49

    monkeypatch.setattr(examined_learning, "learn", learn)
    chosen = max(ends, key=ends.__getitem__)
    found, _ = examined_learning.rates(model(), IMAGES, LABELS, 32, 50, chosen)
    assert found.verdict == verdict
    assert words in f"{found.seen} {found.advice}"


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 8))]
)
def test_labels_in_another_order_are_never_fine_with_few_images_of_three_classes(seed):
    some = (LABELS < 3).nonzero()[:94, 0]
    torch.manual_seed(seed)
    mixed = LABELS[some][torch.randperm(len(some))]
    for labels, verdict in ((mixed, "look"), (LABELS[some], "fine")):
        found = examined_learning.belongs(model(seed), IMAGES[some], labels, 32, 60, 1e-2)
        assert found.verdict == verdict, found.seen


def test_an_optimizer_of_other_weights_is_named():
    built, trial = model(), "the optimizer has all weights"
    for parameters in (model().parameters(), built.head.parameters()):
        optimizer = torch.optim.SGD(parameters, lr=1e-3)
        assert of(tried(built, optimizer=optimizer))[trial] == "wrong"


def test_a_loader_in_the_order_of_classes_is_named_and_a_shuffled_one_is_not():
    order = LABELS.argsort()
    data = TensorDataset(IMAGES[order], LABELS[order])
    verdicts = [
        of(tried(model(), DataLoader(data, 32, shuffle=shuffle), None)).get("batches are shuffled")
        for shuffle in (False, True)
    ]
    assert verdicts == ["wrong", None]
    once = DataLoader(TensorDataset(IMAGES, LABELS), 32)
    assert of(tried(model(), once, None)) == {"batches are shuffled": "look"}


def test_a_model_that_refuses_a_batch_is_told_with_its_own_words():
    found = tried(model(), IMAGES.repeat(1, 3, 1, 1))
    assert found.findings[-1].verdict == "wrong"
    assert "expected input" in found.findings[-1].seen


def test_the_model_its_mode_and_the_random_numbers_stay_as_they_are():
    built = model().train()
    before, drawn = copy.deepcopy(built.state_dict()), torch.get_rng_state()
    tried(built)
    assert built.training
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(torch.equal(before[name], value) for name, value in built.state_dict().items())
    assert all(parameter.grad is None for parameter in built.parameters())


def test_arrays_and_lists_are_examined_as_tensors_are_and_alike_each_time():
    some, numbers = IMAGES[:64], LABELS[:64]
    said = str(tried(model(), some, numbers))
    given = (some.numpy(), numbers.numpy()), (list(some), numbers.tolist())
    for images, labels in (*given, (list(some.numpy()), numbers)):
        assert str(tried(model(), images, labels)) == said


BAD_INPUT = [
    (lambda: examine(model(), IMAGES), TypeError, "labels must be given"),
    (lambda: examine(model(), iter([(IMAGES, LABELS)])), TypeError, "run through again"),
    (lambda: examine(model(), [(IMAGES, LABELS)], LABELS), TypeError, "labels must be left out"),
    (lambda: examine(model(), IMAGES, ["one"] * len(IMAGES)), TypeError, "labels must be class"),
    (lambda: gathered([IMAGES], 10), TypeError, "pairs"),
    (lambda: gathered([], 10), ValueError, "empty"),
    (lambda: tried(model(), learning_rate=0.0), ValueError, "learning_rate must be"),
    (lambda: examine(model(), IMAGES, LABELS, updates=3), ValueError, "must be at least 50, got 3"),
]


def trial(examination, name):
    return next(one for one in examination.findings if one.trial == name)


class Remembers(Transformer):
    """Keeps what a run gave, with its graph."""

    def own(self, y):
        self.seen = {"out": [super().own(y)]}
        return self.seen["out"][0]


def test_a_model_that_remembers_an_earlier_run_is_examined():
    model = Remembers(axis=-1)
    model(IMAGES[:2])
    found = examine(model, IMAGES[:64], LABELS[:64], updates=50)
    assert trial(found, "all weights move").verdict == "fine"
    assert not model.seen["out"][0].is_leaf


@pytest.mark.parametrize(
    ("images", "labels", "name", "seen"),
    [
        (64, 10, "labels are class numbers", "There are 10 labels for 64 images."),
        (0, 0, "pixels are scaled", "There are no images."),
    ],
)
def test_numbers_of_images_that_cannot_be_are_findings(images, labels, name, seen):
    found = examine(Transformer(), IMAGES[:images], LABELS[:labels], updates=50)
    assert trial(found, name).seen == seen
    assert trial(found, name) == found.findings[-1]


def test_a_weight_that_a_step_cannot_move_in_half_precision_is_not_cut_off():
    found = examine(Transformer().bfloat16(), IMAGES[:64].bfloat16(), LABELS[:64], updates=50)
    assert trial(found, "all weights move").verdict == "fine"


def test_what_draws_at_random_is_not_said_to_look_at_the_rest_of_the_batch():
    found = examine(Transformer(dropout=0.3), IMAGES[:64], LABELS[:64], updates=50)
    assert trial(found, "the same answer twice").verdict == "wrong"
    assert "the rest of the batch does not count" not in {one.trial for one in found.findings}


def test_models_that_cannot_be_trained_as_they_are_are_refused():
    lazy = Transformer()
    lazy.head = nn.LazyLinear(10)
    with pytest.raises(ValueError, match=r"no head.weight yet: call it once"):
        examine(lazy, IMAGES[:64], LABELS[:64])
    with pytest.raises(ValueError, match="TorchScript"):
        examine(torch.jit.trace(nn.Flatten(), IMAGES[:2]), IMAGES[:64], LABELS[:64])
