"""What the small ViTs have in common; each script adds its images, its depth and what is other."""

LEARNED: dict = {"positions": "learned", "position_std": 0.5}
SMALL: dict = {
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 48,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
}
