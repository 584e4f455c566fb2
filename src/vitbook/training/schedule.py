"""The learning rate of each step, and which parameters decay."""

import math

from torch import nn

from vitbook import require


def warmup_cosine(step: int, total_steps: int, warmup_steps: int) -> float:
    """The fraction of the peak learning rate at one step: up on a line, down on half a cosine.

    Args:
        step: 0 ... total_steps - 1.
        total_steps: Updates of the whole run.
        warmup_steps: Updates until the peak; 0 starts there.

    Returns:
        A number above 0, at most 1.

    Source: Goyal et al. 2017, section 2.2 (warm-up); Loshchilov and Hutter 2017, equation 5.
    """
    require.whole("total_steps", total_steps)
    require.whole("warmup_steps", warmup_steps, at_least=0)
    if not 0 <= require.whole("step", step, at_least=0) < total_steps:
        raise ValueError(f"step must be below total_steps = {total_steps}, got {step}")
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Two groups for AdamW: weight matrices decay; biases, norms, positions, class token do not.

    A parameter decays if its name ends in "weight" and it has at least two axes. Parameters that
    are not trained (``requires_grad`` is False) are in neither group.
    """
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_matrix = name.endswith("weight") and parameter.ndim >= 2
            (decayed if is_matrix else others).append(parameter)
    if not decayed and not others:
        raise ValueError(f"model ({type(model).__name__}) has no parameter that can be trained")
    groups: list[dict] = [{"params": decayed, "weight_decay": weight_decay}]
    groups.append({"params": others, "weight_decay": 0.0})
    return [group for group in groups if group["params"]]
