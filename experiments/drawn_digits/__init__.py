"""Which drawn digit is it, where does the model look, and does it know what is none?"""
