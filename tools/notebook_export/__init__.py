"""Turn the book's MyST pages into plain notebooks for Colab.

    targets     numbers, titles, link targets and literature, as Sphinx wrote them down
    roles       what stands in a line: roles, links, formulas
    markdown    quotes, folds, fences and formulas, as every reader of notebooks shows them
    notebook    blocks in order -> cells with stable ids

Whatever a page holds that is not known here is an error that names the file and the line:
a construct that Colab would show as raw text must never pass unnoticed.
"""
