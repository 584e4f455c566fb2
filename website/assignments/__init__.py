"""Assignments: one master each, drawn, proven, and written as a notebook and as a grader's package.

    draw                what chance decides: the variant and every input
    reader, master      the MyST file in `assignments/`, filled in
    marks, patience     otter's marks in a solution; how long its code may take
    record, prove       cases from calls of the solution; mutants and other right answers
    notebooks, public   the notebook for students, and its public variant, which the site offers
    write, package      an instructor's folder: notebooks, rubrics, and what the grader reads
    foreign             masters for otter and nbgrader
    page                the book's pages of the public variants
    verify              all masters, proven again and again: the table of the instructors' page
    leaks, similar      what of a class's key or a chapter's code stands in what is handed out

python -m website.assignments 1 --key-file KEY     draw, prove and write assignment 1
python -m website.assignments.verify               prove all masters, and print the table
"""
