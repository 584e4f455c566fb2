"""What makes the site: all that `make book` runs. What only maintainers run is in `tools/`.

    pages       the pages as they are written, and what is set for all of them
    theme       what stands around the words of a page, and how it looks
    live        figures that run in the page

A room imports from those above it, never from `tools`.
"""
