"""All that is random in a run, as a function of its seed and the step."""

from hashlib import blake2b

import torch
from torch import Tensor


def epoch_order(num_images: int, seed: int, epoch: int) -> Tensor:
    """The order in which one epoch shows the images, (num_images,); a function of its arguments."""
    return torch.randperm(num_images, generator=generator("order", seed, epoch))


def seed_of(purpose: str, *numbers: int) -> int:
    """A seed that has nothing to do with those of the neighbouring steps, below 2 ** 63."""
    digest = blake2b(repr((purpose, *numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(purpose: str, *numbers: int) -> torch.Generator:
    """A generator on the CPU, fresh from such a seed."""
    return torch.Generator().manual_seed(seed_of(purpose, *numbers))
