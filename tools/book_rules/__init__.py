"""The book's rules for its sources. Each rule is a function: book -> findings.

contents    the row of chapters, and their table on the front page
prose       directives and roles, typed numbers, the skeleton of a chapter
exercises   exercises, their solutions and checks; concept checks; claims
forms       predictions, and pages that go deeper
draws       how many trainings stand behind what is said of each of them
kit         lengths; what the pages that say ``kit: true`` keep besides
code        imports, figures, glue, and which chapter introduces which part of the package
"""
