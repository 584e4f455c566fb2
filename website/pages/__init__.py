"""The pages as they are written, and what is set for all of them; nothing here knows Sphinx.

settings, contents    `_config.yml`, `_toc.yml`: addresses, the order of pages, their numbers
moved, changelog      `book/moved.toml`, `CHANGELOG.md`
myst, include         a page as blocks with their lines, and their inline syntax
source                all pages, each as a list of items in reading order
cells, docstrings     what is shown of code, and what is folded
counts                words, lines, minutes
introductions         which chapter introduces which part of the package
meaning               what of a file counts: a hash without comments and layout
failures              what failed while the cells ran
markdown              the plain Markdown of notebooks
"""
