"""gradebox: from a folder of notebooks to their marks, without trusting one line of them.

A distribution of its own, for instructors: students' wheel, site and bundle do not hold it.
"""
