"""The drawing of a whole Vision Transformer: wide, tall for phones, and as a strip."""
