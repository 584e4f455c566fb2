"""What a notebook is worth whose author understood nothing: copied constants, pasted solutions."""

import statistics
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from torch import nn

from vitcheck.cases import CaseError, changed, compare, run_case
from vitcheck.values import difference
from website.assignments.marks import without_marks
from website.assignments.record import names_after

# draws, of which the deep tests try more
FEW = [pytest.param(2), pytest.param(12, marks=pytest.mark.deep)]
MOST_COPIED = 0.1  # of the automatic points, for the results that the public checks hold
MOST_PASTED = 0.25  # of the automatic points, for another variant's solutions


def like(want, fill):
    """A result of the shape of `want`, filled by `fill`."""
    if isinstance(want, torch.Tensor):
        return fill(want)
    if isinstance(want, list | tuple):
        return [like(item, fill) for item in want]
    if isinstance(want, dict):
        return {name: like(item, fill) for name, item in want.items()}
    return fill(torch.tensor(0.0)).item() if isinstance(want, int | float) else ""


def diagonal(x):
    is_square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    return torch.eye(x.shape[-1]).expand(*x.shape[:-2], -1, -1) if is_square else x * 0


FILLS = [
    torch.zeros_like,
    torch.ones_like,
    lambda x: diagonal(x).to(x.dtype),
    lambda x: torch.ones_like(x).tril() if x.ndim > 1 else x * 0 + 1,  # what is not after it
    lambda x: (  # equal shares
        torch.full_like(x, 1 / x.shape[-1]) if x.ndim and x.is_floating_point() else x * 0 + 2
    ),
    lambda x: torch.arange(x.numel()).view(x.shape).to(x.dtype),
]


def copied_names(question, fill):
    """Answers made of what the public checks hold, and for other inputs of a guess.

    The guess even knows the shape of the right result, which a real one would have to work out.
    """
    public = [case for case in question.cases if case.public]

    def answer(*args, **kwargs):
        for case in public:
            if not changed(case, (args, kwargs)):  # layers are not compared
                return case.want
        hidden = answer.asked
        alike = [c.want for c in public if difference(c.want, hidden.want, 1e9, 1e9) in (None, "")]
        return alike[0] if fill is None and alike else like(hidden.want, fill or torch.zeros_like)

    class Copied(nn.Module):
        """Has the weights of the public cases, under the names that the question gives."""

        forward = staticmethod(answer)

        def __init__(self, **kwargs):
            super().__init__()
            mine = [case for case in public if case.make.kwargs == kwargs]
            self.copied = (mine or public)[0].make.weights

        def state_dict(self):
            return self.copied

        def load_state_dict(self, weights):
            pass

    names = {case.make.name if case.make else case.name for case in question.cases}
    is_class = any(case.make for case in question.cases)
    return dict.fromkeys(names, Copied if is_class else answer), answer


def copied_points(question):
    """What the copied results gain together with the best of the guesses."""
    found = []
    for fill in [None, *FILLS]:
        names, answer = copied_names(question, fill)
        worth = 0
        for case in question.cases:
            answer.asked = case
            with suppress(CaseError):
                result = run_case(names, replace(case, gradients=False))  # as if they were known
                worth += case.points * compare(result, case).ok
        found.append(worth)
    return max(found)


def automatic(drawn):
    return [question for question in drawn.cases.questions if not question.manual]


@pytest.mark.parametrize("how_many", FEW)
def test_results_copied_out_of_the_public_checks_are_worth_a_tenth_at_most(draws, how_many):
    for number in range(how_many):
        questions = automatic(draws(number))
        gained = {question.id: copied_points(question) for question in questions}
        tried = {q.id for q in questions if any(case.claims for case in q.cases)}
        assert all((gained[q.id] > 0) == (q.id not in tried) for q in questions)  # the copies work
        assert sum(gained.values()) <= MOST_COPIED * sum(q.points for q in questions), gained


def pasted_points(drawn, other):
    """Question -> points that the solution of `other` gets, after the right answers of `drawn`."""
    points, before = {}, list(drawn.master.setup)
    for ours, theirs in zip(drawn.master.questions, other.master.questions, strict=True):
        if ours.manual:
            continue
        names = names_after(*before, without_marks(theirs.solution))
        points[ours.name] = sum(
            case.points * passes(names, case) for case in drawn.cases[ours.name].cases
        )
        before.append(without_marks(ours.solution))
    return points


def passes(names, case):
    torch.manual_seed(0)
    try:
        return compare(run_case(names, case), case).ok
    except Exception:  # whatever a solution of another variant stops with
        return False


@pytest.mark.parametrize("how_many", FEW)
def test_the_public_solution_gets_few_points_in_another_variant(draws, how_many):
    """The mean share that is left is small, and no question is the same in all draws."""
    shares, whole = [], Counter()
    for number in range(1, 2 + how_many):
        ours = draws(number)
        points = pasted_points(ours, draws(0))
        shares.append(sum(points.values()) / sum(q.points for q in automatic(ours)))
        whole.update(name for name, worth in points.items() if worth == ours.cases[name].points)
    assert statistics.mean(shares) <= MOST_PASTED, shares
    assert max(whole.values(), default=0) < len(shares), whole
