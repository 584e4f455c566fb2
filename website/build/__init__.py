"""The steps of `make book`, and of `make page`. `python -m website.build` runs them all.

execute             run the chapters whose digest has changed
    chapters        what each was executed at, and the cache of what they printed
    dependencies    what of package and records a chapter's digest covers
render              Sphinx, of which pages are read anew
export_notebooks    every page with cells as a notebook, and the package beside them
check_site          what the finished site has to hold; the rules are in site_checks
    site            the finished site as pages, and what is known of each
preview             one page on its own
inputs              a hash of all that a step was made from
"""
