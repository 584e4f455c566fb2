"""A drawn assignment for otter and for nbgrader, whose checks run beside what they check."""

from dataclasses import replace

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell

from vitcheck.cases import Assignment, Case, to_text
from website.assignments.master import Question
from website.assignments.notebooks import answer_source, finished, first_line, heading
from website.assignments.prove import Drawn

PASSES = '''\
# Looks at one stored case. It runs beside the answer, which can tamper with it.
from vitcheck.cases import compare, from_text, run_case


def passes(case, data):
    [found] = [c for q in from_text(data).questions for c in q.cases if c.id == case]
    verdict = compare(run_case(globals(), found), found)
    return verdict.message or "right"'''


def otter_notebook(drawn: Drawn) -> nbformat.NotebookNode:
    """The drawn assignment as a master that ``otter assign`` reads (version 1 of its format)."""
    cells = [
        new_raw_cell(
            f"# ASSIGNMENT CONFIG\nname: {drawn.name}\ninit_cell: true\ncheck_all_cell: true\n"
            "export_cell:\n  pdf: false\ngenerate:\n  show_hidden: false"
        ),
        new_markdown_cell(f"# {drawn.master.title}\n\n" + "\n\n".join(drawn.master.introduction)),
        *(new_code_cell(source) for source in [*drawn.master.setup, PASSES]),
    ]
    for question in drawn.master.questions:
        config = f"# BEGIN QUESTION\nname: {question.name}\npoints: {question.points:g}"
        cells.append(new_raw_cell(config + "\nmanual: true" * question.manual))
        cells.append(new_markdown_cell("\n\n".join([heading(question), *question.prompt])))
        cells.append(new_raw_cell("# BEGIN SOLUTION"))
        new = new_markdown_cell if question.manual else new_code_cell
        cells.append(new(question.solution.strip()))
        cells.append(new_raw_cell("# END SOLUTION"))
        if not question.manual:
            tests = [_otter_test(drawn.cases, case) for case in drawn.cases[question.name].cases]
            cells += [new_raw_cell("# BEGIN TESTS"), *tests, new_raw_cell("# END TESTS")]
        cells.append(new_raw_cell("# END QUESTION"))
    return finished(cells, drawn)


def _otter_test(cases: Assignment, case: Case) -> nbformat.NotebookNode:
    """A test cell; otter expects what the cell has printed, so its output stands below it."""
    config = f"points: {case.points:g}\nhidden: {str(not case.public).lower()}"
    cell = new_code_cell(
        f'""" # BEGIN TEST CONFIG\n{config}\n""" # END TEST CONFIG\n'
        f'passes("{case.id}", "{_alone(cases, case)}")'
    )
    result = {"data": {"text/plain": "'right'"}, "execution_count": 1}
    cell.outputs, cell.execution_count = [new_output("execute_result", **result)], 1
    return cell


def nbgrader_notebook(drawn: Drawn) -> nbformat.NotebookNode:
    """The drawn assignment as a source that ``nbgrader generate_assignment`` reads."""
    cells = [
        new_markdown_cell(f"# {drawn.master.title}\n\n" + "\n\n".join(drawn.master.introduction)),
        *(new_code_cell(source) for source in [*drawn.master.setup, PASSES]),
    ]
    for question in drawn.master.questions:
        cells.append(new_markdown_cell("\n\n".join([heading(question), *question.prompt])))
        source = (
            answer_source(question, solved=True) if question.manual else _nbgrader_code(question)
        )
        cell = new_markdown_cell(source) if question.manual else new_code_cell(source)
        cell.metadata["nbgrader"] = _nbgrader(
            f"{question.name}-answer",
            solution=True,
            grade=question.manual,
            points=question.points if question.manual else None,
        )
        cells.append(cell)
        for case in [] if question.manual else drawn.cases[question.name].cases:
            test = f'assert passes("{case.id}", "{_alone(drawn.cases, case)}") == "right"'
            if not case.public:
                test = f"### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
            cell = new_code_cell(f"# {case.stage}\n{test}")
            cell.metadata["nbgrader"] = _nbgrader(case.id, grade=True, points=case.points)
            cells.append(cell)
    return finished(cells, drawn)


def _nbgrader_code(question: Question) -> str:
    marks = {"# BEGIN SOLUTION": "### BEGIN SOLUTION", "# END SOLUTION": "### END SOLUTION"}
    lines = [first_line(question)]
    for line in question.solution.strip().splitlines():
        mark = marks.get(line.strip().removesuffix(" NO PROMPT"))
        if line.endswith("# SOLUTION"):
            indent = line[: len(line) - len(line.lstrip())]
            code = line.removesuffix("# SOLUTION").rstrip()
            lines += [f"{indent}### BEGIN SOLUTION", code, f"{indent}### END SOLUTION"]
        else:
            lines.append(line.replace(line.strip(), mark) if mark else line)
    return "\n".join(lines)


def _nbgrader(
    name: str, *, solution: bool = False, grade: bool = False, points: float | None = None
) -> dict:
    about = {"grade": grade, "grade_id": name, "locked": not solution, "schema_version": 3}
    about |= {"solution": solution, "task": False}
    return about | ({"points": points} if grade else {})


def _alone(cases: Assignment, wanted: Case) -> str:
    """One case as text, without the words about mistakes."""
    only = cases.only(lambda case: case.id == wanted.id)
    kept = (q for q in only.questions if q.cases)
    bare = (
        replace(q, rubric=None, cases=tuple(replace(c, mistakes=()) for c in q.cases)) for q in kept
    )
    return to_text(replace(only, questions=tuple(bare)))
