"""The command ``python -m vitbook``: what it is asked (parser), and what it then does.

What a command does, says the function of its name in the module of its name.
"""
