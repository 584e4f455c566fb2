"""Read a model: where does each token look?

Recording works with modules whose layers have a method ``attention_weights(x, mask)``, as this
package's do. Models of other libraries (timm, torchvision) have none and are refused with a
``ValueError``. Everything else is a pure function of the stacked maps (L, B, h, N, N).
"""

from vitbook.inspection.maps import (
    attention_rollout,
    class_token_attention,
    mean_attention_distance,
)
from vitbook.inspection.recording import attention_maps, record_attention
from vitbook.inspection.scoring import attention_hits

__all__ = [
    "attention_hits",
    "attention_maps",
    "attention_rollout",
    "class_token_attention",
    "mean_attention_distance",
    "record_attention",
]
