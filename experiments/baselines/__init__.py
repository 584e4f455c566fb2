"""What does a ViT have to beat?"""
