"""Turn the book's MyST pages into plain notebooks for Colab.

    sphinx_targets    writes down what only Sphinx knows: numbers, titles, labels, literature
    targets           the same, read
    roles             what stands in a line: roles, links, formulas
    notebook          blocks in order -> cells with stable ids

Whatever a page holds that is not known here is an error that names the file and the line:
a construct that Colab would show as raw text must never pass unnoticed.
"""
