"""What the small ViTs have in common; each script adds its images, its depth and what is other."""

LEARNED: dict = {"positions": "learned", "position_std": 0.5}
GREY: dict = {"in_channels": 1, "num_classes": 10}
DIGITS: dict = {**GREY, "image_size": 8, "patch_size": 2}
SMALL: dict = {**GREY, "embed_dim": 48, "mlp_ratio": 2.0, "pool": "mean"}
