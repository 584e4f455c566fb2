"""What makes the site: all that `make book` runs. What else maintainers run is in `tools/`.

    pages         the pages as they are written, and what is set for all of them
    theme         what stands around the words of a page, and how all of it looks
    live          figures that run in the page: script, style and data side by side
    syntax        what a page may say, a directive a file, and what becomes of its cells
    notebooks     a page as a notebook
    assignments   a master, drawn and proven, as a notebook
    build         the steps: execute, render, export the notebooks, check

A room imports from those above it, never from `tools`, but for the browser where a record is made.
"""
