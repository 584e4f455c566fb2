"""How far does a small ViT get with whole data sets?"""
