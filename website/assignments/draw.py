"""What chance decides, from a secret: the variant of an assignment and every input.

The same secret gives the same draw on every machine. Who knows what was handed out cannot work out
what was not: each thing that is drawn has a key of its own, made with HMAC from the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import random
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitcheck.values import Layer

PUBLIC = b"the public variant, whose secret everybody knows"
LEAST = 32  # characters of a key file
LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another


class Secret:
    """The instructor's secret, for one assignment.

    Args:
        key: the bytes of the key file, or ``PUBLIC``.
        assignment: its name; each assignment is drawn for itself.
    """

    def __init__(self, key: bytes, assignment: str):
        self.is_public = key == PUBLIC
        self._key = hmac.new(key, assignment.encode(), hashlib.sha256).digest()

    @property
    def variant(self) -> str:
        """What the variant is called in public: four letters or digits that tell nothing."""
        if self.is_public:
            return "public"
        number = int.from_bytes(self._digest("name of the variant"))
        return "".join(LETTERS[number // len(LETTERS) ** i % len(LETTERS)] for i in range(4))

    def draw(self, what: str) -> Draw:
        """The chance that belongs to one thing, such as "variant" or "q1-3"."""
        return Draw(self._digest(what))

    def _digest(self, what: str) -> bytes:
        return hmac.new(self._key, what.encode(), hashlib.sha256).digest()


class Draw:
    """Numbers, choices, tensors and layers by lot; the same ones for the same seed."""

    def __init__(self, seed: bytes):
        self._random = random.Random(seed)
        self._generator = torch.Generator().manual_seed(int.from_bytes(seed[:8]) >> 1)

    def choice(self, options: Sequence) -> Any:
        """One of them."""
        return self._random.choice(list(options))

    def integer(self, low: int, high: int) -> int:
        """A whole number, low <= number <= high."""
        return self._random.randint(low, high)

    def shuffled(self, items: Sequence) -> list:
        """The same items in another order."""
        return self._random.sample(list(items), len(items))

    def randn(self, *shape: int) -> Tensor:
        """Normal numbers, rounded to three decimals so that they can be read."""
        return torch.randn(*shape, generator=self._generator).mul(1000).round().div(1000)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers, low <= number <= high."""
        return torch.randint(low, high + 1, shape, generator=self._generator)

    def mask(self, *shape: int, share: float = 0.6) -> Tensor:
        """Boolean; about that share is True."""
        return torch.rand(*shape, generator=self._generator) < share

    def weights(self, module: torch.nn.Module) -> dict[str, Tensor]:
        """Weights for all parameters and buffers of a layer, biases and scales too."""
        return {name: self._like(value) for name, value in module.state_dict().items()}

    def _like(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            return value.clone()
        width = value.shape[1:].numel() if value.ndim > 1 else 2
        return self.randn(*value.shape) / width**0.5

    def layer(self, path: str, **kwargs: Any) -> Layer:
        """A layer of vitbook or torch.nn with weights by lot, to be given to a function."""
        module, _, name = path.rpartition(".")
        built = getattr(importlib.import_module(module), name)(**kwargs)
        return Layer(path, kwargs, self.weights(built))


def read_key(path: Path) -> bytes:
    """The secret in a key file.

    Raises:
        ValueError: there is no such file, or it could be guessed.
    """
    try:
        text = path.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"KEY_FILE={path} cannot be read: {error.strerror}") from None
    if len(text) < LEAST or len(set(text)) < 10:
        raise ValueError(
            f"{path} holds {len(text)} characters: a secret that could be guessed. "
            f"Make one with: python -m website.assignments --new-key {path.with_suffix('.key')}"
        )
    return text


def write_key(path: Path) -> None:
    """Write a new secret that only its owner can read.

    Raises:
        ValueError: the file is there already, or its folder is not.
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise ValueError(f"{path} is there already; a key is never overwritten") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None
    path.write_text(secrets.token_hex(32) + "\n")
