"""How does a model know where a patch was?"""
