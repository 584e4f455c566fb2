"""What the slider of patch sizes reads: a photograph, and the published sizes of ViTs."""

import base64
import io

from PIL import Image

from website.photograph import photograph

DRAWN = 384  # pixels of the photograph as it is drawn
SIDES = (224, 384, 1024)  # pixels of the image that is counted


def data() -> dict:
    """The photograph as an address that holds the picture itself; name -> (D, L); the sides."""
    from vitbook.models.vit import VIT_VARIANTS

    models = {f"ViT-{name}": [one["embed_dim"], one["depth"]] for name, one in VIT_VARIANTS.items()}
    return {"photograph": temple(), "models": models, "sides": SIDES}


def temple() -> str:
    """The square that the chapter cuts, too."""
    with photograph("china.jpg") as whole:
        square = whole.crop((0, 0, 426, 426)).resize((DRAWN, DRAWN), Image.Resampling.LANCZOS)
    kept = io.BytesIO()
    square.save(kept, "JPEG", quality=70, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(kept.getvalue()).decode()
