"""Each check of chapter 6 passes the right answer and names the planted mistakes."""

import pytest
import torch

from vitbook.positions import sincos_1d
from vitcheck import CheckFailed
from vitcheck.ch06_positions import (
    check_permutation_test,
    check_shift_matrix,
    check_turn,
    check_unshuffle,
    check_who_sees_order,
)

ORDER = {
    "attention": "equivariant",
    "feed-forward network": "equivariant",
    "mean over the tokens": "invariant",
    "attention, then the mean": "invariant",
    "largest value of each feature": "invariant",
    "attention with a causal mask": "neither",
    "attention after adding sines and cosines": "neither",
    "all tokens side by side, one linear layer": "neither",
}


def shift(k, dim, *, sign=1, same=False, exponent=2, gathered=False):
    R = torch.zeros(dim, dim)
    for i in range(dim // 2):
        angle = torch.tensor(k * (1.0 if same else 10000 ** (-exponent * i / dim)))
        c, s = angle.cos(), sign * angle.sin()
        at = [i, i + dim // 2] if gathered else [2 * i, 2 * i + 1]
        R[at[0], at[0]], R[at[0], at[1]], R[at[1], at[0]], R[at[1], at[1]] = c, -s, s, c
    return R


def shift_of_one_place(k, dim):
    table = sincos_1d(50, dim)
    return torch.linalg.pinv(table[:1]) @ table[abs(k) : abs(k) + 1]


def permutation_test(layer, x, *, orders=20, order=None, exact=False, sign=None):
    torch.manual_seed(0)
    before = layer(x)
    invariant = equivariant = True
    for _ in range(orders):
        index = torch.randperm(len(x)) if order is None else order(len(x))
        after = layer(x[index])
        same = torch.equal if exact else lambda a, b: torch.allclose(a, b, atol=1e-5)
        invariant &= same(after, before)
        equivariant &= before.ndim == 2 and same(after, before[index])
    return "invariant" if invariant else "equivariant" if equivariant else "neither"


def one_random_order(layer, x):
    before, index = layer(x), torch.randperm(len(x))
    after = layer(x[index])
    if torch.allclose(after, before, atol=1e-5):
        return "invariant"
    moved = before.ndim == 2 and torch.allclose(after, before[index], atol=1e-5)
    return "equivariant" if moved else "neither"


def compared_without_shuffling(layer, x):
    index = torch.randperm(len(x))
    same = torch.allclose(layer(x[index]), layer(x), atol=1e-5)
    return "invariant" if same else "neither"


def by_shape(layer, x):
    if layer(x).ndim == 1:
        return "invariant"
    kind = permutation_test(layer, x)
    return "neither" if kind == "invariant" else kind


def turn(x, positions, *, sign=1, same=False, scale=2, halves=False, own=False):
    d = x.shape[-1]
    if own:
        positions = torch.arange(len(positions), dtype=torch.float32)
    exponent = torch.arange(d // 2) * (0.0 if same else scale / d)
    angles = sign * positions[:, None] * 10000.0**-exponent
    c, s = angles.cos(), angles.sin()
    a, b = (x[..., : d // 2], x[..., d // 2 :]) if halves else (x[..., ::2], x[..., 1::2])
    pair = [a * c - b * s, a * s + b * c]
    return torch.cat(pair, -1) if halves else torch.stack(pair, -1).flatten(-2)


def unshuffle(table, order):
    return table[order.argsort()]


RIGHT = [
    (check_who_sees_order, lambda: ORDER),
    (check_shift_matrix, shift),
    (check_permutation_test, permutation_test),
    (check_turn, turn),
    (check_unshuffle, unshuffle),
]

MISTAKES = [
    (check_who_sees_order, lambda: ORDER | {"attention": "invariant"}, "shuffled likewise"),
    (
        check_who_sees_order,
        lambda: ORDER | {"mean over the tokens": "equivariant"},
        "order of its terms",
    ),
    (
        check_who_sees_order,
        lambda: ORDER | {"attention with a causal mask": "equivariant"},
        "sees only itself",
    ),
    (
        check_who_sees_order,
        lambda: ORDER | {"all tokens side by side, one linear layer": "invariant"},
        "weights of its own",
    ),
    (check_who_sees_order, lambda: ORDER | {"attention": "yes"}, "got 'yes'"),
    (check_who_sees_order, lambda: {"attention": "equivariant"}, "is missing"),
    (check_who_sees_order, lambda: list(ORDER.values()), "dictionary"),
    (check_shift_matrix, lambda k, dim: shift(k, dim).T, "tokens are rows"),
    (check_shift_matrix, lambda k, dim: shift(-k, dim), "the way back"),
    (check_shift_matrix, lambda k, dim: shift(k, dim, gathered=True), "all sines first"),
    (check_shift_matrix, lambda k, dim: shift(k, dim, same=True), "which angle does pair i turn"),
    (check_shift_matrix, lambda k, dim: shift(k, dim, exponent=1), "which angle does pair i turn"),
    (check_shift_matrix, shift_of_one_place, "may R depend on t"),
    (check_shift_matrix, lambda k, dim: torch.eye(dim), "what does one pair"),
    (check_shift_matrix, lambda k, dim: shift(abs(k), dim), "undo it"),
    (check_shift_matrix, lambda k, dim: shift(k, dim)[:2, :2], "expected (8, 8)"),
    (check_permutation_test, compared_without_shuffling, "undo the shuffle"),
    (
        check_permutation_test,
        lambda f, x: permutation_test(f, x, exact=True),
        "up to rounding",
    ),
    (
        check_permutation_test,
        lambda f, x: permutation_test(f, x, order=lambda n: torch.arange(n).roll(1)),
        "shift of all tokens round the ring",
    ),
    (
        check_permutation_test,
        lambda f, x: permutation_test(f, x, order=lambda n: torch.arange(n).flip(0)),
        "reversed order",
    ),
    (check_permutation_test, by_shape, "may return N rows"),
    (check_permutation_test, lambda f, x: True, "return one of"),
    (check_turn, lambda x, p: turn(x, p, halves=True), "neighbours"),
    (check_turn, lambda x, p: turn(x, p, same=True), "near position from a far one"),
    (check_turn, lambda x, p: turn(x, p, sign=-1), "other direction"),
    (check_turn, lambda x, p: turn(x, p, scale=1), "2 i / d, or i / d"),
    (check_turn, lambda x, p: turn(x, p, own=True), "angle zero"),
    (
        check_turn,
        lambda x, p: turn(x, p, own=bool((p != 0).any())),
        "of the given positions",
    ),
    (check_turn, lambda x, p: x + p[:, None], "keep its length"),
    (check_unshuffle, lambda table, order: table, "as it was"),
    (check_unshuffle, lambda table, order: table[order], "once more"),
    (check_unshuffle, lambda table, order: table.flip(0), "belongs to patch 0"),
    (check_unshuffle, lambda table, order: table.T, "expected (7, 3)"),
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


def test_a_single_random_order_is_not_enough():
    torch.manual_seed(0)
    with pytest.raises(CheckFailed, match=r"enough of them|how many orders"):
        check_permutation_test(one_random_order)


@pytest.mark.parametrize("check", [check for check, _ in RIGHT])
def test_a_stub_is_not_answered_yet(check, capsys):
    check(lambda *args: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_unfinished_answers_are_not_answered_yet(capsys):
    check_who_sees_order(lambda: ORDER | {"attention": ...})
    assert capsys.readouterr().out.startswith("not answered yet")
