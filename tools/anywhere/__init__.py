"""Does what the pages say hold on every processor? `python -m tools.anywhere`

noise.py       rounding noise on the results of torch's operations
cells.py       the cells of a page, which comparisons of an assertion decide it, other seeds
page.py        runs one page under one or several roundings, and tells what it found
runs.py        which runs there are, and which of them this machine can make
results.py     the committed file of what was seen, by page and digest
report.py      values, thresholds, ranges, distances; numbers of the text that move
"""
