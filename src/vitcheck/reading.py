"""What a table of results shows, what it refutes, and what it leaves open: statements to judge."""

from collections.abc import Callable
from typing import Any

from vitcheck.trial import Trial, staged

YES, NO, OPEN = "yes", "no", "cannot say"

# statement -> (the right answer, the question to ask whoever misses it)
Statements = dict[str, tuple[str, str]]


def reading(ok: str, statements: Statements, *, what: str = "my_reading") -> Callable[..., None]:
    """A check that stops at the first statement which is judged wrongly.

    Args:
        ok: what is now known to hold, in a few words.
        statements: for each one the right answer, and the question to ask whoever misses it.
        what: what is checked, as the exercise calls it.
    """
    right = {statement: answer for statement, (answer, _) in statements.items()}

    def but(statement: str, said: str) -> Any:
        return lambda: right | {statement: said}

    mistakes = {
        question: [but(statement, said) for said in (YES, NO, OPEN) if said != answer]
        for statement, (answer, question) in statements.items()
    }

    @staged(what, ok=ok, right=lambda: right, mistakes=mistakes)
    def check(trial: Trial, my_reading: Callable[[], Any]) -> None:
        """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
        given = trial.answers(my_reading(), statements)
        for statement, (answer, question) in statements.items():
            trial.stage(statement)
            said = given[statement]
            trial.ask(said in (YES, NO, OPEN), f'answer "{YES}", "{NO}" or "{OPEN}"')
            trial.ask(said == answer, question)

    return check
