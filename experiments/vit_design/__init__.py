"""Which part of a ViT, and which size, makes a difference?"""
