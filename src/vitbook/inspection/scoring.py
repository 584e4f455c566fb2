"""Score attention maps where it is known what attention should find."""

import torch
from torch import Tensor

from vitbook.inspection.maps import require_maps, require_region

ROUNDING = 1e-6  # relative, of weights that are equal; a processor may add two columns differently


def attention_hits(maps: Tensor, sources: Tensor, targets: Tensor, num_prefix: int = 1) -> Tensor:
    """Score maps where the right answer is known: does the source's attention find the target?

    The rows of an image's source patches are averaged. The source patches themselves and the
    prefix tokens are left out. It is a hit (1) when the strongest patch that remains is one of the
    target patches, else a miss (0). Where several patches share the maximum, up to rounding, the
    score is the share of them that are targets: attention that is uniform scores what guessing
    scores.

    Args:
        maps: Attention weights (L, B, h, N, N).
        sources: Boolean (B, N_patches), True for the patches whose attention is judged.
        targets: Boolean (B, N_patches), True for the patches that it should find.
        num_prefix: How many tokens stand before the patches.

    Returns:
        Scores (L, B, h) from 0 to 1. Their mean over B is the hit rate of each layer and head.

    Raises:
        TypeError: ``maps`` is no floating-point tensor, ``sources`` or ``targets`` not boolean.
        ValueError: The shapes do not fit, an image has no source or no target, or a patch is both.
    """
    require_maps(maps)
    for name, patches in (("sources", sources), ("targets", targets)):
        require_region(name, patches, maps, num_prefix)
        if not bool(patches.any(dim=-1).all()):
            raise ValueError(f"{name} must name at least one patch in every image")
    if bool((sources & targets).any()):
        raise ValueError("sources and targets share a patch; a patch can be only one of the two")
    weights = maps[..., num_prefix:, num_prefix:]  # (L, B, h, N_patches, N_patches)
    share = sources.to(maps.dtype) / sources.sum(dim=-1, keepdim=True)  # (B, N_patches)
    looks = torch.einsum("lbhqk,bq->lbhk", weights, share)
    looks = looks.masked_fill(sources[:, None], -1.0)
    strongest = looks >= (1 - ROUNDING) * looks.amax(dim=-1, keepdim=True)  # (L, B, h, N_patches)
    found = (strongest & targets[:, None]).sum(dim=-1)
    return found.to(maps.dtype) / strongest.sum(dim=-1)  # (L, B, h)
