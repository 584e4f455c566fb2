"""What "map and answer" reads: photographs, of each patch its share, and what it moves."""

import base64
import io
from importlib import import_module
from typing import Any

from PIL import Image

from .pack import packed

ARE = {  # what a photograph is, and whether the model has learned such a class
    "cat": "It is a cat, which the model has learned, too.",
    "flower": "It is a flower; the model has learned none.",
    "temple": "It is a temple; the model has learned none.",
}


def address(pixels: Any, kind: str, **options: Any) -> str:
    """Pixels (H, W) or (H, W, 3) from 0 to 1 as an address that holds the picture itself."""
    kept = io.BytesIO()
    Image.fromarray((255 * pixels).round().astype("uint8")).save(kept, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(kept.getvalue()).decode()


def data() -> dict:
    """Even shares of the class token's row, the last layer's, and the drops of an occlusion."""
    from vitbook.data import STATISTICS, normalize
    from vitbook.inspection import attention_maps
    from vitbook.inspection.occlusion import occlusion

    drawing = import_module("vitbook.figures.looking")  # beside the page, so untyped
    sharp, seen = drawing.photographs()
    model, x = drawing.cifar_model("deep"), normalize(seen, *STATISTICS["cifar10"])
    row = attention_maps(model, x)[-1].mean(1)[:, 0]  # (B, 145), the heads' mean
    drops = occlusion(model, x, 3).flatten(1)
    sure, answers = model(x).detach().softmax(-1).max(-1)
    photographs = [
        {
            "name": name,
            "is": ARE[name],
            "answer": drawing.CLASSES[answers[at]],
            "sure": sure[at].item(),
            "drawn": address(drawing.lifted(sharp[at]), "WEBP", quality=80, method=6),
            "seen": address(seen[at].permute(1, 2, 0).numpy(), "PNG", optimize=True),
            "shares": packed(row.shape[1] * row[at, 1:].numpy(), "f32"),
            "drops": packed(drops[at].numpy(), "f32"),
        }
        for at, name in enumerate(drawing.LEFT)
    ]
    return {"photographs": photographs, "columns": drawing.GRID[1], "top": drawing.TOP}
