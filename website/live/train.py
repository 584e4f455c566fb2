"""What "train one here" reads: scikit-learn's digits, and the glyphs of the matching pairs."""

from __future__ import annotations

from sklearn.datasets import load_digits

from vitbook.data.glyphs import glyphs
from website.live.pack import packed


def data() -> dict:
    """1,797 digits of 8 x 8 pixels, 0 ... 16, their labels; sixteen glyphs of 5 x 5."""
    digits = load_digits()
    return {
        "images": packed(digits.data, "u8"),
        "labels": packed(digits.target, "u8"),
        "glyphs": packed(glyphs().numpy(), "u8"),
    }
