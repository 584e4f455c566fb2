"""What "turned or added" reads: a query, a key and two projections."""

import math

from .pack import packed

PLACES, D = 32, 16


def data() -> dict:
    """q and k, and ``mix`` = W_Q W_K^T; drawn as the page draws them."""
    import torch

    q, k = torch.randn(2, D, generator=torch.Generator().manual_seed(4))
    generator = torch.Generator().manual_seed(5)
    w_q, w_k = torch.randn(2, D, D, generator=generator) / math.sqrt(D)
    arrays = {"q": q, "k": k, "mix": w_q @ w_k.T}
    return {
        "places": PLACES,
        "arrays": {name: packed(array.numpy(), "f32") for name, array in arrays.items()},
    }
