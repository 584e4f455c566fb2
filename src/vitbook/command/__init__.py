"""The command ``python -m vitbook``: what it is asked (parser), and what it then does."""
