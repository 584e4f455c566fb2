"""Models with nothing at zero or one, or a forgotten bias or norm would go unnoticed."""

from torch import nn


def all_random(module: nn.Module) -> nn.Module:
    """The same module with random parameters, and with random running means and variances."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    for name, buffer in module.named_buffers():
        if "running" in name:
            nn.init.uniform_(buffer, 0.5, 1.5)
    return module
