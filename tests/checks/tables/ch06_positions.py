"""Chapter 6: where a token is."""

import itertools

import torch
from case import Case, stub

from vitbook.layers.positions import sincos_1d
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


def shift(k, dim, exponent=2):
    R = torch.zeros(dim, dim)
    for i in range(dim // 2):
        angle = torch.tensor(k * 10000 ** (-exponent * i / dim))
        c, s = angle.cos(), angle.sin()
        R[2 * i, 2 * i], R[2 * i, 2 * i + 1], R[2 * i + 1, 2 * i], R[2 * i + 1, 2 * i + 1] = (
            c,
            -s,
            s,
            c,
        )
    return R


def shift_by_blocks(k, dim):
    angles = k * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    c, s = angles.cos(), angles.sin()
    return torch.block_diag(*torch.stack([c, -s, s, c], -1).view(-1, 2, 2))


def shift_by_einsum(k, dim):
    angles = k * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    pairs = torch.eye(dim).view(dim, dim // 2, 2)  # which column is which half of which pair
    blocks = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1)
    return torch.einsum("api,pij,bpj->ab", pairs, blocks.view(-1, 2, 2), pairs)


def shift_by_least_squares(k, dim):
    table = sincos_1d(400, dim).double()
    start = max(0, -k)
    here, there = table[start : start + 300], table[start + k : start + k + 300]
    return torch.linalg.lstsq(here, there).solution


def shift_of_one_place(k, dim):
    table = sincos_1d(50, dim)
    return torch.linalg.pinv(table[:1]) @ table[abs(k) : abs(k) + 1]


def permutation_test(layer, x, *, orders=20, order=None, exact=False):
    torch.manual_seed(0)
    before = layer(x)
    invariant = equivariant = True
    for _ in range(orders):
        index = torch.randperm(len(x)) if order is None else order(len(x))
        after = layer(x[index])
        same = torch.equal if exact else lambda a, b: torch.allclose(a, b, atol=1e-5)
        invariant &= same(after, before)
        equivariant &= before.ndim == 2 and same(after, before[index])
        if not (invariant or equivariant):
            break
    return "invariant" if invariant else "equivariant" if equivariant else "neither"


def every_order(layer, x):
    orders = [torch.tensor(order) for order in [*itertools.permutations(range(len(x)))][1::45]]
    before, after = layer(x), torch.stack([layer(x[order]) for order in orders])
    if torch.allclose(after, before.expand_as(after), atol=1e-5):
        return "invariant"
    if len(before) != len(x):
        return "neither"
    moved = torch.stack([before[order] for order in orders])
    return "equivariant" if torch.allclose(after, moved, atol=1e-5) else "neither"


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


def always(*order):
    """Only ever that one order of six tokens."""
    return lambda layer, x: permutation_test(layer, x, order=lambda n: torch.tensor(order))


def turn_by_loops(x, positions):
    turned, d = torch.empty_like(x), x.shape[-1]
    for b, sequence in enumerate(x):
        for t, place in enumerate(positions):
            for i in range(d // 2):
                angle = place * 10000 ** (-2 * i / d)
                p, q = sequence[t, 2 * i], sequence[t, 2 * i + 1]
                turned[b, t, 2 * i] = p * angle.cos() - q * angle.sin()
                turned[b, t, 2 * i + 1] = p * angle.sin() + q * angle.cos()
    return turned


def turn_by_complex_numbers(x, positions):
    d = x.shape[-1]
    angles = positions[:, None].double() * 10000.0 ** (-torch.arange(0, d, 2) / d)
    z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.exp(1j * angles)).flatten(-2)


def turn_by_einsum(x, positions):
    d = x.shape[-1]
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    rotation = torch.stack([c, s, -s, c], -1).unflatten(-1, (2, 2))  # (N, d / 2, 2, 2)
    return torch.einsum("bnpi,npij->bnpj", x.unflatten(-1, (-1, 2)), rotation).flatten(-2)


def unshuffle_by_loops(table, order):
    by_patch = [None] * len(table)
    for token, patch in enumerate(order.tolist()):
        by_patch[patch] = table[token]
    return torch.stack(by_patch)


def unshuffle_by_einsum(table, order):
    return torch.einsum("tp,td->pd", torch.eye(len(order))[order], table)


def unshuffle_by_scatter(table, order):
    return torch.zeros_like(table).index_copy(0, order, table)


CASES = [
    Case(
        check_who_sees_order,
        right=lambda: ORDER,
        wrong={
            "attention": (lambda: ORDER | {"attention": "invariant"}, "shuffled likewise"),
            "mean": (
                lambda: ORDER | {"mean over the tokens": "equivariant"},
                "order of its terms",
            ),
            "causal mask": (
                lambda: ORDER | {"attention with a causal mask": "equivariant"},
                "sees only itself",
            ),
            "side by side": (
                lambda: ORDER | {"all tokens side by side, one linear layer": "invariant"},
                "weights of its own",
            ),
            "another word": (lambda: ORDER | {"attention": "yes"}, "got 'yes'"),
            "one answer": (lambda: {"attention": "equivariant"}, "lost its answer"),
            "no answers": (dict, "lost its answer"),
            "a layer renamed": (
                lambda: ORDER | {"my own layer": "neither"},
                "not one of the questions",
            ),
            "a list": (lambda: list(ORDER.values()), "dictionary"),
        },
        stubs=(stub, lambda: ORDER | {"attention": ...}),
    ),
    Case(
        check_shift_matrix,
        also={
            "loops": shift,
            "blocks": shift_by_blocks,
            "einsum": shift_by_einsum,
            "least squares": shift_by_least_squares,
        },
        wrong={
            "transposed": (lambda k, dim: shift(k, dim).T, "tokens are rows"),
            "one angle": (lambda k, dim: shift(k, dim, exponent=0), "angle does pair i turn"),
            "exponent i / dim": (
                lambda k, dim: shift(k, dim, exponent=1),
                "which angle does pair i turn",
            ),
            "one place only": (shift_of_one_place, "may R depend on t"),
            "nothing moves": (lambda k, dim: torch.eye(dim), "what does one pair"),
            "only forwards": (lambda k, dim: shift(abs(k), dim), "undo it"),
            "one block": (lambda k, dim: shift(k, dim)[:2, :2], "expected (8, 8)"),
        },
    ),
    Case(
        check_permutation_test,
        right=permutation_test,
        also={
            "many orders at once": every_order,
            "float64 inside": lambda layer, x: permutation_test(layer, x.double()),
        },
        wrong={
            "not shuffled back": (compared_without_shuffling, "undo the shuffle"),
            "exact": (lambda f, x: permutation_test(f, x, exact=True), "up to rounding"),
            "a ring": (
                lambda f, x: permutation_test(f, x, order=lambda n: torch.arange(n).roll(1)),
                "shift of all tokens round the ring",
            ),
            "reversed": (
                lambda f, x: permutation_test(f, x, order=lambda n: torch.arange(n).flip(0)),
                "reversed order",
            ),
            "the last stays": (always(3, 0, 4, 1, 2, 5), "enough of them"),
            "the first two stay": (always(0, 1, 5, 3, 2, 4), "how many orders"),
            "one random order": (one_random_order, "order"),
            "by shape": (by_shape, "may return N rows"),
            "no word": (lambda f, x: True, "return one of"),
        },
    ),
    Case(
        check_turn,
        also={
            "loops": turn_by_loops,
            "einsum": turn_by_einsum,
            "complex numbers": turn_by_complex_numbers,
        },
        wrong={
            "own positions, but zero": (
                lambda x, p: turn_by_einsum(x, torch.arange(len(p)) * (p != 0).any()),
                "of the given positions",
            ),
            "added": (lambda x, p: x + p[:, None], "keep its length"),
            "a constant turn": (lambda x, p: turn_by_einsum(x, p + 1), "angle zero"),
        },
    ),
    Case(
        check_unshuffle,
        also={
            "loops": unshuffle_by_loops,
            "einsum": unshuffle_by_einsum,
            "scatter": unshuffle_by_scatter,
        },
        wrong={
            "reversed": (lambda table, order: table.flip(0), "belongs to patch 0"),
            "transposed": (lambda table, order: table.T, "expected (7, 3)"),
        },
    ),
]
