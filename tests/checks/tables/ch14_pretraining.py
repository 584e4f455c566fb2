"""Chapter 14: pretraining and small data."""

import torch
import torch.nn.functional as F
from case import Case, reads

from vitcheck.ch14_pretraining import check_distillation, check_probe, check_reading, check_start

KERNEL = "patch_embed.proj.weight"


def start(theirs, ours, kernel=None, **changed):
    head = {name: ours[name] for name in ("head.weight", "head.bias")}
    kernel = theirs[KERNEL].sum(dim=1, keepdim=True) if kernel is None else kernel
    return {**theirs, KERNEL: kernel, **head, **changed}


def start_by_loops(theirs, ours):
    new = {}
    for name, tensor in theirs.items():
        if name.startswith("head."):
            new[name] = ours[name]
        elif name == KERNEL:
            new[name] = (tensor[:, 0] + tensor[:, 1] + tensor[:, 2])[:, None]
        else:
            new[name] = tensor
    return new


def start_by_einsum(theirs, ours):
    return start(theirs, ours, torch.einsum("dcpq->dpq", theirs[KERNEL])[:, None])


def spoils(theirs, ours):
    right = start(theirs, ours)
    theirs["head.weight"] += 1
    return right


def probe(model, count=None):
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    return sum(p.numel() for p in model.head.parameters()) if count is None else count


def probe_by_names(model):
    trained = 0
    for name, p in model.named_parameters():
        p.requires_grad = name.startswith("head.")
        trained += p.numel() if p.requires_grad else 0
    return trained


def but(name, trained):
    """A probe that also trains (or does not train) one more parameter."""

    def freeze(model):
        count = probe(model)
        dict(model.named_parameters())[name].requires_grad_(trained)
        return count

    return freeze


def moves(model):
    with torch.no_grad():
        model.head.bias.zero_()
    return probe(model)


def distil(student, teacher, labels, share, T, *, both=True, square=2, swap=False, by="batchmean"):
    told, said = (teacher / T).log_softmax(-1), (student / (T if both else 1)).log_softmax(-1)
    if swap:
        told, said = said, told
    soft = F.kl_div(said, told, log_target=True, reduction=by)
    return (1 - share) * F.cross_entropy(student, labels) + share * T**square * soft


def distil_by_loops(student, teacher, labels, share, T):
    total = 0.0
    for s, t, label in zip(student, teacher, labels, strict=True):
        p, q = (t / T).softmax(0), (s / T).softmax(0)
        soft = sum(p[k] * (p[k].log() - q[k].log()) for k in range(len(s)))
        total = total - (1 - share) * s.softmax(0)[label].log() + share * T * T * soft
    return total / len(labels)


def distil_by_einsum(student, teacher, labels, share, T):
    told = (teacher / T).softmax(-1)
    gap = told.log() - (student / T).log_softmax(-1)
    hard = F.nll_loss(student.log_softmax(-1), labels)
    return (1 - share) * hard + share * T**2 * torch.einsum("bk,bk->", told, gap) / len(labels)


def cross_entropy_with_the_teacher(student, teacher, labels, share, T):
    soft = F.cross_entropy(student / T, (teacher / T).softmax(-1))
    return (1 - share) * F.cross_entropy(student, labels) + share * T**2 * soft


def with_warm_labels(student, teacher, labels, share, T):
    right = distil(student, teacher, labels, share, T)
    hard = F.cross_entropy(student / T, labels) - F.cross_entropy(student, labels)
    return right + (1 - share) * hard


def a_sum(student, teacher, labels, share, T):
    return distil(student, teacher, labels, share, T) + share * (
        distil(student, teacher, labels, 1.0, T, by="sum")
        - distil(student, teacher, labels, 1.0, T)
    )


ANSWERS = {
    "shifting helps after 600 steps": "yes",
    "shifting helps, however long one trains": "no",
    "dropout changes nothing": "cannot say",
    "stem and CNN are equally good": "cannot say",
    "with more images dropout would help": "cannot say",
}


CASES = [
    Case(
        check_start,
        right=start,
        also={"loops": start_by_loops, "einsum": start_by_einsum},
        wrong={
            "mean": (
                lambda t, o: start(t, o, t[KERNEL].mean(1, keepdim=True)),
                "What do the three products add",
            ),
            "first channel": (lambda t, o: start(t, o, t[KERNEL][:, :1]), "one of the three"),
            "own kernel": (lambda t, o: start(t, o, o[KERNEL]), "untrained kernel"),
            "three channels": (lambda t, o: start(t, o, t[KERNEL]), "has the shape"),
            "their head": (
                lambda t, o: start(t, o, **{"head.weight": t["head.weight"]}),
                "Are they yours",
            ),
            "their bias": (
                lambda t, o: start(t, o, **{"head.bias": t["head.bias"]}),
                "Are they yours",
            ),
            "nothing": (
                lambda t, o: {**o, KERNEL: t[KERNEL].sum(1, keepdim=True)},
                "is still the untrained one",
            ),
            "no head": (
                lambda t, o: {k: v for k, v in start(t, o).items() if "head" not in k},
                "each name of `ours`",
            ),
            "a list": (lambda t, o: list(t), "a dictionary from name"),
            "in place": (spoils, "make a new dict"),
        },
    ),
    Case(
        check_probe,
        right=probe,
        also={"names": probe_by_names},
        wrong={
            "all": (lambda m: sum(p.numel() for p in m.parameters()), "a norm learns"),
            "frozen": (lambda m: [m.requires_grad_(False), 36][1], "nothing is trained"),
            "norm": (but("norm.bias", True), "a norm learns"),
            "table": (but("table", True), "table of positions"),
            "backbone": (but("proj.weight", True), "backbone would still move"),
            "bias of it": (but("proj.bias", True), "a bias of the backbone"),
            "no bias": (but("head.bias", False), "one parameter or two"),
            "no weight": (but("head.weight", False), "the head is frozen"),
            "moved": (moves, "has another value now"),
            "weights only": (lambda m: probe(m, 32), "what else has it"),
            "whole": (lambda m: probe(m, 124), "the whole model"),
            "the others": (lambda m: probe(m, 88), "the frozen ones"),
            "tensors": (lambda m: probe(m, 2), "tensors, not numbers"),
        },
    ),
    Case(
        check_distillation,
        right=distil,
        also={"loops": distil_by_loops, "einsum": distil_by_einsum},
        wrong={
            "no square": (lambda *a: distil(*a, square=0), "gives them back"),
            "T once": (lambda *a: distil(*a, square=1), "multiplied by T once"),
            "one softened": (lambda *a: distil(*a, both=False), "only one of the two"),
            "swapped": (lambda *a: distil(*a, swap=True), "The two are swapped"),
            "mean of classes": (lambda *a: distil(*a, by="mean"), "over the classes"),
            "a sum": (a_sum, "a sum over the images"),
            "no entropy": (cross_entropy_with_the_teacher, "should pay nothing"),
            "warm labels": (with_warm_labels, "do they have a temperature"),
            "share turned": (
                lambda s, t, y, a, T: distil(s, t, y, 1 - a, T),
                "share is the teacher's part",
            ),
            "multiplied": (
                lambda s, t, y, a, T: (
                    distil(s, t, y, 0, T) * (1 - a)
                    + a * T**2 * distil(s * T * T, t * T * T, y, 1.0, T, square=0)
                ),
                "did you multiply",
            ),
            "both whole": (
                lambda s, t, y, a, T: (
                    distil(s, t, y, a, T) + (a * F.cross_entropy(s, y) if a < 1 else 0)
                ),
                "sum to one",
            ),
            "square on both": (
                lambda s, t, y, a, T: (
                    distil(s, t, y, a, T)
                    + ((T**2 - 1) * (1 - a) * F.cross_entropy(s, y) if a else 0)
                ),
                "the teacher's part only",
            ),
        },
    ),
    Case(
        check_reading,
        right=reads(ANSWERS),
        wrong={
            "blind": (reads(ANSWERS, _0="cannot say"), "on which side of zero"),
            "always": (reads(ANSWERS, _1="yes"), "the row of 100 steps"),
            "nothing": (reads(ANSWERS, _2="yes"), "Does it hold nothing else"),
            "overlap": (reads(ANSWERS, _3="yes"), "compared with each other"),
            "beyond": (reads(ANSWERS, _4="yes"), "how many sizes"),
            "another word": (reads(ANSWERS, _0="maybe"), 'answer "yes"'),
        },
    ),
]
