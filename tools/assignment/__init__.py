"""Assignments: one master each, from which everything that is handed out or graded is made.

python -m tools.assignment 1 --key-file KEY     draw, prove and write assignment 1
python -m tools.assignment.verify               prove all masters, and print the table
"""
