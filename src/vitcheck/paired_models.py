"""Experiments that tell a sick model from its healthy twin: tried on both, here.

An answer plans experiments and never meets a patient. Which patients there are, and what their
logits are, is known only to whoever holds the answer against its claims.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vitbook.book.faults import ClinicViT, with_fault
from vitcheck.values import in_words, wrong_tensor

SHOWN = "every experiment shows what it should"
STAYS, MOVES = 1e-4, 1e-2  # most and least change of a logit that counts as none and as one
HEADS = 2  # of all models here

Condition = tuple[dict[str, Tensor], Tensor]  # weights and images


@dataclass(frozen=True)
class Claim:
    """One experiment as a case asks for it.

    Args:
        fault: A name of ``vitbook.book.faults.LAYERS``.
        block: The block that is sick, from 1 on; "all": the whole model.
        differ: What the two conditions may differ in, "weights" or "images".
        stays: Whose logits are the same in both, "patient" or "twin".
    """

    fault: str
    block: str
    differ: str
    stays: str


def judged(answer: Any, weights: dict[str, Tensor], images: Tensor, claims: str) -> str:
    """``SHOWN``, or a sentence about the first claim that the answer does not show.

    Args:
        answer: Name of a fault -> two conditions, each a pair of weights and images.
        weights: What the answer was given: the patient's state dict,
        images: and some images (B, C, H, W).
        claims: "fault, block, differ, stays"; several with " / " between them.
    """
    for claim in (Claim(*text.split(", ")) for text in claims.split(" / ")):
        words = _objection(answer, claim, weights, images)
        if words is not None:
            return f"{claim.fault}: {words}"
    return SHOWN


def _objection(answer: Any, claim: Claim, weights: dict[str, Tensor], images: Tensor) -> str | None:
    if not isinstance(answer, dict) or claim.fault not in answer:
        return f"there is no experiment under this name, but {in_words(answer)}"
    pair = answer[claim.fault]
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return f"an experiment has two conditions, got {in_words(pair)}"
    for condition in pair:
        if words := _no_condition(condition, weights, images):
            return words
    first, second = (_double(*condition) for condition in pair)
    if claim.differ == "weights" and not torch.equal(first[1], second[1]):
        return "only the weights may differ; your images do, too"
    if claim.differ == "images" and any(
        not torch.equal(value, second[0][name]) for name, value in first[0].items()
    ):
        return "only the images may differ; your weights do, too"
    other, sizes = "twin" if claim.stays == "patient" else "patient", _sizes(weights, images)
    models = {"twin": _model(sizes), "patient": _model(sizes, claim.fault, claim.block)}
    change = {who: _change(model, first, second) for who, model in models.items()}
    stays, moves = change[claim.stays], change[other]
    if not stays <= STAYS:
        return f"the {claim.stays}'s logits should stay the same, and change by {stays:.4f}"
    if not MOVES <= moves < torch.inf:
        return f"the {other}'s logits should change by {MOVES} or more, and change by {moves:.4f}"
    return None


def _no_condition(got: Any, weights: dict[str, Tensor], images: Tensor) -> str | None:
    """What to say of a condition that no model can be put in, or None."""
    if not isinstance(got, list | tuple) or len(got) != 2 or not isinstance(got[0], dict):
        return f"a condition is a pair of weights and images, got {in_words(got)}"
    if set(got[0]) != set(weights):
        return "the weights of a condition should have the names of those that you were given"
    wanted = {**weights, "the images": images}
    for name, value in [*got[0].items(), ("the images", got[1])]:
        shape = tuple(wanted[name].shape)
        if words := wrong_tensor(value, shape, "floating-point numbers", name):
            return words
    return None


def _double(weights: dict[str, Tensor], images: Tensor) -> Condition:
    return {name: value.double() for name, value in weights.items()}, images.double()


@torch.no_grad()
def _change(model: ClinicViT, *conditions: Condition) -> float:
    """The largest change of a logit between two conditions; infinite where one has no logits."""
    logits = []
    for weights, images in conditions:
        model.load_state_dict(weights)
        logits.append(model(images))
    return (logits[0] - logits[1]).abs().max().nan_to_num(torch.inf, torch.inf).item()


def _sizes(weights: dict[str, Tensor], images: Tensor) -> dict[str, Any]:
    proj, hidden = weights["patch_embed.proj.weight"], weights["encoder.blocks.0.mlp.fc1.bias"]
    D, C, P, _ = proj.shape
    return {
        "image_size": (images.shape[2], images.shape[3]),
        "patch_size": P,
        "in_channels": C,
        "num_classes": len(weights["head.bias"]),
        "embed_dim": D,
        "depth": sum(name.endswith("mlp.fc1.bias") for name in weights),
        "num_heads": HEADS,
        "mlp_ratio": len(hidden) / D,
    }


def _model(sizes: dict[str, Any], fault: str = "", block: str = "all") -> ClinicViT:
    """A model of these sizes, healthy or sick, its weights still to be loaded. Made anew each time:
    one that threads share would hold the weights of whoever loaded last."""
    model = ClinicViT(**sizes).double().eval()
    if fault:
        with_fault(model if block == "all" else model.encoder.blocks[int(block) - 1], fault)
    return model
