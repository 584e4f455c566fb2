"""The data of live figures: a module for each, whose ``data()`` is what the figure's script reads.

They are written when the pages are rendered (book/_ext/syntax/live.py), from the records; nothing
of it is committed.
"""
