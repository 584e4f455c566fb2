"""Assignments: one master each, drawn, proven, and written as a notebook.

    draw                what chance decides: the variant and every input
    reader, master      the MyST file in `assignments/`, filled in
    marks, patience     otter's marks in a solution; how long its code may take
    record, prove       cases from calls of the solution; mutants and other right answers
    notebooks, public   the notebook for students, and its public variant, which the site offers

What instructors run is `tools.assignment`.
"""
