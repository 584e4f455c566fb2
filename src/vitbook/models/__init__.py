"""Whole classifiers, images (B, C, H, W) -> logits (B, num_classes), and their weights."""
