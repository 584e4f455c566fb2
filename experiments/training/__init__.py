"""How is a ViT trained, and how does one notice that something is wrong?"""
