"""The book's rules for its sources. Each rule is a function: book -> findings.

contents    old addresses, and pages in depth
prose       the line of goals; numbers typed into the text
exercises   exercises, their solutions and checks; claims; ids of predictions
draws       how many trainings stand behind what is said of each of them
length      minutes of a chapter, width of its code
code        imports, figures, glue, and which chapter introduces which part of the package
"""
