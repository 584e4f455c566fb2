"""A small convolutional network: what a ViT is held against, and a teacher."""

from collections.abc import Sequence

from torch import Tensor, nn

from vitbook import require


class SmallCNN(nn.Module):
    """Convolutions of 3 x 3 pixels, the grid halved between them, then the mean over all places.

    It takes images of any size that can be halved often enough: no weight belongs to a place.

    Args:
        in_channels: C, the number of channels.
        num_classes: How many logits come out.
        widths: Channels of each convolution; the last is what the head reads.
    """

    def __init__(self, *, in_channels: int, num_classes: int, widths: Sequence[int] = (16, 32, 64)):
        super().__init__()
        before, layers = require.whole("in_channels", in_channels), []
        for i, after in enumerate(widths):
            if i:
                layers.append(nn.MaxPool2d(2))
            conv = nn.Conv2d(before, require.whole(f"widths[{i}]", after), 3, padding=1, bias=False)
            layers += [conv, nn.BatchNorm2d(after), nn.ReLU()]  # type: ignore[list-item]
            before = after
        if not layers:
            raise ValueError("widths must name at least one convolution, got none")
        self.layers = nn.Sequential(*layers)
        self.smallest = 2 ** (len(widths) - 1)
        self.head = nn.Linear(before, require.whole("num_classes", num_classes))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        H, W = require.floats("images", images, "(B, C, H, W)").shape[2:]
        if min(H, W) < self.smallest:
            raise ValueError(
                f"images must be at least {self.smallest} pixels high and wide, got {H} x {W}"
            )
        x = self.layers(images)  # (B, widths[-1], rows, columns)
        return self.head(x.mean(dim=(2, 3)))
