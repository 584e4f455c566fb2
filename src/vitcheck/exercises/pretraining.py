"""Checks: start from other weights, a probe, what a table says."""

import torch
from torch import nn

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import staged

KERNEL = "patch_embed.proj.weight"
_HEAD = ("head.weight", "head.bias")
_OTHERS = (
    "cls_token",
    "patch_embed.proj.bias",
    "positions.table",
    "encoder.blocks.0.mlp.fc1.weight",
)


def _weights(trial) -> dict:
    """A state dict of a small ViT: 3 channels, 4 classes."""
    D, P, N, K = 6, 2, 4, 4
    return {
        "cls_token": trial.randn(1, 1, D),
        KERNEL: trial.randn(D, 3, P, P),
        "patch_embed.proj.bias": trial.randn(D),
        "positions.table": trial.randn(N + 1, D),
        "encoder.blocks.0.mlp.fc1.weight": trial.randn(2 * D, D),
        "head.weight": trial.randn(K, D),
        "head.bias": trial.randn(K),
    }


def _start(theirs, ours):
    head = {name: ours[name] for name in _HEAD}
    return {**theirs, KERNEL: theirs[KERNEL].sum(1, keepdim=True), **head}


@staged(
    "my_start",
    ok="the kernel summed, the head your own, everything else theirs",
    right=_start,
    in_part={
        KERNEL: {
            "three copies of a grey image went into three channels. What do the three products add "
            "up to?": lambda theirs, ours: theirs[KERNEL].mean(1, keepdim=True),
            "that is one of the three channels; where are the other two?": [
                lambda theirs, ours, i=i: theirs[KERNEL][:, i : i + 1] for i in range(3)
            ],
            "that is the untrained kernel: nothing was taken over": lambda theirs, ours: ours[
                KERNEL
            ],
        },
        **{
            name: {
                "their head knows their classes. Are they yours?": (
                    lambda theirs, ours, name=name: theirs[name]
                )
            }
            for name in _HEAD
        },
        **{
            name: {f"{name} is still the untrained one": lambda theirs, ours, name=name: ours[name]}
            for name in _OTHERS
        },
    },
)
def check_start(trial, my_start):
    """my_start(theirs, ours): two state dicts, of colour and of grey images -> what to load."""
    theirs, ours = _weights(trial), _weights(trial)
    ours[KERNEL] = ours[KERNEL][:, :1].clone()  # one channel
    kept = {name: tensor.clone() for name, tensor in theirs.items()}
    trial.stage("names")
    got = my_start(theirs, ours)
    if not isinstance(got, dict):
        trial.fail(f"a dictionary from name to tensor is asked for, not {type(got).__name__}")
    trial.ask(got.keys() == ours.keys(), "load_state_dict wants each name of `ours`, and no other")
    unchanged = all(torch.equal(theirs[name], kept[name]) for name in kept)
    trial.ask(unchanged and theirs.keys() == kept.keys(), "`theirs` has changed; make a new dict")

    def compare(name, otherwise):
        trial.compare(got, theirs, ours, part=name, otherwise=otherwise, name=name)

    trial.stage("the patch kernel")
    compare(KERNEL, "let a grey image go through both kernels and compare")
    trial.stage("the head")
    for name in _HEAD:
        compare(name, "whose head is that?")
    trial.stage("everything else")
    for name in _OTHERS:
        compare(name, f"{name} should be theirs, as it is")


class _Small(nn.Module):
    """A backbone with a norm, a table and a head."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(5, 8)
        self.table = nn.Parameter(torch.randn(3, 8))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)


@staged("my_probe", ok="only the head is trained, all of it, and nothing has moved")
def check_probe(trial, my_probe):
    """my_probe(model): freezes all but model.head -> how many numbers are trained."""
    model = _Small()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    trial.stage("what is trained")
    count = trial.number(my_probe(model), name="the count")
    after = dict(model.named_parameters())
    trial.ask(after.keys() == before.keys(), "the model has other parameters than before")
    trained = {name for name, p in after.items() if p.requires_grad}
    trial.ask(trained != set(), "nothing is trained at all. Who learns the new classes?")
    trial.ask("norm.weight" not in trained and "norm.bias" not in trained, "a norm learns, too")
    trial.ask("table" not in trained, "is the table of positions a parameter?")
    trial.ask("proj.weight" not in trained, "the backbone would still move")
    trial.ask("proj.bias" not in trained, "a bias of the backbone would still move")
    trial.ask("head.weight" in trained, "the head is frozen, too")
    trial.ask("head.bias" in trained, "has the head one parameter or two?")
    moved = [name for name, p in after.items() if not torch.equal(p.detach(), before[name])]
    trial.ask(not moved, f"{', '.join(moved)} has another value now; freezing changes none")

    trial.stage("the count")
    total = sum(p.numel() for p in model.parameters())
    trial.match(
        count,
        8 * 4 + 4,
        {
            "those are the weights of the head; what else has it?": 8 * 4,
            "that is the whole model": total,
            "those are the frozen ones": total - 36,
            "that counts tensors, not numbers": [2, 3, 7],
        },
        otherwise="how many rows and columns has the head's weight, and how long is its bias?",
        tolerance=0,
    )


_STATEMENTS = {
    "shifting helps after 600 steps": (YES, "on which side of zero does its interval lie?"),
    "shifting helps, however long one trains": (NO, "what does the row of 100 steps say?"),
    "dropout changes nothing": (
        OPEN,
        "the interval holds zero. Does it hold nothing else?",
    ),
    "stem and CNN are equally good": (
        OPEN,
        "both were compared with the plain model. Were they compared with each other?",
    ),
    "with more images dropout would help": (OPEN, "how many sizes of the set were tried?"),
}


check_reading = reading("what the intervals show, and what they leave open", _STATEMENTS)
