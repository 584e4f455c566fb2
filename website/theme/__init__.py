"""What stands around the words of a page, and how all of it looks.

static      styles, scripts and faces of the text; in the site they are `_static`
templates   what of the theme's pages is other than there
vendor      KaTeX, which `math` runs to set the formulas
site        what the theme leaves to mend; links to the notebooks
light       what no page uses is left out
search, share, report, changes, moved
            the search, the picture of a link, the foot of a page, what changed, old addresses
"""
