"""Checks of chapter 14: start from other weights, a probe, distillation, what a table says."""

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.reading import NO, OPEN, YES, judge
from vitcheck.trial import staged

KERNEL = "patch_embed.proj.weight"


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


@staged("my_start", ok="the kernel summed, the head your own, everything else theirs")
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

    trial.stage("the patch kernel")
    kernel = theirs[KERNEL]
    trial.match(
        got[KERNEL],
        kernel.sum(1, keepdim=True),
        {
            "three copies of a grey image went into three channels. What do the three products add "
            "up to?": kernel.mean(1, keepdim=True),
            "that is one of the three channels; where are the other two?": [
                kernel[:, i : i + 1] for i in range(3)
            ],
            "that is the untrained kernel: nothing was taken over": ours[KERNEL],
        },
        otherwise="let a grey image go through both kernels and compare",
        name=KERNEL,
    )

    trial.stage("the head")
    for name in ("head.weight", "head.bias"):
        trial.match(
            got[name],
            ours[name],
            {"their head knows their classes. Are they yours?": theirs[name]},
            otherwise="whose head is that?",
            name=name,
        )

    trial.stage("everything else")
    for name in ours.keys() - {KERNEL, "head.weight", "head.bias"}:
        trial.match(
            got[name],
            theirs[name],
            {f"{name} is still the untrained one": ours[name]},
            otherwise=f"{name} should be theirs, as it is",
            name=name,
        )


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


@staged("my_distillation", ok="labels and teacher, mixed, at one temperature, size kept")
def check_distillation(trial, my_distillation):
    """my_distillation(student, teacher, labels, share, temperature): logits (B, K) -> the loss."""
    B, K, T, share = 5, 4, 3.0, 0.7
    student, teacher = 2 * trial.randn(B, K), 2 * trial.randn(B, K)
    labels = torch.randint(K, (B,), generator=trial.generator)
    hard = F.cross_entropy(student, labels)

    def soft(said, told):
        """KL divergence, mean over the images: what `told` expects of `said`."""
        return (told.softmax(-1) * (told.log_softmax(-1) - said.log_softmax(-1))).sum(-1).mean()

    def loss(share, temperature):
        return my_distillation(student, teacher, labels, share, temperature)

    trial.stage("labels only: share 0")
    trial.match(
        loss(0.0, T),
        hard.item(),
        {
            "the labels are compared with the student's own answers; do they have a temperature?": (
                F.cross_entropy(student / T, labels)
            ),
            "share is the teacher's part": [T**2 * soft(student / T, teacher / T)],
        },
        otherwise="without a teacher it is the usual cross-entropy",
        tolerance=1e-4,
        name="the loss",
    )

    trial.stage("teacher only: share 1, temperature 1")
    plain = soft(student, teacher)
    entropy = -(teacher.softmax(-1) * teacher.log_softmax(-1)).sum(-1).mean()
    trial.match(
        loss(1.0, 1.0),
        plain.item(),
        {
            "whose answers are expected, and who is asked? The two are swapped": soft(
                teacher, student
            ),
            "averaged over the classes, too? A distribution is summed over them": plain / K,
            "that is a sum over the images; a loss is their mean": B * plain,
            "a student who repeats the teacher should pay nothing: subtract the teacher's own "
            "entropy": plain + entropy,
        },
        otherwise="the KL divergence between two softmaxes, summed over the classes",
        tolerance=1e-4,
        name="the loss",
    )

    trial.stage("temperature")
    part = soft(student / T, teacher / T)
    trial.match(
        loss(1.0, T),
        T**2 * part.item(),
        {
            "soft answers have small gradients. What gives them back their size?": part,
            "multiplied by T once; how often does 1 / T enter the gradient?": T * part,
            "only one of the two has been softened": [
                T**2 * soft(student, teacher / T),
                T**2 * soft(student / T, teacher),
                soft(student, teacher / T),
                soft(student / T, teacher),
            ],
            "temperature changes nothing": plain,
            "it divides; did you multiply?": [soft(student * T, teacher * T) * f for f in (1, 9)],
        },
        otherwise="divide both logits by T before the softmax",
        tolerance=1e-4,
        name="the loss",
    )

    trial.stage("the mix")
    trial.match(
        loss(share, T),
        ((1 - share) * hard + share * T**2 * part).item(),
        {
            "the two shares should sum to one": hard + share * T**2 * part,
            "the factor T squared belongs to the teacher's part only": T**2
            * ((1 - share) * hard + share * part),
        },
        otherwise="a share of one, the rest of the other",
        tolerance=1e-4,
        name="the loss",
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


@staged("my_reading", ok="what the intervals show, and what they leave open")
def check_reading(trial, my_reading):
    """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_reading(), _STATEMENTS)
