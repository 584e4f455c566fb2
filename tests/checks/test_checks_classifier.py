"""Each check of chapter 10 passes the right answer and names the planted mistakes."""

import math
import re
from pathlib import Path

import pytest
import timm
import torch
import torch.nn.functional as F
from PIL import Image
from torch.testing import assert_close

from vitbook.plotting import show_attention
from vitbook.vit import vit
from vitbook.weights import from_timm, load_weights
from vitcheck import CheckFailed
from vitcheck.ch10_classifier import (
    check_in_line,
    check_losses,
    check_merge_qkv,
    check_parameters,
    check_readout,
)

PAGE = Path(__file__).parents[2] / "book" / "vit" / "10_classifier.md"


def readout(features, pool):
    return features[:, 0] if pool == "cls" else features[:, 1:].mean(1)


def in_line(cls, patches, table):
    return torch.cat([cls.expand(len(patches), -1, -1), patches + table], dim=1)


def joined(cls, patches):
    return torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)


def count(
    image_size,
    patch_size,
    in_channels,
    num_classes,
    embed_dim,
    depth,
    *,
    block_biases=9,
    block_norms=4,
    others=2,
    head_bias=1,
    last_norm=2,
    squares=12,
    channels=True,
):
    D, pixels = embed_dim, patch_size**2 * (in_channels if channels else 1)
    tokens = (image_size // patch_size) ** 2
    patches = pixels * D + D + (tokens + others) * D  # others: class token and its row
    blocks = depth * (squares * D * D + (block_biases + block_norms) * D)
    return patches + blocks + last_norm * D + D * num_classes + head_bias * num_classes


def weights_alone(image_size, patch_size, in_channels, num_classes, embed_dim, depth):
    """Without biases; the norms' biases are biases too."""
    D, all_ = embed_dim, count(image_size, patch_size, in_channels, num_classes, embed_dim, depth)
    return all_ - (D + depth * 11 * D + D + num_classes)


def merge(q, k, v):
    return torch.cat([q.weight, k.weight, v.weight]), torch.cat([q.bias, k.bias, v.bias])


def by_head(q, k, v):
    stacked = torch.stack([q.weight, k.weight, v.weight])
    weight = stacked.unflatten(1, (3, -1)).transpose(0, 1).flatten(0, 2)
    return weight, merge(q, k, v)[1]


def losses(K):
    return math.log(K), math.log(math.e + K - 1) - 1


RIGHT = [
    (check_readout, readout),
    (check_in_line, in_line),
    (check_parameters, count),
    (check_merge_qkv, merge),
    (check_losses, losses),
]

MISTAKES = [
    (check_readout, lambda f, pool: readout(f.flip(1), pool), "the last token"),
    (check_readout, lambda f, pool: f.mean(1), "is pool looked at"),
    (check_readout, lambda f, pool: f[:, 1:].mean(1), "is pool looked at"),
    (check_readout, lambda f, pool: f[:, 0], "the class token again"),
    (check_readout, lambda f, pool: f[:, 0] if pool == "cls" else f.mean(1), "is it in your mean"),
    (check_readout, lambda f, pool: f[:, 0] if pool == "cls" else f[:, 1:].sum(1), "a sum"),
    (
        check_readout,
        lambda f, pool: f[:, 0] if pool == "cls" else f[:, 1:].sum(1) / f.shape[1],
        "number you divide by",
    ),
    (
        check_readout,
        lambda f, pool: f[:, 0] if pool == "cls" else f[:, :-1].mean(1),
        "left out the last patch",
    ),
    (check_readout, lambda f, pool: f[:, 0] if pool == "cls" else f[:, 1:].mean(2), "expected"),
    (check_readout, lambda f, pool: f[:, 0] if pool == "cls" else f[:, 1], "may the order"),
    (
        check_in_line,
        lambda c, p, t: joined(c, p) + F.pad(t, (0, 0, 0, 1)),
        "took the row of the first patch",
    ),
    (
        check_in_line,
        lambda c, p, t: torch.cat([p + t, c.expand(len(p), -1, -1)], 1),
        "at the end",
    ),
    (check_in_line, lambda c, p, t: joined(c, p), "was told its place"),
    (
        check_in_line,
        lambda c, p, t: joined(c, p + F.pad(t[1:], (0, 0, 0, 1))),
        "the row of the next one",
    ),
    (
        check_in_line,
        lambda c, p, t: joined(c, p + F.pad(t[:-1], (0, 0, 1, 0))),
        "the one before",
    ),
    (check_in_line, lambda c, p, t: joined(c, p + t.flip(0)), "is row n of the table"),
    (check_in_line, lambda c, p, t: joined(2 * c, p + t), "before any block"),
    (check_in_line, lambda c, p, t: p + t, "expected (2, 7, 5)"),
    (check_in_line, lambda c, p, t: joined(c, p.add_(t)), "in place"),
    (check_parameters, lambda *a: count(*a, head_bias=0), "has the head a bias"),
    (check_parameters, lambda *a: count(*a, others=1), "its row of the table"),
    (check_parameters, lambda *a: count(*a, others=0), "the class token and its row"),
    (check_parameters, lambda *a: count(*a, last_norm=0), "the last norm"),
    (check_parameters, lambda *a: count(*a, block_norms=0), "how many norms has a block"),
    (check_parameters, lambda *a: count(*a, block_biases=0), "layers of a block have a bias"),
    (
        check_parameters,
        lambda *a: count(*a, block_biases=0, block_norms=0),
        "norms, and the biases",
    ),
    (
        check_parameters,
        lambda *a: count(*a) - ((a[0] // a[1]) ** 2 + 1) * a[4],
        "the table of positions",
    ),
    (check_parameters, weights_alone, "Biases learn too"),
    (check_parameters, lambda *a: count(*a[:5], 1), "that is one block"),
    (check_parameters, lambda *a: count(*a, squares=8), "projects the heads' output"),
    (check_parameters, lambda *a: count(*a, channels=False), "a patch of C channels"),
    (check_parameters, lambda *a: count(*a, squares=24), "too many"),
    (check_parameters, lambda *a: count(*a) - 1, "1 are missing"),
    (check_merge_qkv, lambda q, k, v: merge(k, q, v), "the order is k, q, v"),
    (
        check_merge_qkv,
        lambda q, k, v: (torch.cat([q.weight, k.weight, v.weight], 1), merge(q, k, v)[1]),
        "expected (36, 12)",
    ),
    (
        check_merge_qkv,
        lambda q, k, v: (torch.cat([q.weight.T, k.weight.T, v.weight.T]), merge(q, k, v)[1]),
        "did you transpose it",
    ),
    (check_merge_qkv, by_head, "sorted by head"),
    (
        check_merge_qkv,
        lambda q, k, v: (merge(q, k, v)[0], torch.zeros(36)),
        "biases lost",
    ),
    (
        check_merge_qkv,
        lambda q, k, v: (merge(q, k, v)[0], torch.cat([q.bias, v.bias, k.bias])),
        "their own bias",
    ),
    (
        check_merge_qkv,
        lambda q, k, v: (merge(q, k, v)[0], torch.cat([k.bias, q.bias, v.bias])),
        "where it belongs",
    ),
    (check_merge_qkv, lambda q, k, v: merge(q, k, v)[0], "should be a pair"),
    (check_losses, lambda K: (1 / K, 1.0), "that is a probability"),
    (check_losses, lambda K: (-math.log(K), 1.0), "which sign"),
    (check_losses, lambda K: (math.log2(K), 1.0), "in bits"),
    (check_losses, lambda K: (1 - 1 / K, 1.0), "another measure"),
    (check_losses, lambda K: (0.0, 0.0), "would all classes be right"),
    (check_losses, lambda K: (math.log(K), 0.0), "may probabilities"),
    (check_losses, lambda K: (math.log(K), math.log(K)), "knows nothing"),
    (check_losses, lambda K: (math.log(K), -1.0), "minus the probability"),
    (check_losses, lambda K: (math.log(K), math.log(math.e + K) - 1), "how many wrong classes"),
    (check_losses, lambda K: (math.log(K), math.log(math.e + K - 1)), "log of the sum"),
    (check_losses, lambda K: (math.log(K), math.e / (math.e + K - 1)), "its negative log"),
    (check_losses, lambda K: math.log(K), "should be a pair"),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_the_right_answer_passes(check, answer, capsys):
    check(answer)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize(("check", "answer", "words"), MISTAKES)
def test_a_mistake_is_named(check, answer, words):
    with pytest.raises(CheckFailed) as failure:
        check(answer)
    assert words in str(failure.value)


@pytest.mark.parametrize("check", [check for check, _ in RIGHT])
def test_a_stub_is_not_answered_yet(check, capsys):
    check(lambda *args: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_half_an_answer_is_not_answered_yet(capsys):
    check_losses(lambda K: (math.log(K), ...))
    assert capsys.readouterr().out.startswith("not answered yet")


def test_the_optional_cell_for_a_photo_runs_with_random_weights(tmp_path, capsys):
    """All of it but the download, which the build cannot do."""
    cells = re.findall(r"```{code-cell} ipython3\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (maps,) = (cell for cell in cells if "def class_token_looks" in cell)
    (photo,) = (cell for cell in cells if "MY_PHOTO = None" in cell)
    assert "pretrained=True" in photo  # what a reader runs
    shown = []
    page = {"torch": torch, "timm": timm, "vit": vit, "assert_close": assert_close}
    page |= {"load_weights": load_weights, "from_timm": from_timm}
    page["show_attention"] = show_attention
    page["show"] = lambda fig, alt: shown.append(len(fig.axes))

    exec(maps.partition("chosen =")[0], page)
    exec(photo, page)
    assert capsys.readouterr().out.startswith("Not run here")

    Image.new("RGB", (300, 260), "teal").save(tmp_path / "photo.png")
    page["look_at"](str(tmp_path / "photo.png"), pretrained=False)
    assert capsys.readouterr().out.count("%") == 5  # the five likeliest classes
    assert shown == [6]  # one panel for each head
