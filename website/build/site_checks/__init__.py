"""What the built site is checked for.

A check of a page (page -> findings) looks at its HTML and at nothing else; what it found is
remembered while page and rules stay as they are (website/build/site.py). A check of the site
(site -> findings) is made each time: it compares what pages say with other pages and files.

content     alt texts, remnants of the source, errors in outputs, ids, placeholders
addresses   links, anchors, downloads, launch buttons, third-party resources
weight      how many bytes a page makes a reader load
"""
