"""Read a model: where does each token look, and does the answer depend on it?

:func:`record_attention` and :func:`attention_maps` take models of any library (this one, timm,
torchvision, transformers, ``nn.TransformerEncoder``, one's own). A layer that attends in a way that
cannot be read is named; nothing empty or partial is handed out as the whole. Occlusion and its
forecast take any classifier. Everything else is a pure function of the stacked maps
(L, B, h, N, N).
"""

from vitbook.inspection.audit import Audit, audit
from vitbook.inspection.maps import (
    attention_rollout,
    class_token_attention,
    mean_attention_distance,
)
from vitbook.inspection.occlusion import gradient_drop, occlusion, rank_correlation
from vitbook.inspection.recording import attention_maps, record_attention
from vitbook.inspection.regions import query_distance, region_attention
from vitbook.inspection.scoring import attention_hits
from vitbook.inspection.tokens import find_num_prefix, image_features, token_norms

__all__ = [
    "Audit",
    "attention_hits",
    "attention_maps",
    "attention_rollout",
    "audit",
    "class_token_attention",
    "find_num_prefix",
    "gradient_drop",
    "image_features",
    "mean_attention_distance",
    "occlusion",
    "query_distance",
    "rank_correlation",
    "record_attention",
    "region_attention",
    "token_norms",
]
