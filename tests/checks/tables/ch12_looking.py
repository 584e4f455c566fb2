"""Chapter 12: looking at attention."""

import torch
from case import Case

from vitcheck.ch12_looking import check_reach, check_readings, check_sink, check_together


def reach(weights, columns, P, *, norm=2, side=None, swap=False):
    N = len(weights)
    divisor = N // columns if swap else columns
    place = torch.stack([torch.arange(N) // divisor, torch.arange(N) % divisor], dim=1).double()
    between = torch.cdist(place, place, p=norm) * (P if side is None else side)
    return (weights * between).sum(dim=1)


def reach_by_loops(weights, columns, P):
    result = []
    for q, row in enumerate(weights.tolist()):
        total = 0.0
        for k, weight in enumerate(row):
            down, right = q // columns - k // columns, q % columns - k % columns
            total += weight * P * (down**2 + right**2) ** 0.5
        result.append(total)
    return torch.tensor(result)


def without_root(weights, columns, P):
    N = len(weights)
    place = torch.stack([torch.arange(N) // columns, torch.arange(N) % columns], dim=1).float() * P
    return (weights * (place[:, None] - place).square().sum(dim=-1)).sum(dim=1)


def sink(weights):
    shares = weights.mean(dim=(0, 1))
    return int(shares.argmax()), float(shares.max())


def sink_by_tensors(weights):
    got = weights.sum(dim=0).sum(dim=0) / (weights.shape[0] * weights.shape[1])
    return got.argmax(), got.max()


def changed(images, patches, P, paint=None):
    per_row = images.shape[-1] // P
    out = images.clone()
    for patch in patches:
        top, left = patch // per_row * P, patch % per_row * P
        out[:, :, top : top + P, left : left + P] = (
            images.mean(dim=(1, 2, 3), keepdim=True) if paint is None else paint
        )
    return out


def together(model, images, first, second, P, *, logits=False, best=False, paint=None):
    def lead(x):
        with torch.no_grad():
            out = model(x)
        return out if logits else out.log_softmax(dim=1)

    before = lead(images)
    answer = before.argmax(dim=1, keepdim=True)

    def drop(*patches):
        after = lead(changed(images, patches, P, paint))
        kept = after.amax(dim=1) if best else after.gather(1, answer)[:, 0]
        return before.gather(1, answer)[:, 0] - kept

    return drop(first, second) - drop(first) - drop(second)


def joint_only(model, images, first, second, P):
    with torch.no_grad():
        before, after = (
            model(x).log_softmax(dim=1) for x in (images, changed(images, (first, second), P))
        )
    answer = before.argmax(dim=1, keepdim=True)
    return (before - after).gather(1, answer)[:, 0]


def one_missing(model, images, first, second, P):
    with torch.no_grad():
        one, both = (
            model(changed(images, p, P)).log_softmax(dim=1) for p in ((first,), (first, second))
        )
        answer = model(images).argmax(dim=1, keepdim=True)
    return (one - both).gather(1, answer)[:, 0]


FOLLOWS = {
    "the map does better than chance": "yes",
    "the map agrees with it as well as a second occlusion": "cannot say",
    "the map ranks the patches better than the ink does": "no",
    "the answer would change if its darkest patch were hidden": "cannot say",
}
FIRST, SECOND, THIRD, FOURTH = FOLLOWS

CASES = [
    Case(
        check_reach,
        right=reach,
        also={"loops": reach_by_loops},
        wrong={
            "in patches": (lambda w, c, P: reach(w, c, P, side=1), "in patches"),
            "rows for columns": (lambda w, c, P: reach(w, c, P, swap=True), "how many columns"),
            "city blocks": (lambda w, c, P: reach(w, c, P, norm=1), "the crow flies"),
            "larger side": (
                lambda w, c, P: reach(w, c, P, norm=float("inf")),
                "larger of the two sides",
            ),
            "no root": (without_root, "root missing"),
            "keys for queries": (lambda w, c, P: reach(w.T, c, P), "who looks"),
            "one number": (lambda w, c, P: reach(w, c, P).mean(), "expected (6,)"),
        },
    ),
    Case(
        check_sink,
        right=sink,
        also={"tensors": sink_by_tensors},
        wrong={
            "largest weight": (
                lambda w: (int(w.flatten().argmax() % w.shape[-1]), float(w.max())),
                "largest single weight",
            ),
            "a sum": (
                lambda w: (sink(w)[0], float(w.sum(dim=(0, 1)).max())),
                "that is a sum",
            ),
            "over keys": (lambda w: (sink(w)[0], float(w.mean(dim=(0, 2)).max())), "which axis"),
            "share only": (lambda w: sink(w)[1], "should be a pair"),
        },
    ),
    Case(
        check_together,
        right=together,
        wrong={
            "both only": (joint_only, "the two single drops say"),
            "sign": (lambda *a: -together(*a), "other way round"),
            "logits": (lambda *a: together(*a, logits=True), "or the logit"),
            "best after": (lambda *a: together(*a, best=True), "which answer"),
            "black": (lambda *a: together(*a, paint=0.0), "is yours black"),
            "one missing": (one_missing, "is missing"),
        },
    ),
    Case(
        check_readings,
        right=lambda: dict(FOLLOWS),
        wrong={
            "no interval": (lambda: FOLLOWS | {FIRST: "no"}, "lowest end"),
            "overlap taken for equality": (lambda: FOLLOWS | {SECOND: "yes"}, "image by image"),
            "overlap taken for a difference": (lambda: FOLLOWS | {SECOND: "no"}, "image by image"),
            "no control": (lambda: FOLLOWS | {THIRD: "cannot say"}, "never saw the model"),
            "too much": (lambda: FOLLOWS | {FOURTH: "yes"}, "about one of them"),
            "refuted too much": (lambda: FOLLOWS | {FOURTH: "no"}, "about one of them"),
            "truth values": (lambda: FOLLOWS | {FIRST: True}, '"yes", "no" or "cannot say"'),
            "no answers": (dict, "lost its answer"),
        },
    ),
]
