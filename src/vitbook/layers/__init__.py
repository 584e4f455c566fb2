"""The parts of a model: (B, N, D) in, (B, N, D) out."""
