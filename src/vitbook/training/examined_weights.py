"""Trials of :func:`~vitbook.training.examine` that ask which weights can be trained."""

import math

import torch
from torch import Tensor, nn

from vitbook.training.examined_learning import copied, learn
from vitbook.training.findings import Finding

RATE = 1e-3


def require_free(model: nn.Module) -> None:
    """Refuse a model whose weights are not there yet, or cannot be trained as they are."""
    if isinstance(model, torch.jit.ScriptModule):
        raise ValueError("model is TorchScript, which cannot be copied and trained: give the model")
    for name, weight in model.named_parameters():
        if isinstance(weight, nn.parameter.UninitializedParameter):
            raise ValueError(
                f"model has no {name} yet: call it once with some images, then examine"
            )


def optimized(model: nn.Module, optimizer: torch.optim.Optimizer) -> Finding:
    """Does the optimizer hold the parameters of this model, all that are to be trained?"""
    trial = "the optimizer has all weights"
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    left = [name for name, p in own.items() if id(p) not in held]
    if left and len(left) == len(own):
        advice = "It was made for another model, or before this one: make it afterwards."
        return Finding(trial, "wrong", "It holds none of the model's parameters.", advice)
    if left:
        seen = f"{len(left)} of {len(own)} parameters are not in it: {_some(left)}."
        return Finding(trial, "wrong", seen, "Give it model.parameters().")
    return Finding(trial, "fine", f"It holds all {len(own)} parameters.")


def moves(model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Finding, bool]:
    """Does every weight that is to be trained change within three updates? Can it learn at all?"""
    trial = "all weights move"
    learner = copied(model).train()
    trained = {name: p for name, p in learner.named_parameters() if p.requires_grad}
    if not trained:
        advice = "Unfreeze what is to be trained: parameter.requires_grad_(True)."
        return Finding(trial, "wrong", "No parameter has requires_grad.", advice), False
    before = {name: p.detach().clone() for name, p in trained.items()}
    try:
        losses = learn(learner, [(images, labels)] * 3, RATE)
    except RuntimeError as error:
        seen = f"The backward pass fails: {' '.join(str(error).split())[:200]}"
        return Finding(trial, "wrong", seen, "Look for detach(), no_grad, in-place steps."), False
    if not all(map(math.isfinite, losses)):
        return Finding(
            trial, "wrong", "A loss is nan or inf.", "Look for a root or log of 0."
        ), True
    still = [
        name
        for name, p in trained.items()  # where a step is more than rounding in bfloat16
        if torch.equal(before[name], p) and not torch.equal(before[name], before[name] + RATE)
    ]
    if still:
        seen = f"{len(still)} of {len(trained)} parameters stay as they are: {_some(still)}."
        advice = "What they make is not used, or cut off (detach)."
        return Finding(trial, "wrong", seen, advice), True
    if hidden := _unregistered(model):
        seen = f"The model does not know the layers in {_some(hidden)}, nor does an optimizer."
        return Finding(
            trial, "wrong", seen, "Use nn.ModuleList, nn.ModuleDict, nn.Parameter."
        ), True
    frozen = [name for name, p in learner.named_parameters() if not p.requires_grad]
    if frozen:
        seen = f"{len(frozen)} parameters are frozen: {_some(frozen)}."
        advice = "Fine where only a new head is to be trained."
        return Finding(trial, "look", seen, advice), True
    return Finding(trial, "fine", f"All {len(trained)} do."), True


def _unregistered(model: nn.Module) -> list[str]:
    """Attributes with weights to be trained that are not among the model's parameters."""
    known = {id(p) for p in model.parameters()}

    def weights(value: object) -> list[Tensor]:
        if isinstance(value, nn.Module):
            return list(value.parameters())
        if isinstance(value, dict | list | tuple):
            inside = value.values() if isinstance(value, dict) else value
            return [weight for one in inside for weight in weights(one)]
        return [value] if isinstance(value, Tensor) and value.is_leaf else []

    return [
        f"{type(module).__name__}.{attribute}"
        for module in model.modules()
        for attribute, value in vars(module).items()
        if any(weight.requires_grad and id(weight) not in known for weight in weights(value))
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
