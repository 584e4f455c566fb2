"""Each check of chapter 0 passes the right answer and names the planted mistakes."""

import pytest
import torch

from vitbook.checks import CheckFailed
from vitbook.checks.preview import (
    check_hide_patch,
    check_rollout,
    check_strongest_patch,
    check_token_count,
)

COUNTS = {
    "8 x 8, patch 2": 17,
    "224 x 224, patch 16": 197,
    "32 x 48, patch 8": 25,
    "224 x 224, patch 32": 50,
}


def strongest(weights, columns):
    return divmod(int(weights[0, 1:].argmax()), columns)


def hide(images, patch, P, columns=None, value=None):
    row, column = divmod(patch, columns or images.shape[3] // P)
    hidden = images.clone()
    mean = images.mean((1, 2, 3), keepdim=True) if value is None else value
    hidden[:, :, P * row : P * row + P, P * column : P * column + P] = mean
    return hidden


def hide_in_place(images, patch, P):
    images.copy_(hide(images, patch, P))
    return images


def rollout(maps, residual=0.5, attention=0.5, reverse=False, heads="mean"):
    result = torch.eye(maps.shape[-1])
    for layer in getattr(maps, heads)(1):
        mixed = attention * layer + residual * torch.eye(len(layer))
        result = result @ mixed if reverse else mixed @ result
    return result


RIGHT = [
    (check_token_count, lambda: COUNTS),
    (check_strongest_patch, strongest),
    (check_strongest_patch, lambda w, c: list(strongest(w, c))),
    (check_hide_patch, hide),
    (check_rollout, rollout),
]

MISTAKES = [
    (check_token_count, lambda: COUNTS | {"8 x 8, patch 2": 16}, "not a patch"),
    (check_token_count, lambda: COUNTS | {"8 x 8, patch 2": 33}, "wide and P pixels high"),
    (check_token_count, lambda: COUNTS | {"32 x 48, patch 8": 11}, "added or multiplied"),
    (check_token_count, lambda: COUNTS | {"224 x 224, patch 32": 65}, "fit into a row"),
    (check_strongest_patch, lambda w, c: divmod(int(w[0].argmax()), c), "Column 0"),
    (check_strongest_patch, lambda w, c: divmod(int(w[0, 1:].argmax()) + 1, c), "Column 0"),
    (check_strongest_patch, lambda w, c: strongest(w, c)[::-1], "which one is the row"),
    (check_strongest_patch, lambda w, c: strongest(w, 3), "rows, or columns"),
    (check_strongest_patch, lambda w, c: divmod(int(w[1:, 0].argmax()), c), "whom does it look"),
    (check_strongest_patch, lambda w, c: int(w[0, 1:].argmax()), "a pair"),
    (check_hide_patch, lambda x, p, P: x, "nothing has changed"),
    (check_hide_patch, hide_in_place, "in place"),
    (check_hide_patch, lambda x, p, P: hide(x, p, P, columns=4), "outside the patch"),
    (check_hide_patch, lambda x, p, P: hide(x, p, P, value=x.mean()), "whole batch"),
    (
        check_hide_patch,
        lambda x, p, P: hide(x, p, P, value=x.mean((2, 3), keepdim=True)),
        "for each channel",
    ),
    (check_hide_patch, lambda x, p, P: hide(x, p, P, value=0.0), "filled with"),
    (check_rollout, lambda m: rollout(m, residual=0.0, attention=1.0), "residual"),
    (check_rollout, lambda m: rollout(m, residual=1.0, attention=1.0), "half and half"),
    (check_rollout, lambda m: rollout(m, reverse=True), "turned round"),
    (check_rollout, lambda m: rollout(m, heads="sum"), "sum to one"),
    (check_rollout, lambda m: m.mean(1), "expected (5, 5)"),
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


@pytest.mark.parametrize("check", [check_strongest_patch, check_hide_patch, check_rollout])
def test_a_stub_is_not_answered_yet(check, capsys):
    check(lambda *args: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_unfinished_counts_are_not_answered_yet(capsys):
    check_token_count(lambda: COUNTS | {"8 x 8, patch 2": ...})
    assert capsys.readouterr().out.startswith("not answered yet")
