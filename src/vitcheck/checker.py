"""The public checks of an assignment, in the student's notebook."""

import inspect
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

from vitcheck.before_handing_in import INTRODUCTION, Clock, warnings
from vitcheck.cases import (
    UNANSWERED,
    Assignment,
    CaseError,
    Question,
    compare,
    from_text,
    run_case,
)

_HERE = str(Path(__file__).parent)


class Checker:
    """Says of each answer whether it passes its public checks, and if not, why.

    Args:
        assignment: Its name, such as "a1-attention".
        data: Inputs, results and known mistakes, as the notebook's first cells hold them.

    Raises:
        ValueError: The data were changed or belong to another assignment.
    """

    def __init__(self, assignment: str, data: str):
        self.cases: Assignment = from_text(data)
        if self.cases.assignment != assignment:
            raise ValueError(f"these are the checks of {self.cases.assignment}, not {assignment}")
        shell = _shell()
        self._clock = Clock(shell) if shell else None

    def __call__(self, question: str, namespace: dict[str, Any] | None = None) -> None:
        """Check one question and print what was found: ``check("q1")``."""
        found = self.cases[question]
        names = _callers_names() if namespace is None else namespace
        passed, words = self._outcome(found, names)
        if found.manual:
            print(f"{question}: read by a person; write your answer into its text cell")
        elif passed == len(found.cases):
            checks = "1 public check" if passed == 1 else f"all {passed} public checks"
            print(f"ok: {question} passes {checks}")
        else:
            print(f"{question}, {words}")

    def all(self, namespace: dict[str, Any] | None = None) -> None:
        """Print one line for each question: how many of its public checks pass. In a notebook also
        what of it will not be there when it is marked."""
        names = _callers_names() if namespace is None else namespace
        for question in self.cases.questions:
            if question.manual:
                print(f"{question.id}: read by a person")
                continue
            passed, _ = self._outcome(question, names)
            print(f"{question.id}: {passed} of {len(question.cases)} public checks pass")
        seconds = self._clock.seconds if self._clock else {}
        if lost := warnings(names.get("In", ()), seconds):
            print("\n".join(["", *textwrap.wrap(INTRODUCTION, 88), *lost]))

    def _outcome(self, question: Question, names: dict[str, Any]) -> tuple[int, str]:
        """How many cases pass, and what is said about the first that does not."""
        passed, first = 0, ""
        for case in question.cases:
            try:
                verdict = compare(run_case(names, case), case)
                passed += verdict.ok
                words = "" if verdict.ok else f"{case.stage}: {verdict.message}"
                words = UNANSWERED if verdict.message == UNANSWERED else words
            except NotImplementedError:
                words = UNANSWERED
            except CaseError as error:
                words = f"{case.stage}: {error}"
            except Exception as error:
                words = f"{case.stage}: your code stopped with\n{_own_traceback(error)}"
            first = first or words
        return passed, first


def _own_traceback(error: Exception) -> str:
    """The traceback from the first line of the answer on."""
    where = error.__traceback__
    while where and where.tb_frame.f_code.co_filename.startswith(_HERE):
        where = where.tb_next
    return "".join(traceback.format_exception(type(error), error, where)).rstrip()


def _shell() -> Any:
    """The running notebook's shell; None outside of IPython, which is then not imported."""
    found = sys.modules.get("IPython")
    return found.get_ipython() if found else None


def _callers_names() -> dict[str, Any]:
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame.f_globals if frame else vars(sys.modules["__main__"])
