"""What a table of results shows, what it refutes, and what it leaves open: statements to judge."""

from typing import Any

from vitcheck.trial import Trial

YES, NO, OPEN = "yes", "no", "cannot say"

# statement -> (the right answer, the question to ask whoever misses it)
Statements = dict[str, tuple[str, str]]


def reading(statements: Statements) -> dict[str, Any]:
    """What ``staged`` wants to know of such a check: the right answer, and each wrong one."""
    right = {statement: answer for statement, (answer, _) in statements.items()}

    def but(statement: str, said: str) -> Any:
        return lambda: right | {statement: said}

    mistakes = {
        question: [but(statement, said) for said in (YES, NO, OPEN) if said != answer]
        for statement, (answer, question) in statements.items()
    }
    return {"right": lambda: right, "mistakes": mistakes}


def judge(trial: Trial, given: Any, statements: Statements) -> None:
    """Stop at the first statement that is judged wrongly.

    Args:
        trial: the check.
        given: the learner's dictionary from statement to YES, NO or OPEN.
        statements: for each one the right answer, and the question to ask whoever misses it.
    """
    given = trial.answers(given, statements)
    for statement, (answer, question) in statements.items():
        trial.stage(statement)
        said = given[statement]
        trial.ask(said in (YES, NO, OPEN), f'answer "{YES}", "{NO}" or "{OPEN}"')
        trial.ask(said == answer, question)
