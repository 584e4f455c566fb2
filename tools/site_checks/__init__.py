"""What the built site is checked for. Each check is a function: site -> findings.

content     alt texts, remnants of the source, errors in outputs, ids, placeholders
addresses   links, anchors, downloads, launch buttons, third-party resources
weight      how many bytes a page makes a reader load
claims      the table of claims, row by row
"""
